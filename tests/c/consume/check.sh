#!/usr/bin/env bash
# Builds and runs a program against a packaged library, through CMake and through pkg-config.
#
#   tests/c/consume/check.sh [PREFIX]
#
# PREFIX holds include/, lib/cmake/ovstage, lib/pkgconfig and the library (default: build/prefix). A copy of it is used,
# in a folder with a space in its name: nothing in it may depend on where it was made.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "${1:-$here/../../../build/prefix}" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
moved="$work/moved here"
mkdir "$moved"
for part in include lib libovstage.so; do
  if [ -e "$prefix/$part" ]; then cp -RL "$prefix/$part" "$moved"; fi
done

have() { command -v "$1" >/dev/null; }
fail() {
  printf 'tests/c/consume/check.sh: %s\n' "$*" >&2
  exit 1
}

with_cmake() {
  local log=$work/cmake.log
  {
    cmake -S "$here" -B "$work/build" "-DCMAKE_PREFIX_PATH=$moved" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" &&
      cmake --build "$work/build"
  } >"$log" 2>&1 || { cat "$log" && fail "the CMake package does not work"; }
  echo "CMake: $("$work/build/consumer")"
  # Another minor level is another interface.
  printf 'cmake_minimum_required(VERSION 3.18)\nproject(p NONE)\nfind_package(ovstage 0.1 CONFIG REQUIRED)\n' \
    >"$work/CMakeLists.txt"
  if cmake -S "$work" -B "$work/other" "-DCMAKE_PREFIX_PATH=$moved" >"$log" 2>&1; then
    fail "the CMake package claims to serve clients of level 0.1"
  fi
}

with_pkg_config() {
  local level flags
  export PKG_CONFIG_PATH="$moved/lib/pkgconfig"
  level=$(pkg-config --modversion ovstage) || fail "pkg-config does not find ovstage"
  # What pkg-config prints is for a shell to read: its spaces are escaped.
  flags="$(pkg-config --cflags --libs ovstage) -Wl,-rpath,$(pkg-config --variable=libdir ovstage)"
  eval "${CC:-cc} -std=c11 -Wall -Wextra -Werror \"\$here/consumer.c\" $flags -o \"\$work/consumer\"" ||
    fail "the pkg-config file does not work"
  echo "pkg-config: $("$work/consumer")"
  [ "$("$work/consumer")" = "interface level $level" ] || fail "pkg-config says $level"
}

if have cmake; then with_cmake; else echo "CMake: skipped, it is not installed"; fi
if have pkg-config; then with_pkg_config; else echo "pkg-config: skipped, it is not installed"; fi
