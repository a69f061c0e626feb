"""One process and its engine: how it starts, which interpreters have it, what signals do to it, how it ends."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from children import run_child

import ovstage

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(ovstage.__file__).parent


def run(*argv, executable=sys.executable, **options):
    return run_child(argv, executable=executable, **options)


def clean(done, stdout="done\n"):
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, "")


# --- start ---

PROGRAM = f"""
import sys
sys.path.insert(0, {str(PACKAGE.parent)!r})
import ovstage
with ovstage.Stage("s") as stage, ovstage.PathDictionary(stage) as names:
    names.intern_token("mass")
print("done")
"""


@pytest.fixture
def program(tmp_path):
    """The same program as a script, a package, a folder and a zip file."""
    (tmp_path / "script.py").write_text(PROGRAM)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["-c", PROGRAM],
        ["-I", "-S", "-c", PROGRAM],
        ["-X", "dev", "-W", "error", "-c", PROGRAM],
        ["-OO", "-c", PROGRAM],
        ["-m", "package"],
        ["package"],
        ["program.pyz"],
        ["script.py", "embedded\nnewline", "", "--", "-test.run=x", b"\xff\xfe"],
    ],
    ids=lambda words: words[0] if words[0] != "-I" else "-I -S",
)
def test_any_command_line(program, words):
    clean(run(sys.executable, *words, cwd=program))


@pytest.mark.parametrize("words", [[], ["-"], ["-", "a\nb"]])
def test_program_on_standard_input(words):
    clean(run(sys.executable, *words, input=PROGRAM))


def test_program_without_a_name():
    clean(run("", input=PROGRAM))


def test_closed_standard_streams(program):
    closed = ["/bin/sh", "-c", 'exec "$0" script.py <&- >&- 2>&-', sys.executable]
    assert run(*closed, executable=None, cwd=program).returncode == 0


@pytest.mark.parametrize(
    "env",
    [{}, {"GOGC": "abc", "GODEBUG": "nonsense=1", "GOMAXPROCS": "many", "GOTRACEBACK": "crash"}],
    ids=["empty", "nonsense"],
)
def test_any_environment(program, env):
    clean(run(sys.executable, "script.py", cwd=program, env=env))


def test_process_that_becomes_another_program(program):
    first = PROGRAM.replace('print("done")', f"import os\nos.execv({sys.executable!r}, ['python', 'script.py'])")
    clean(run(sys.executable, "-c", first, cwd=program))


def test_package_inside_a_zip_file_says_what_is_missing(tmp_path):
    archive = shutil.make_archive(str(tmp_path / "site"), "zip", PACKAGE.parent, "ovstage")
    done = run(sys.executable, "-c", "import ovstage; ovstage.Stage()", env={"PYTHONPATH": archive}, cwd=tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: Failed to load" in done.stderr and archive in done.stderr


@pytest.mark.parametrize("limit", [600, 1400, 1800])
def test_too_little_address_space_is_refused_with_a_sentence(limit):
    """The engine's runtime would end the process."""
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({limit} << 20, -1))\n" + PROGRAM
    done = run(sys.executable, "-c", limited)
    assert done.returncode == 1
    assert "RuntimeError: Failed to load" in done.stderr and "address space" in done.stderr


def test_too_few_threads_are_refused_with_a_sentence(fresh_python):
    """The engine's runtime would end the process. With room for its threads the next use works."""
    program = """
import os, resource, ovstage
from ovstage import PathDictionary, Stage, handles, stage
if os.getuid() == 0:  # for whom there is no limit
    os.setgid(65534), os.setuid(65534)
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
for use in (Stage, PathDictionary, Stage):
    try:
        use()
    except RuntimeError as error:
        assert "Failed to load the native library of ovstage: it works with up to " in str(error), error
        assert "and the system gave this process only 0 more (Resource temporarily unavailable)" in str(error), error
        assert "Raise the limit (ulimit -u, or pids.max of the container)." in str(error), error
    else:
        raise SystemExit("worked")
assert ovstage.library_version() == (0, 2, 1)
resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
Stage().destroy()
print("done")
"""
    clean(fresh_python(program))


# --- which interpreters ---


def test_sub_interpreter_is_refused_and_the_main_one_goes_on(fresh_python):
    program = """
import sys, ovstage
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = f'''
import sys
sys.path[:] = {sys.path!r}
import ovstage
for use in (lambda: ovstage.Stage(), lambda: ovstage.PathDictionary(), lambda: ovstage.library_version()):
    try:
        use()
    except RuntimeError as error:
        assert "Failed to load" in str(error) and "interpreter" in str(error), error
        assert "Reinstall" not in str(error), error
    else:
        raise SystemExit("worked")
print("refused", flush=True)
'''
def elsewhere():
    other = interpreters.create()
    interpreters.run_string(other, code)
    interpreters.destroy(other)

elsewhere()  # before the main interpreter has it
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    elsewhere()
    assert names.intern_token("mass")
"""
    clean(fresh_python(program), "refused\nrefused\n")


def test_free_threaded_interpreter_is_refused_by_the_extension_itself(tmp_path, compiler):
    """For whoever reaches it past the package: a copy of it that is told another version by Python."""
    source = tmp_path / "version.c"
    source.write_text('const char* Py_SetVersion(void) { return "3.14.0 free-threading build (main)"; }\n')
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", tmp_path / "version.so", source], check=True)
    extension = (PACKAGE / "_native.abi3.so").read_bytes()
    assert b"\0Py_GetVersion\0" in extension
    (tmp_path / "_native.abi3.so").write_bytes(extension.replace(b"\0Py_GetVersion\0", b"\0Py_SetVersion\0"))
    shutil.copy(PACKAGE / "libovstage.so", tmp_path)
    program = "import _native"
    done = run(sys.executable, "-c", program, env={"LD_PRELOAD": str(tmp_path / "version.so")}, cwd=tmp_path)
    assert done.returncode == 1
    assert "ImportError: this build of ovstage does not support free-threaded Python" in done.stderr


@pytest.fixture
def compiler():
    return build_hook().find_compiler().argv


def build_hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


# --- signals and other runtimes ---

TICKS = """
import numpy as np, ovstage
def ticks(count, each=lambda: None):
    with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
        with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
            for ordinal in range(1, count + 1):
                stage.write_attribute(query, "mass", ordinal, np.float32([ordinal, 2]), is_array=False).wait()
                stage.advance_write_floor(ordinal).wait()
                each()
            assert stage.read(query, ["mass"])["mass"].values.tolist() == [count, 2]
"""


@pytest.mark.parametrize("when", ["never", "before", "after"])
@pytest.mark.parametrize("fault", ["_sigsegv", "_sigabrt"])
def test_faulthandler_reports_the_applications_own_faults(fresh_python, when, fault):
    program = f"""
import faulthandler, sys
if {when!r} == "before":
    faulthandler.enable()
{TICKS}
ticks(10)
if {when!r} == "after":
    faulthandler.enable()
ticks(10)
print("done", flush=True)
faulthandler.{fault}()
"""
    done = fresh_python(program, env={**os.environ, "PYTHONFAULTHANDLER": ""})
    assert done.stdout == "done\n"
    assert done.returncode == -(signal.SIGSEGV if fault == "_sigsegv" else signal.SIGABRT)
    assert ("Fatal Python error" in done.stderr) == (when != "never")
    assert "goroutine" not in done.stderr


def test_signals_of_a_timer_interrupt_nothing(fresh_python):
    program = f"""
import signal
{TICKS}
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while len(seen) < 20:
    ticks(200)
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
"""
    clean(fresh_python(program))


@pytest.mark.parametrize("order", ["first", "second"])
def test_beside_another_go_library(fresh_python, go_library, order):
    """Two Go runtimes in one process, each with its scheduler, its collector and its handlers of faults."""
    program = f"""
import ctypes, threading
def load():
    other = ctypes.CDLL({str(go_library)!r})
    other.Sum.restype, other.Sum.argtypes = ctypes.c_longlong, [ctypes.c_longlong]
    return other
if {order!r} == "second":
    other = load()
{TICKS}
ticks(1)
if {order!r} == "first":
    other = load()

def each():
    assert other.Sum(1000) == 499500
    assert other.RecoversFromNil() == 1

threads = [threading.Thread(target=ticks, args=(100, each)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ticks(100, each)
print("done")
"""
    clean(fresh_python(program))


@pytest.fixture(scope="module")
def go_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    (folder / "go.mod").write_text("module other\n\ngo 1.22\n")
    (folder / "main.go").write_text(
        """
package main

import "C"
import "runtime"

//export Sum
func Sum(n C.longlong) C.longlong {
	parts := make(chan C.longlong)
	for i := range C.longlong(4) {
		go func() {
			var part C.longlong
			for k := i; k < n; k += 4 {
				part += k
			}
			parts <- part
		}()
	}
	runtime.GC()
	return <-parts + <-parts + <-parts + <-parts
}

//export RecoversFromNil
func RecoversFromNil() (recovered C.int) {
	defer func() {
		if recover() != nil {
			recovered = 1
		}
	}()
	var nothing *C.int
	return *nothing
}

func main() {}
"""
    )
    hook = build_hook()
    cc = hook.find_compiler()
    env = {**os.environ, "CC": " ".join(map(str, cc.argv)), "CGO_ENABLED": "1", "GOFLAGS": ""}
    argv = [hook.find_go(ROOT), "build", "-buildmode=c-shared", "-o", "libother.so", "."]
    subprocess.run(argv, cwd=folder, env=env, check=True, timeout=300)
    return folder / "libother.so"


# --- the end ---


def test_daemon_threads_at_exit(fresh_python):
    """They are in the middle of calls, waits and views when the interpreter goes."""
    program = f"""
import threading
{TICKS}
stage = ovstage.Stage()
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings([f"/P{{i}}" for i in range(1000)])
query = stage.query_from_path_list(prims)
stage.write_attribute(query, "mass", 1, np.zeros((1000, 16)), is_array=False).wait()
stage.advance_write_floor(1).wait()
ovstage.set_log_callback(lambda *record: None, ovstage.LogSeverity.VERBOSE)
started = threading.Barrier(7)

def writer():
    started.wait()
    for ordinal in range(2, 1 << 60):
        stage.write_attribute(query, "mass", ordinal, np.full((1000, 16), ordinal, "f8"), is_array=False)

def reader():
    started.wait()
    while True:
        stage.read(query, ["mass"])["mass"].values.sum()

def opener():
    started.wait()
    while True:
        ovstage.Stage("short").destroy()

for work in (writer, writer, reader, reader, opener, opener):
    threading.Thread(target=work, daemon=True).start()
started.wait()
ticks(10)
print("done", flush=True)
"""
    for _ in range(3):
        done = fresh_python(program)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        assert "goroutine" not in done.stderr and "Fatal" not in done.stderr


@pytest.mark.parametrize("warned", ["default", "error"])
def test_everything_left_open_at_exit(fresh_python, warned):
    program = f"""
import atexit, warnings
warnings.simplefilter("{warned}", ResourceWarning)
{TICKS}
stage = ovstage.Stage()
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings(["/A", "/B"])
query = stage.query_from_path_list(prims)
stage.write_attribute(query, "mass", 1, np.float32([1, 2]), is_array=False)
stage.advance_write_floor(1)
read = stage.read_attributes(query, [names.intern_token("mass")], ovstage.OrdinalRange.latest(1))
group = read.fetch_next()
view, export = group.array(0), np.from_dlpack(group.dlpack(0))
mapping = stage.map_attribute(query, "mass", 2)
lent = mapping.fetch_next().array(0)
cycle = [names, prims, query, read, group, mapping, stage.get_attribute_write_floor()]
cycle.append(cycle)
ovstage.set_log_callback(lambda *record: None, ovstage.LogSeverity.VERBOSE)

class AtTheVeryEnd:
    # Something of the program that dies late: calls work, or are refused once the query or the stage is gone.
    def __del__(self, refusal=ovstage.OvstageError, gone=ovstage.ErrorCode.INVALID_HANDLE):
        assert view.tolist() == export.tolist() == lent.tolist() == [1, 2]
        try:
            stage.write_attribute(query, "mass", 3, np.float32([3, 4]), is_array=False).wait()
        except refusal as error:
            assert error.code == gone, error

last = AtTheVeryEnd()
atexit.register(lambda: print("done", stage.read(query, ["mass"])["mass"].values.tolist(), flush=True))
"""
    clean(fresh_python(program), "done [1.0, 2.0]\n")


@pytest.mark.parametrize(
    "end", ["sys.exit(3)", "os._exit(3)", "os.kill(os.getpid(), signal.SIGTERM)", "raise SystemExit(3)"]
)
def test_ends_of_a_program(fresh_python, end):
    done = fresh_python(f"import os, signal, sys, ovstage\nstage = ovstage.Stage()\n{end}")
    assert done.returncode == (-signal.SIGTERM if "SIGTERM" in end else 3)
    assert (done.stdout, done.stderr) == ("", "")


# --- process configuration ---


REFUSED = """
from ovstage import ErrorCode, OvstageError, Stage
from ovstage._load import native
CPU, GPU = 1, 2

def refused(call, text):
    try:
        call()
    except OvstageError as error:
        assert error.code == ErrorCode.INVALID_ARGUMENT and text in error.message, error
    else:
        raise AssertionError(text)

def nothing_left():
    refused(native.shutdown, "has no ovstage_initialize to answer")
"""


def test_initialisations_are_counted(fresh_python):
    """The configuration belongs to the process for as long as an initialisation or a stage holds it."""
    program = f"""
{REFUSED}
nothing_left()
native.initialize(GPU)
native.initialize()
native.initialize(GPU)
native.shutdown()
native.shutdown()
text = "GPU_INCREMENTAL and stays so while a stage or an initialisation is alive; CPU_INCREMENTAL was asked for"
refused(lambda: native.initialize(CPU), text)
native.shutdown()
nothing_left()
native.initialize(CPU)
with Stage():
    native.shutdown()
    refused(lambda: native.initialize(GPU), "GPU_INCREMENTAL was asked for")
native.initialize(GPU)
native.shutdown()
nothing_left()
print("done")
"""
    clean(fresh_python(program))


def test_unknown_model_is_refused(fresh_python):
    program = f"""
{REFUSED}
for model in (0, 5, 2**63):
    refused(lambda: native.initialize(model), f"{{model}} is not a hierarchy computation model")
    nothing_left()
print("done")
"""
    clean(fresh_python(program))
