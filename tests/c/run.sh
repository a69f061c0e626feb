#!/usr/bin/env bash
# The tests of the C interface.
#
#   tests/c/run.sh [DIRECTORY [PREFIX]]
#
# DIRECTORY holds libovstage.so (default: python/ovstage). PREFIX is a folder with headers, library, CMake package and
# pkg-config file (default: build/prefix); without it the packaging is not checked. CC and CXX choose the compilers.
# What the machine lacks - a C++ compiler, Go, valgrind, cmake, pkg-config - is skipped and said so.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
directory=$(cd "${1:-$root/python/ovstage}" && pwd)
prefix=${2:-$root/build/prefix}
include=$root/capi_export/include
library=$directory/libovstage.so

go=${GO:-go}
read -ra cc <<<"${CC:-cc}"
read -ra cxx <<<"${CXX:-c++}"
warnings=(-Wall -Wextra -Werror -pedantic "-I$include")
c=("${cc[@]}" -std=c11 "${warnings[@]}")
cpp=("${cxx[@]}" -std=c++17 "${warnings[@]}")
mapfile -t names <"$here/client.txt" # the files of the client, which the sanitizers try, too
sources=("${names[@]/#/$here/}")
link=("-L$directory" "-Wl,-rpath,$directory" -lovstage -pthread)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '== %s\n' "$*"; }
within() { "$here/../within.sh" "$@"; } # a program that hangs shows its stacks
have() { command -v "$1" >/dev/null; }
fail() {
  printf 'tests/c/run.sh: %s\n' "$*" >&2
  exit 1
}

[ -f "$library" ] || fail "there is no $library: build the library first, or name the folder that holds it"
have "${cc[0]}" || fail "there is no C compiler ${cc[0]}: install one, or name one in CC"
with_cpp=true
have "${cxx[0]}" || with_cpp=false

headers() {
  local header count=0
  while read -r header; do
    printf '#include <%s>\nint main(void) { return 0; }\n' "$header" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cpp"
    "${c[@]}" -fsyntax-only "$work/alone.c" || fail "$header does not compile alone as C"
    if $with_cpp; then "${cpp[@]}" -fsyntax-only "$work/alone.cpp" || fail "$header does not compile alone as C++"; fi
    count=$((count + 1))
  done < <(cd "$include" && find . -name '*.h' | sed 's|^\./||' | sort)
  echo "$count headers compile alone"
}

layout() {
  "${c[@]}" -fsyntax-only "$here/layout.c" || fail "the layout differs for a C compiler"
  if $with_cpp; then "${cpp[@]}" -fsyntax-only "$here/layout.cpp" || fail "the layout differs for a C++ compiler"; fi
  echo "sizes, offsets, slots, numbers and prototypes are as they must be"
}

# The library shows exactly the functions whose prototypes layout.c repeats, and has the name that clients ask for.
symbols() {
  sed -n '/^\/\* ---- Prototypes/,$p' "$here/layout.c" | grep -oE '(ovstage|ovalign)_[a-z0-9_]+\(' | tr -d '(' | sort \
    >"$work/wanted"
  nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort >"$work/shown"
  diff "$work/wanted" "$work/shown" || fail "the exported symbols differ: < missing, > too many"
  readelf -d "$library" | grep -q 'SONAME.*\[libovstage\.so\]' || fail "the SONAME is not libovstage.so"
  echo "$(wc -l <"$work/wanted") functions are exported, and nothing else"
}

client() { # NAME COMPILER...
  "${@:2}" "${link[@]}" -o "$work/$1" || fail "the client does not build with ${*:2:2}"
  within 300 "$work/$1" >"$work/$1.txt" || { cat "$work/$1.txt" && fail "the client found faults"; }
  tail -n 1 "$work/$1.txt"
}

# The same client at the newer interface level, and what becomes of a level that there is not.
newer_level() {
  OVSTAGE_INTERFACE=0.3 within 300 "$work/client" >"$work/newer.txt" || { cat "$work/newer.txt" && fail "the client found faults at interface level 0.3"; }
  tail -n 1 "$work/newer.txt"
  OVSTAGE_INTERFACE=0.4 within 60 "$work/client" >"$work/unknown.txt" || { cat "$work/unknown.txt" && fail "interface level 0.4 is not refused"; }
}

# Address errors and definite losses count; valgrind.supp says what of Go's own does not. Go's heap, with the stacks of
# its goroutines, lies far above everything that malloc and mmap give out: memcheck, which mistakes a change of stack
# for one that grew or shrank, is told to keep away from there.
leaks() {
  within 900 valgrind -q --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
    --child-silent-after-fork=yes --ignore-ranges=0xc000000000-0x7fffffffffff --suppressions="$here/valgrind.supp" \
    "$work/client" 0 >"$work/valgrind.txt" 2>"$work/valgrind.log" ||
    { cat "$work/valgrind.txt" "$work/valgrind.log" && fail "valgrind found faults"; }
  tail -n 1 "$work/valgrind.txt"
}

# The golden scripts, that Go and Python play as well; under valgrind where there is one.
scripts() {
  local under=()
  if have valgrind; then
    under=(valgrind -q --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite
      --show-leak-kinds=definite --ignore-ranges=0xc000000000-0x7fffffffffff "--suppressions=$here/valgrind.supp")
  fi
  "${c[@]}" -g "$here/script.c" "$here/scene.c" "${link[@]}" -o "$work/script" || fail "the player of scripts does not build"
  within 300 "$work/script" "$here"/../scripts/*.txt >"$work/script.txt" ||
    { cat "$work/script.txt" && fail "the answers differ from those of the scripts"; }
  OVSTAGE_INTERFACE=0.3 within 300 "$work/script" "$here"/../scripts/*.txt >"$work/script.txt" ||
    { cat "$work/script.txt" && fail "the answers differ from those of the scripts at interface level 0.3"; }
  if [ ${#under[@]} != 0 ]; then
    within 600 "${under[@]}" "$work/script" "$here"/../scripts/*.txt >"$work/script.txt" 2>"$work/script.log" ||
      { cat "$work/script.txt" "$work/script.log" && fail "valgrind found faults in the player of scripts"; }
  fi
  tail -n 1 "$work/script.txt"
}

# It stands in for malloc and its kin, which only a GNU compiler lets a program do without a word.
scarce() {
  "${cc[@]}" -std=gnu11 -Wall -Wextra -Werror "-I$include" -g "$here/scarce.c" "$here/shortage.c" "$here/scene.c" "${link[@]}" \
    -ldl -o "$work/scarce" || fail "the client for scarce memory does not build"
  within 300 "$work/scarce" >"$work/scarce.txt" || { cat "$work/scarce.txt" && fail "scarce memory does harm"; }
  tail -n 1 "$work/scarce.txt"
}

# A build of the library in which each function that Go exports to C panics when it is told to, and those functions show.
panics() {
  local names
  printf '{ global: ovstage_*; ovalign_*; ovgo*; local: *; };\n' >"$work/faults.map"
  (cd "$root" && CGO_ENABLED=1 "$go" build -tags faults -buildmode=c-shared -buildvcs=false \
    "-ldflags=-extldflags '-Wl,-soname,libovstage.so \"-Wl,--version-script=$work/faults.map\"'" \
    -o "$work/faults/libovstage.so" ./capi_export) || fail "the library does not build with the tag faults"
  mapfile -t names < <(nm -D --defined-only "$work/faults/libovstage.so" | awk '{ print $NF }' | sed 's/@.*//' | grep '^ovgo')
  [ ${#names[@]} -gt 0 ] || fail "the library with the tag faults shows no function of Go"
  "${c[@]}" -D_GNU_SOURCE -g "$here/panics.c" "$here/scene.c" "-L$work/faults" "-Wl,-rpath,$work/faults" -lovstage -ldl -pthread \
    -o "$work/panics" || fail "the client for panics does not build"
  within 300 "$work/panics" "${names[@]}" >"$work/panics.txt" || { cat "$work/panics.txt" && fail "a panic does harm"; }
  tail -n 1 "$work/panics.txt"
}

say headers && headers
say layout && layout
say symbols && symbols
say "client, C11" && client client "${c[@]}" -g "${sources[@]}"
say "client, interface level 0.3" && newer_level
if $with_cpp; then
  say "client, C++17" && client client_cpp "${cpp[@]}" -x c++ "${sources[@]}" -x none
else
  say "C++: skipped, there is no ${cxx[0]}"
fi
say "calls while memory is scarce" && scarce
say "golden scripts" && scripts
if have "$go"; then
  say "panics in every function of Go" && panics
elif [ -n "${CI:-}" ]; then
  fail "there is no $go, which builds the library for panics: set GO"
else
  say "panics: skipped, there is no $go"
fi
if have valgrind; then
  say "client, under valgrind" && leaks
else
  say "valgrind: skipped, it is not installed"
fi
if [ -d "$prefix/lib/cmake/ovstage" ]; then
  say "packaging" && "$here/consume/check.sh" "$prefix"
else
  say "packaging: skipped, there is no package in $prefix"
fi
