#!/usr/bin/env bash
# Open clients of the stage's interface, unmodified, in an environment of their own.
#
#   tests/clients/run.sh            the tests, at both interface levels; arguments go to pytest
#   tests/clients/run.sh survey     newton's scenes, read through the stage and by newton itself, compared; writes
#                                   tests/golden/newton_scenes.txt and newton_scenes_0.3.txt and takes minutes
#
# Level 0.2 is tried with the clients of clients.txt, level 0.3 with ovnewton of clients-0.3.txt in front of them. The
# tables of scenes differ in two files: the newer client takes joints to a base that is no rigid body, the older refuses.
#
# The environment is in build/clients for as long as requirements.txt and the lists do not change; Warp keeps the
# kernels that it compiles beside it. The package is taken from PYTHONPATH (default: python), PYTHON and its
# pip make the environment (default: python3).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
made=$root/build/clients/env
python=$made/bin/python
export WARP_CACHE_PATH=${WARP_CACHE_PATH:-$root/build/clients/kernels}
export PYTHONPATH=${PYTHONPATH:-$root/python}:$here/placeholders

pip() { "${PYTHON:-python3}" -m pip --python "$python" install -q --disable-pip-version-check --no-input "$@"; }

newer=$root/build/clients/newer
older_path=$PYTHONPATH
newer_path=$newer:$PYTHONPATH

wanted=$(cat "$here/requirements.txt" "$here/clients.txt")
if [ "$(cat "$made/made-for.txt" 2>/dev/null)" != "$wanted" ]; then
  printf '== installing the clients into build/clients/env\n'
  rm -rf "$made"
  "${PYTHON:-python3}" -m venv --without-pip "$made"
  pip --no-compile -r "$here/requirements.txt" # most of it is never imported
  pip --no-compile --no-deps -r "$here/clients.txt"
  printf '%s\n' "$wanted" >"$made/made-for.txt"
fi

if [ "$(cat "$newer/made-for.txt" 2>/dev/null)" != "$(cat "$here/clients-0.3.txt")" ]; then
  printf '== installing the clients of interface level 0.3 into build/clients/newer\n'
  rm -rf "$newer"
  pip --no-compile --no-deps --target "$newer" -r "$here/clients-0.3.txt"
  cp "$here/clients-0.3.txt" "$newer/made-for.txt"
fi

# at LEVEL COMMAND ...: with the clients of that level, which is the process's.
at() {
  local path=$older_path
  [ "$1" = 0.2 ] || path=$newer_path
  OVSTAGE_INTERFACE=$1 PYTHONPATH=$path "${@:2}"
}

if [ "${1:-}" = survey ]; then
  at 0.2 "$python" "$here/survey.py" "$root/tests/golden/newton_scenes.txt" "${@:2}"
  at 0.3 "$python" "$here/survey.py" "$root/tests/golden/newton_scenes_0.3.txt" "${@:2}"
  exit
fi
status=0
printf '== clients of interface level 0.2\n'
at 0.2 "$python" -m pytest -q -p no:cacheprovider --disable-warnings "$here" "$@" || status=$?
printf '== clients of interface level 0.3\n'
at 0.3 "$python" -m pytest -q -p no:cacheprovider --disable-warnings "$here/test_ovnewton.py" "$@" || status=$?
exit "$status"
