/* The least that a program with its own build does: make a stage, ask it something, end it. */
#include <stdio.h>

#include <ovstage/ovstage.h>
#include <ovx/path_dictionary/path_dictionary.h>

int main(void) {
  ovstage_instance_desc_t desc;
  desc.name = "consumer";
  ovstage_instance_t* stage = NULL;
  if (ovstage_create_instance(&desc, &stage) != OVSTAGE_OK) {
    fprintf(stderr, "%s\n", ovstage_get_last_error().ptr);
    return 1;
  }
  uint32_t major = 0, minor = 0, patch = 0;
  ovstage_get_version(stage, &major, &minor, &patch);
  ovx_string_t name = literal_to_ovx_string("speed");
  ovx_token_t token = OVX_INVALID_TOKEN;
  path_dictionary_create_tokens_from_strings(ovstage_get_path_dictionary(stage), &name, 1, &token);
  printf("interface level %u.%u.%u\n", major, minor, patch);
  return ovstage_destroy_instance(stage) == OVSTAGE_OK && token != OVX_INVALID_TOKEN ? 0 : 1;
}
