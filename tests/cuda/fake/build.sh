#!/usr/bin/env bash
# Builds the fake driver: tests/cuda/fake/build.sh FOLDER makes FOLDER/libcuda.so.1. CC is the compiler (default: cc).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
"${CC:-cc}" -std=gnu11 -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -shared -Wl,-soname,libcuda.so.1 \
  -o "$1/libcuda.so.1" "$here"/*.c -ldl -lpthread
