#!/usr/bin/env bash
# The tests on the fake CUDA driver, without a GPU; arguments go to pytest.
#
# In build/cuda: the driver, an environment with NVIDIA's open Python clients for as long as requirements.txt does not
# change, and the CUDA headers that Go's client is compiled with. PYTHON and its pip make the environment (default:
# python3), CC compiles the driver, GO is the Go command (default: go).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
made=$root/build/cuda
python=$made/env/bin/python

pip() { "${PYTHON:-python3}" -m pip install -q --disable-pip-version-check --no-input --no-compile "$@"; }

if ! cmp -s "$here/requirements.txt" "$made/env/requirements.txt"; then
  printf '== installing into build/cuda\n'
  rm -rf "$made/env" "$made/headers"
  "${PYTHON:-python3}" -m venv --without-pip "$made/env"
  "${PYTHON:-python3}" -m pip --python "$python" install -q --disable-pip-version-check --no-input --no-compile \
    -r "$here/requirements.txt"
  pip --no-deps --target "$made/headers" 'nvidia-cuda-runtime-cu12==12.4.127' # what gorgonia.org/cu knows
  cp "$here/requirements.txt" "$made/env/requirements.txt"
fi

"$here/fake/build.sh" "$made/driver"
ln -sf libcuda.so.1 "$made/driver/libcuda.so" # for the linker
export LD_LIBRARY_PATH=$made/driver CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING=1

printf '== the driver through its calls, and through cuda.core\n'
"$python" -m pytest -q -p no:cacheprovider "$here" "$@"

# The fake has what these tests call; the binding names every entry point of CUDA.
printf '== the driver through gorgonia.org/cu\n'
cd "$here/gorgonia"
CGO_CFLAGS="'-I$made/headers/nvidia/cuda_runtime/include'" \
  CGO_LDFLAGS="'-L$made/driver' -Wl,--unresolved-symbols=ignore-all" "${GO:-go}" test -count=1 ./...
