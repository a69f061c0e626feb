#!/usr/bin/env bash
# The C of the product under the sanitizers of the compiler; docs/dev/sanitizers.md says what they see.
#
#   tests/sanitize.sh asan [PYTEST ARGUMENT ...]   addresses and undefined behaviour: the C programs, then the pytest suite
#                                                  or what the arguments name; `asan c` is the C programs alone
#   tests/sanitize.sh tsan                         threads: tests/c/threads.c
#
# Builds of their own lie in build/asan and build/tsan. CC chooses the compiler, gcc or clang; PYTHON the interpreter.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
python=${PYTHON:-python3}
read -ra cc <<<"${CC:-cc}"

fail() {
  printf 'tests/sanitize.sh: %s\n' "$*" >&2
  exit 1
}
within() { "$here/within.sh" "$@"; }

# The sanitizers' own libraries, to be loaded before a program that was built without them.
runtime() {
  local name file found=()
  for name in "$@"; do
    file=$("${cc[@]}" -print-file-name="$name")
    [ -f "$file" ] || fail "${cc[*]} has no $name: install the libraries of its sanitizers, or name another compiler in CC"
    found+=("$file")
  done
  printf '%s' "${found[*]}"
}

# ---- Addresses, undefined behaviour ----------------------------------------------------------------------------------

# Leaks are not looked for: Python and Go leave much behind at exit. Faults stay with the process, since the product has
# handlers of its own that tests wait for. The quarantine is small, so that tests of memory that stays flat pass.
address_options=detect_leaks=0:handle_segv=0:handle_sigbus=0:quarantine_size_mb=8:allocator_may_return_null=1

# These start children with an environment or a limit in which the sanitizer cannot live.
address_deselected=(
  tests/python/test_shortage.py
  tests/python/test_import.py::test_spoiled_library_is_refused_before_it_is_loaded
  tests/python/test_import.py::test_a_pipe_is_no_library_and_is_not_waited_for
  'tests/python/test_process.py::test_any_environment[nonsense]'
  tests/python/test_process.py::test_too_little_address_space_is_refused_with_a_sentence
  tests/python/test_process.py::test_free_threaded_interpreter_is_refused_by_the_extension_itself
)

address_flags=(-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)

# The Python package in build/asan/python, with the pair of native files built for it.
address_build() {
  local package=$root/build/asan/python/ovstage
  mkdir -p "$root/build/asan/python"
  rm -rf "$root/build/asan/package" && cp -r "$root/python/ovstage" "$root/build/asan/package"
  rm -f "$root/build/asan/package"/*.so
  [ ! -d "$package" ] || mv "$package"/*.so "$package"/*.recipe "$package"/*.h "$root/build/asan/package" # up to date, maybe
  rm -rf "$package" && mv "$root/build/asan/package" "$package"
  CC="${cc[*]} ${address_flags[*]}" "$python" "$root/hatch_build.py" into "$package"
}

address_c() {
  local package=$root/build/asan/python/ovstage work=$root/build/asan
  local names sources
  mapfile -t names <"$here/c/client.txt"
  sources=("${names[@]/#/$here/c/}")
  "${cc[@]}" -std=c11 -g -O1 "${address_flags[@]}" "-I$root/capi_export/include" "${sources[@]}" \
    "-L$package" "-Wl,-rpath,$package" -lovstage -pthread -o "$work/client" || fail "the client does not build"
  ASAN_OPTIONS=$address_options UBSAN_OPTIONS=print_stacktrace=1 within 600 "$work/client" >"$work/client.txt" ||
    { cat "$work/client.txt" && fail "the client found faults"; }
  tail -n 1 "$work/client.txt"
}

address_python() {
  local each options=()
  for each in "${address_deselected[@]}"; do options+=(--deselect "$each"); done
  [ $# != 0 ] || set -- tests/python
  (cd "$root" && PYTHONPATH=$root/build/asan/python ASAN_OPTIONS=$address_options UBSAN_OPTIONS=print_stacktrace=1 \
    LD_PRELOAD=$(runtime libasan.so libubsan.so) "$python" -m pytest -q -p no:cacheprovider -m 'not slow' "${options[@]}" "$@")
}

# ---- Threads ---------------------------------------------------------------------------------------------------------

threads() {
  local work=$root/build/tsan sources=("$root"/capi_export/{call,floor,gate,interface,log,ops,process,unasked}.c "$root"/gocore/memory/*.c)
  mkdir -p "$work"
  cp "$root/build/native/libovstage.h" "$work/_cgo_export.h"
  runtime libtsan.so >/dev/null
  "${cc[@]}" -std=gnu11 -D_GNU_SOURCE= -g -O1 -fsanitize=thread -fno-omit-frame-pointer -Wall -Wextra -Wno-unused-parameter -Werror \
    "-I$root/capi_export" "-I$root/capi_export/include" "-I$root/gocore/memory" -isystem "$work" "$here/c/threads.c" \
    "${sources[@]}" -ldl -pthread -o "$work/threads" || fail "the threads do not build"
  TSAN_OPTIONS=second_deadlock_stack=1 within 300 "$work/threads"
}

case ${1:-} in
  asan)
    shift
    address_build
    [ $# != 0 ] && [ "$1" != c ] || address_c
    [ "${1:-}" = c ] || address_python "$@"
    ;;
  tsan) threads ;;
  *) fail "give asan or tsan" ;;
esac
