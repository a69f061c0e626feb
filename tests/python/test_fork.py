"""A forked child cannot use the library: it is told so at once, and whatever it inherited dies without a sound."""

from __future__ import annotations

import pytest

PROGRAM = """
import gc, os, sys, threading, warnings
import numpy as np
import ovstage

warnings.simplefilter("always")
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # what Python thinks of fork
stage = ovstage.Stage("parent")
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings(["/A", "/B"])
query = stage.query_from_path_list(prims)
token = names.intern_token("mass")
stage.write_attribute(query, "mass", 1, np.float32([1, 2]), is_array=False).wait()
stage.advance_write_floor(1).wait()
read = stage.read_attributes(query, [token], ovstage.OrdinalRange.latest(1))
group = read.fetch_next()
view = group.array(0)
export = np.from_dlpack(group.dlpack(0))
mapping = stage.map_attribute(query, "mass", 2)
lent = mapping.fetch_next().array(0)

child = os.fork()
if child == 0:
    code = 1
    try:
        for call in (
            lambda: stage.write_attribute(query, "mass", 3, np.float32([1, 2]), is_array=False).wait(),
            lambda: stage.advance_write_floor(3).wait(),
            lambda: stage.read_attributes(query, [token], ovstage.OrdinalRange.latest(1)).wait(),
            lambda: stage.query_from_path_list(prims),
            lambda: read.fetch_next(),
            lambda: query.release().wait(),
            lambda: mapping.unmap().wait(),
            lambda: names.intern_token("other"),
            lambda: stage.read(query, [token]),
            lambda: stage.delete_attributes(query, [], 3).wait(),
            lambda: prims.release(),
            lambda: ovstage.Stage("child"),
        ):
            try:
                call()
            except (ovstage.OvstageError, ovstage.OvxError) as error:
                assert "spawn" in str(error), error
            else:
                raise AssertionError("a call worked in a forked child")
        assert view.tolist() == export.tolist() == [1, 2]
        del view, export, lent, group, read, mapping, query, prims
        gc.collect()
        stage.destroy()
        del names, stage
        gc.collect()
        code = 0
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
    os._exit(code)

_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status

# the parent goes on as if nothing had been
mapping.abort()
stage.write_attribute(query, "mass", 3, np.float32([3, 4]), is_array=False).wait()
stage.advance_write_floor(3).wait()
group.release()
read.release().wait()
with stage.read_attributes(query, [token], ovstage.OrdinalRange.latest(3)) as read:
    with read.fetch_next() as group:
        assert group.array(0).tolist() == [3, 4]
assert view.tolist() == [1, 2]
query.release().wait()
prims.release()
stage.destroy()
print("done")
"""


def test_child_is_refused_and_parent_goes_on(fresh_python):
    done = fresh_python(PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_fork_that_python_does_not_know_of(fresh_python):
    """The name in the message is that of the call that was made, not of an earlier one."""
    program = """
import ctypes, os, sys, ovstage
stage = ovstage.Stage("parent")
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings(["/A"])
try:
    stage.query_from_path_list(10**9)
except (ovstage.OvstageError, ovstage.OvxError):
    pass
child = ctypes.PyDLL(None).fork()
if child == 0:
    code = 1
    try:
        for call, name in (
            (lambda: names.intern_token("mass"), "intern_token"),
            (lambda: names.get_paths(prims), "get_paths"),
            (lambda: names.create_path_list_from_strings(["/B"]), "create_path_list_from_strings"),
        ):
            try:
                call()
            except (ovstage.OvstageError, ovstage.OvxError) as error:
                assert error.message.startswith(name + ": ") and "spawn" in error.message, error
            else:
                raise AssertionError(name + " worked in a forked child")
        code = 0
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
    os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
prims.release()
stage.destroy()
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_child_that_exits_normally_does_not_hang(fresh_python):
    program = """
import os, warnings, ovstage
warnings.simplefilter("ignore", DeprecationWarning)  # what Python thinks of fork beside threads
stage = ovstage.Stage("parent")
names = ovstage.PathDictionary(stage)
prims = names.create_path_list_from_strings(["/A"])
child = os.fork()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    prims.release()
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_workers_of_a_parent_that_only_imported(fresh_python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import multiprocessing
from ovstage import PathDictionary, Stage

def child(number):
    with Stage("child") as stage, PathDictionary(stage) as names:
        return names.intern_token("mass") > 0

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(child, range(12), chunksize=1) == [True] * 12
    assert child(0)
"""
    )
    done = fresh_python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_child_that_starts_afresh_works(fresh_python, tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing, ovstage

def child():
    with ovstage.Stage("child") as stage, ovstage.PathDictionary(stage) as names:
        assert names.intern_token("mass")

if __name__ == "__main__":
    with ovstage.Stage("parent"):
        process = multiprocessing.get_context({method!r}).Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0
"""
    )
    done = fresh_python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert done.returncode == 0, done.stderr


def test_forked_worker_is_told_what_to_use(fresh_python):
    program = """
import multiprocessing, warnings, ovstage
warnings.simplefilter("ignore", DeprecationWarning)  # what Python thinks of fork beside threads

def child(answers):
    token = lambda: names.intern_token("mass")
    for use in (ovstage.Stage, stage.counters, ovstage.PathDictionary, ovstage.process_counters, token):
        try:
            use()
            answers.put("worked")
        except RuntimeError as error:
            answers.put(str(error))

stage = ovstage.Stage()
names = ovstage.PathDictionary(stage)
context = multiprocessing.get_context("fork")
answers = context.SimpleQueue()
worker = context.Process(target=child, args=(answers,))
worker.start()
said = [answers.get() for _ in range(5)]
worker.join()
assert worker.exitcode == 0
assert all('"spawn"' in text for text in said), said
assert names.intern_token("mass")
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "top",
    [
        "import ovstage; ovstage.ErrorCode.OK, ovstage.population",
        "from ovstage import *",
        "import ovstage.instancing, ovstage.population.usd",
        "import ovstage; ovstage.library_version(), ovstage.process_counters(), ovstage.flush_log()",
        "import ovstage; ovstage.set_log_callback(lambda *record: None, ovstage.LogSeverity.VERBOSE)",
        "import ovstage; config = ovstage.StageConfig(history_ordinals=2)",
    ],
)
def test_fork_before_the_first_stage(fresh_python, top):
    """Names start no engine, so that a child forked after them starts one of its own; its children are refused then."""
    program = """
import os, warnings
import ovstage
warnings.simplefilter("ignore", DeprecationWarning)  # what Python thinks of fork beside threads
child = os.fork()
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    assert names.intern_token("mass")
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            try:
                names.intern_token("mass")
            except ovstage.OvstageError as error:
                os._exit('"spawn"' not in str(error))
            os._exit(2)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = fresh_python(f"{top}\n{program}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("options", ["", "preexec_fn=lambda: None", "start_new_session=True", "close_fds=False"])
def test_other_programs_are_started_as_ever(fresh_python, options):
    program = f"""
import subprocess, sys, warnings, ovstage
warnings.simplefilter("ignore", DeprecationWarning)
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    done = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, {options})
    assert (done.returncode, done.stdout) == (0, b"1\\n"), done
    assert names.intern_token("mass")
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BUSY = """
import gc, os, signal, sys, threading, time, warnings
import numpy as np
import ovstage
from ovstage import DLDataType, LogSeverity, OrdinalRange, OvstageError, PathDictionary, Stage, population
warnings.simplefilter("ignore")
def prims_of(stage, names):
    return stage.query_from_path_list(names.create_path_list_from_strings([f"/P{i}" for i in range(500)]))

def open_and_close():
    while True:
        with Stage("busy") as stage, PathDictionary(stage) as names:
            query = prims_of(stage, names)
            for ordinal in range(1, 20):
                stage.write_attribute(query, "a", ordinal, np.zeros((500, 4)), is_array=False)
                stage.release_query(10**9)
                stage.advance_write_floor(ordinal)

def use():
    for ordinal in range(2, 1 << 60):
        stage.write_attribute(query, "a", ordinal, np.zeros((500, 4)), is_array=False)
        stage.advance_write_floor(ordinal)
        with stage.read_attributes(query, [token], OrdinalRange.latest(ordinal)) as read, read.fetch_next() as group:
            group.array(0)
        with stage.map_attribute(query, "b", ordinal + 1, dtype=DLDataType(2, 32, 4)) as mapping:
            mapping.fetch_next()

stage = Stage("parent")
names = PathDictionary(stage)
query, token = prims_of(stage, names), names.intern_token("a")
stage.write_attribute(query, "a", 1, np.zeros((500, 4)), is_array=False).wait()
stage.advance_write_floor(1).wait()
read = stage.read_attributes(query, [token], OrdinalRange.latest(1))
group = read.fetch_next()
view = np.from_dlpack(group.dlpack(0))
mapping = stage.map_attribute(query, "a", 1 << 62)
lent = mapping.fetch_next().array(0)
ovstage.set_log_callback(lambda *record: None, LogSeverity.VERBOSE)
for work in (open_and_close, open_and_close, use):
    threading.Thread(target=work, daemon=True).start()

def ended(child):
    return os.waitpid(child, os.WNOHANG)[0] != 0

def in_a_child(end):
    child = os.fork()
    if child == 0:
        try:
            exec(end, globals())
        except BaseException:
            pass
        os._exit(0)
    for _ in range(6000):
        if ended(child):
            return
        time.sleep(0.01)  # between two looks; the loop ends with the child
    os.kill(child, signal.SIGKILL)
    sys.exit(f"{end}: the child hangs")
"""

ENDS = [
    "stage.destroy()",
    "with stage: pass",
    "del stage, names, query, read, group, view, mapping, lent; gc.collect()",
    "ovstage.flush_log()",
    "ovstage.set_log_callback(None)",
    "ovstage.set_log_callback(print)",
    "mapping.abort()",
    "group.release()",
    "read.fetch_next()",
    "ovstage.process_counters()",
    "Stage()",
    "PathDictionary()",
    "repr(stage)",
    "population.open_usd_from_string(stage, '#usda 1.0', 5)",
]


def test_children_of_a_busy_parent_never_hang(fresh_python):
    """Whatever lock another thread holds at the fork: in a child nobody waits for it."""
    done = fresh_python(f"{BUSY}\nfor _ in range(3):\n    for end in {ENDS!r}:\n        in_a_child(end)\nos._exit(0)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FORKS_UNDER_LOG = """
import os, signal, sys, threading, time, warnings
import ovstage
from ovstage import LogSeverity, OvstageError, Stage
warnings.simplefilter("ignore")
stage = Stage()
ovstage.set_log_callback(lambda *record: None, LogSeverity.VERBOSE)

def log():
    while True:
        stage.release_query(10**9)

def fork(times):
    for _ in range(times):
        child = os.fork()
        if child == 0:
            os._exit(0)
        deadline = time.monotonic() + 20
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                print("a child hangs", flush=True)
                os._exit(1)
            time.sleep(0.0005)  # between two looks; the loop ends with the child

threading.Thread(target=log, daemon=True).start()
threads = [threading.Thread(target=fork, args=(600,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
os._exit(0)
"""


def test_forks_while_the_log_is_delivered(fresh_python):
    """The thread that calls the callback comes into the interpreter all the time; two threads fork meanwhile."""
    done = fresh_python(FORKS_UNDER_LOG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
