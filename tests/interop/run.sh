#!/usr/bin/env bash
# The exchange with other libraries, in environments of its own.
#
#   tests/interop/run.sh          all tests; writes what they saw into docs/interop.md
#   tests/interop/run.sh torch    the same for PyTorch alone, which takes 1.4 GB of disk
#
# The environments are in build/interop, one for each file in requirements/, for as long as these files do not change:
# `oldest` has the oldest NumPy that is supported and nothing else, `newest` all libraries but PyTorch. The package is
# taken from PYTHONPATH (default: python), PYTHON and its pip make the environments (default: python3), CC and CXX
# build the modules of the tests.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
made=$root/build/interop
export PYTHONPATH=${PYTHONPATH:-$root/python}

# environment NAME [PIP OPTION ...]: make it, or have it.
environment() {
  local folder=$made/$1 wanted=$here/requirements/$1.txt
  shift
  ! cmp -s "$wanted" "$folder/requirements.txt" || return 0
  printf '== installing into %s\n' "${folder#"$root/"}"
  rm -rf "$folder"
  "${PYTHON:-python3}" -m venv --without-pip "$folder"
  "${PYTHON:-python3}" -m pip --python "$folder/bin/python" install -q --disable-pip-version-check --no-input \
    --no-compile "$@" -r "$wanted" # most of it is never imported
  cp "$wanted" "$folder/requirements.txt"
}

# suite NAME TESTS: run those of the tests there at both interface levels, and record what they see at the older one.
suite() {
  printf '== %s: %s\n' "$1" "$2"
  OVSTAGE_INTERFACE=0.2 "$made/$1/bin/python" -m pytest -q -p no:cacheprovider --record "$made/$1.json" -k "$2" "$here"
  printf '== %s at interface level 0.3: %s\n' "$1" "$2"
  OVSTAGE_INTERFACE=0.3 "$made/$1/bin/python" -m pytest -q -p no:cacheprovider -k "$2" "$here"
}

# report MARK NAME ...: put what was recorded there into that part of the document.
report() {
  local names=("${@:2}")
  (cd "$made" && "$2/bin/python" "$here/report.py" "$root/docs/interop.md" "$1" "${names[@]/%/.json}")
}

mkdir -p "$made"
case ${1:-all} in
  all)
    environment oldest
    environment newest
    suite oldest 'not test_matrix or NumPy' # the other libraries are not there
    suite newest 'not PyTorch'
    report seen oldest newest
    printf '== newest: examples that need pyarrow\n'
    "$made/newest/bin/python" -m pytest -q -p no:cacheprovider --noconftest -k 'test_example and (arrow or tables)' \
      "$root/tests/python/test_docstrings.py"
    ;;
  torch)
    environment torch --no-deps
    stubs=$made/torch/stubs
    [ -d "$stubs" ] || "$made/torch/bin/python" "$here/torch_stubs.py" "$stubs"
    LD_LIBRARY_PATH=$stubs suite torch 'test_matrix and PyTorch'
    report torch torch
    ;;
  *)
    printf 'tests/interop/run.sh: unknown argument %s: give torch, or nothing\n' "$1" >&2
    exit 1
    ;;
esac
