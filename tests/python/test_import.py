"""What `import ovstage` does, and above all what it does not."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ovstage

PUBLISHED = """
Stage StageConfig Query Read Map OrdinalQuery Hierarchy PathDictionary PathList OvxError OvstageError OvstageWarning
ErrorCode FilterOp
PrimMode AttributeSemantic HierarchyRelation HierarchyComputationModel Scope PopulationDomain LogSeverity OrdinalRange
Predicate Filter Operation WriteDesc ReadGroup MapGroup AttributeMeta QueryResult HierarchyItem HierarchyResult
HierarchyComputationModelDesc DLTensor ManagedDLTensor DLDataType DLDevice DLDeviceType DLDataTypeCode make_dltensor
dltensor_to_numpy numpy_to_dldatatype instancing population library_version set_log_callback flush_log TIMEOUT_INFINITE
OVSTAGE_TIMEOUT_INFINITE OVX_API_SUCCESS OVX_API_ERROR __version__
"""
MODULES = ["instancing", "population"]
PACKAGE = Path(ovstage.__file__).parent


def test_published_names_are_the_interface():
    assert sorted(ovstage.__all__) == sorted(PUBLISHED.split())
    assert all(hasattr(ovstage, name) for name in ovstage.__all__)
    assert set(ovstage.__all__) <= set(dir(ovstage))


def test_star_import_gives_every_published_name():
    scope: dict[str, object] = {}
    exec("from ovstage import *", scope)
    assert set(ovstage.__all__) <= set(scope)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'ovstage' has no attribute 'Stag'"):
        _ = ovstage.Stag


@pytest.mark.parametrize("name", ["gates", "process_counters", "Column", "view"])
def test_reachable_but_not_advertised(name):
    assert getattr(ovstage, name) is not None
    assert name not in ovstage.__all__


def test_gates_are_closed():
    assert ovstage.gates.available() is False


def test_published_modules_are_registered_under_their_dotted_name():
    modules = {name for name in ovstage.__all__ if isinstance(getattr(ovstage, name), ModuleType)}
    assert modules == set(MODULES)
    for name in modules:
        assert sys.modules[f"ovstage.{name}"] is getattr(ovstage, name)
        assert importlib.import_module(f"ovstage.{name}") is getattr(ovstage, name)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    "spelling", ["import ovstage.{0}", "import ovstage.{0} as it", "from ovstage.{0} import __name__ as it"]
)
def test_every_spelling_of_a_dotted_import_works_first_thing(fresh_python, name, spelling):
    done = fresh_python(spelling.format(name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_loads_neither_numpy_nor_the_library(fresh_python):
    program = """
import sys, ovstage
ovstage.ErrorCode.OK, ovstage.DLDataType(2, 32, 3), ovstage.OrdinalRange.latest(1), ovstage.population, dir(ovstage)
loaded = [name for name in sys.modules if name == "numpy" or name.startswith("ovstage._")]
assert set(loaded) <= {"ovstage._version"}, loaded
assert "libovstage" not in open("/proc/self/maps").read()
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_free_threaded_interpreter_is_refused_before_the_extension_is_touched(fresh_python):
    program = """
import sys
sys.abiflags = "t"
try:
    import ovstage
except ImportError as error:
    assert "the free-threaded build has no stable ABI" in str(error), error
else:
    raise SystemExit("imported")
assert not any(name.startswith("ovstage.") for name in sys.modules)
"""
    assert fresh_python(program).returncode == 0


def test_sub_interpreter_is_refused(fresh_python):
    program = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import ovstage
ovstage.library_version()
interpreters.run_string(interpreters.create(), '''
import ovstage
try:
    ovstage.library_version()
except RuntimeError as error:
    print(error)
''')
"""
    done = fresh_python(program)
    assert done.returncode == 0, done.stderr
    assert "ovstage works in the main interpreter only" in done.stdout


@pytest.fixture
def copied(tmp_path):
    """A copy of the package without its native files, and the environment to import it."""
    shutil.copytree(PACKAGE, tmp_path / "ovstage", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


def test_second_distribution_in_the_same_folder_is_refused(fresh_python, copied):
    (copied / "ovstage" / "bin").mkdir()
    done = fresh_python("import ovstage", cwd=copied, env={"PYTHONPATH": str(copied)})
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert "also holds files of another distribution" in done.stderr


def test_missing_library_says_failed_to_load_at_first_use_and_each_time(fresh_python, copied):
    program = """
import ovstage
from ovstage import ErrorCode, OvstageError, make_dltensor, dltensor_to_numpy
for use in (ovstage.library_version, lambda: ovstage.Stage("s"), ovstage.PathDictionary, ovstage.library_version):
    try:
        use()
    except RuntimeError as error:
        assert "Failed to load the native library of ovstage" in str(error), error
        assert not isinstance(error, OvstageError)
    else:
        raise SystemExit(f"{use} worked")
import numpy as np
assert dltensor_to_numpy(make_dltensor(np.float32([1, 2]))).tolist() == [1, 2]
"""
    program = program.replace("(ovstage.library_version,", "(lambda: ovstage.library_version(),", 1)
    program = program.replace(
        "ovstage.PathDictionary, ovstage.library_version)", "ovstage.PathDictionary, lambda: ovstage.library_version())"
    )
    done = fresh_python(program, cwd=copied, env={"PYTHONPATH": str(copied)})
    assert done.returncode == 0, done.stderr


def test_names_start_no_engine(fresh_python):
    program = """
from ovstage import *
import ovstage
assert library_version() == Stage.get_version() == (0, 2, 1)
StageConfig(history_ordinals=3).hierarchy_model()
set_log_callback(print)
assert flush_log() is True
set_log_callback(None)
assert set(ovstage.process_counters().values()) == {0}
ManagedDLTensor, Filter([]), WriteDesc, PathDictionary, instancing, population
assert "libovstage" not in open("/proc/self/maps").read()
Stage().destroy()
assert "libovstage" in open("/proc/self/maps").read()
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def relabelled(good):
    """Our own file with another interface level in its note."""
    at = good.index(b"ovstage\0" + (0).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    return good[: at + 12] + (99).to_bytes(4, "little") + good[at + 16 :]


SPOILED = {
    "missing": (None, "No such file or directory"),
    "empty": (lambda good: b"", "it is no shared library"),
    "text": (lambda good: b"GROUP ( libovstage.so.1 )\n" * 100, "it is no shared library"),
    "cut off": (lambda good: good[: len(good) // 2], "the file ends too early"),
    "cut off in its header": (lambda good: good[:100], "the file ends too early"),
    "another machine": (lambda good: good[:18] + b"\x08\0" + good[20:], "it was built for another kind of machine"),
    "another library": (
        lambda good: (PACKAGE / "_native.abi3.so").read_bytes(),
        "libovstage.so and _native.abi3.so do not belong together",
    ),
    "another version": (relabelled, "libovstage.so and _native.abi3.so do not belong together"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_library_is_refused_before_it_is_loaded(fresh_python, copied, how):
    """By its looks, each time: a library that would end the process is never opened. A good one is taken afterwards."""
    spoil, reason = SPOILED[how]
    good = (PACKAGE / "libovstage.so").read_bytes()
    shutil.copy(PACKAGE / "_native.abi3.so", copied / "ovstage")
    if spoil is not None:
        (copied / "ovstage" / "libovstage.so").write_bytes(spoil(good))
    program = f"""
import shutil, ovstage
from ovstage import PathDictionary, Stage
for use in (ovstage.library_version, Stage, PathDictionary, Stage.get_version):
    try:
        use()
    except RuntimeError as error:
        assert not isinstance(error, ovstage.OvstageError)
        folder = {str(copied / "ovstage")!r}
        assert str(error) == (
            f"Failed to load the native library of ovstage, {{folder}}/libovstage.so: {reason}. "
            "Reinstall the wheel, or run build.sh in a source tree."
        ), error
    else:
        raise SystemExit(f"{{use}} worked")
assert "libovstage" not in open("/proc/self/maps").read()
shutil.copy({str(PACKAGE / "libovstage.so")!r}, "ovstage")
assert ovstage.library_version() == (0, 2, 1)
Stage().destroy()
"""
    done = fresh_python(program, cwd=copied, env={"PYTHONPATH": str(copied)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_pipe_is_no_library_and_is_not_waited_for(fresh_python, copied):
    shutil.copy(PACKAGE / "_native.abi3.so", copied / "ovstage")
    os.mkfifo(copied / "ovstage" / "libovstage.so")
    done = fresh_python("import ovstage; ovstage.library_version()", cwd=copied, env={"PYTHONPATH": str(copied)})
    assert done.returncode == 1
    assert "it is no shared library" in done.stderr


def test_works_without_numpy(fresh_python):
    program = """
import sys
sys.modules["numpy"] = None
import array, ctypes, ovstage
floats = array.array("f", [1, 2, 3, 4, 5, 6])
tensor = ovstage.DLTensor()
tensor.data, tensor.ndim = floats.buffer_info()[0], 1
tensor.device = ovstage.DLDevice(ovstage.DLDeviceType.kDLCPU, 0)
tensor.dtype = ovstage.DLDataType(code=ovstage.DLDataTypeCode.kDLFloat, bits=32, lanes=3)
extent = (ctypes.c_int64 * 1)(2)
tensor.shape = ctypes.cast(extent, ctypes.POINTER(ctypes.c_int64))
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "p", 1, tensor, is_array=False).wait()
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("p")], ovstage.OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                seen = group.tensor(0)
                assert (ctypes.c_float * 6).from_address(seen.data)[:] == [1, 2, 3, 4, 5, 6]
assert sys.modules["numpy"] is None
"""
    done = fresh_python(program)
    assert done.returncode == 0, done.stderr


def test_inline_program_of_several_lines(fresh_python):
    program = 'import ovstage\nprint(ovstage.library_version())\nwith ovstage.Stage("s"):\n    pass\nprint("done")'
    done = fresh_python(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["(0, 2, 1)", "done"]


def test_line_feed_in_an_argument(fresh_python):
    done = fresh_python('import ovstage\nwith ovstage.Stage("s"):\n    print("done")', "embedded\nnewline")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_versions():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", ovstage.__version__)
    assert ovstage.library_version() == ovstage.Stage.get_version() == (0, 2, 1)


def test_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_every_public_object_is_documented():
    undocumented = []
    for name in [*ovstage.__all__, "process_counters", "Column"]:
        value = getattr(ovstage, name)
        if inspect.isclass(value):
            members = {f"{name}.{n}": m for n, m in vars(value).items() if not n.startswith("_")}
            undocumented += [
                n for n, m in members.items() if (callable(m) or isinstance(m, property)) and not m.__doc__
            ]
        if (inspect.isclass(value) or callable(value) or inspect.ismodule(value)) and not value.__doc__:
            undocumented.append(name)
    assert not undocumented
