#!/usr/bin/env bash
# Open clients of the stage's interface, unmodified, in an environment of their own.
#
#   tests/clients/run.sh            the tests; arguments go to pytest
#   tests/clients/run.sh survey     newton's scenes, read through the stage and by newton itself, compared; writes
#                                   tests/golden/newton_scenes.txt and takes minutes
#
# The environment is in build/clients for as long as requirements.txt and clients.txt do not change; Warp keeps the
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

wanted=$(cat "$here/requirements.txt" "$here/clients.txt")
if [ "$(cat "$made/made-for.txt" 2>/dev/null)" != "$wanted" ]; then
  printf '== installing the clients into build/clients/env\n'
  rm -rf "$made"
  "${PYTHON:-python3}" -m venv --without-pip "$made"
  pip --no-compile -r "$here/requirements.txt" # most of it is never imported
  pip --no-compile --no-deps -r "$here/clients.txt"
  printf '%s\n' "$wanted" >"$made/made-for.txt"
fi

if [ "${1:-}" = survey ]; then
  exec "$python" "$here/survey.py" "$root/tests/golden/newton_scenes.txt" "${@:2}"
fi
"$python" -m pytest -q -p no:cacheprovider --disable-warnings "$here" "$@"
