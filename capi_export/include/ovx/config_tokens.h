/*
 * ovx/config_tokens.h - place holders that configuration values may contain.
 */
#ifndef OVX_CONFIG_TOKENS_H
#define OVX_CONFIG_TOKENS_H

/* Stands for the directory of the running executable. Only a static loader substitutes it; libovstage.so has no use for
 * it, because it has no package to look for. */
#define OVX_CONFIG_EXECUTABLE_DIR_TOKEN "${executable_dir}"

#endif /* OVX_CONFIG_TOKENS_H */
