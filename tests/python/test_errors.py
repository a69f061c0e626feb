"""Exceptions, codes, and a process that keeps quiet."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import ovstage
from ovstage import OVX_API_ERROR, OVX_API_SUCCESS, ErrorCode, LogSeverity, OvstageError, OvxError, StageConfig


def test_codes():
    assert {code.name: int(code) for code in ErrorCode} == {
        "OK": 0, "INVALID_ARGUMENT": 1, "INVALID_HANDLE": 2, "NOT_FOUND": 3, "PRIM_NOT_FOUND": 4,
        "WRITE_FLOOR_VIOLATION": 5, "NOT_SUPPORTED": 6, "QUEUE_FULL": 7, "END_OF_ITERATION": 8, "OUT_OF_MEMORY": 9,
        "LAYOUT_CHANGED": 10, "TIMEOUT": 11, "OP_FAILED": 12, "OUT_OF_RANGE": 13, "INTERNAL": 99,
    }  # fmt: skip
    assert (OVX_API_SUCCESS, OVX_API_ERROR) == (0, 1)
    assert ovstage.TIMEOUT_INFINITE == ovstage.OVSTAGE_TIMEOUT_INFINITE == 2**64 - 1


def test_enum_values():
    assert [int(member) for member in LogSeverity] == [-2, -1, 0, 1, 3]
    assert [int(member) for member in ovstage.FilterOp] == list(range(8))
    assert [int(member) for member in ovstage.AttributeSemantic] == list(range(16))
    assert {mode.name: int(mode) for mode in ovstage.PrimMode} == {"UPSERT": 0, "INSERT": 1, "UPDATE": 2, "REQUIRE": 3}
    assert int(ovstage.Scope.EXCLUDE) == 2
    assert ovstage.PopulationDomain.ALL == ovstage.PopulationDomain.RENDERING | ovstage.PopulationDomain.PHYSICS
    model = ovstage.HierarchyComputationModel
    assert (model.DEFAULT_CPU, model.DEFAULT_GPU) == (model.CPU_INCREMENTAL, model.GPU_GLOBAL)


@pytest.mark.parametrize(
    ("error", "code", "message", "text"),
    [
        (OvstageError(5, "too low"), 5, "too low", "WRITE_FLOOR_VIOLATION: too low"),
        (OvstageError(ErrorCode.TIMEOUT), 11, "", "TIMEOUT"),
        (OvstageError(1234, "odd"), 1234, "odd", "ERROR_1234: odd"),
        (OvxError(1, "no such path"), 1, "no such path", "ovx error 1: no such path"),
        (OvxError(1), 1, "", "ovx error 1"),
    ],
)
def test_what_an_error_says(error, code, message, text):
    assert (error.code, error.message, str(error)) == (code, message, text)
    assert type(error.code) is int
    assert isinstance(error, RuntimeError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, str(copy)) == (type(error), code, text)


def test_errors_are_unrelated():
    assert not issubclass(OvxError, OvstageError)
    assert not issubclass(OvstageError, OvxError)


@pytest.mark.parametrize("kind", [OvstageError, OvxError])
@pytest.mark.parametrize("code", [1.0, "1", None])
def test_code_is_an_int(kind, code):
    with pytest.raises(TypeError, match="code must be an int"):
        kind(code)


def test_text_belongs_to_the_thread_that_failed(table):
    ops = []

    def fail(rows):
        ops.append(table.stage.write_attribute(table.query, "mass", 1, np.zeros(rows, "f4"), is_array=False))

    fail(3)
    other = threading.Thread(target=fail, args=(5,))
    other.start()
    other.join()
    assert "3" in ops[0].error_message()
    assert "5" in ops[1].error_message()


# --- process configuration ---


def test_same_model_may_be_asked_for_twice():
    config = StageConfig(ovstage.HierarchyComputationModel.CPU_INCREMENTAL)
    with ovstage.Stage("a", config), ovstage.Stage("b", config), ovstage.Stage("c"), ovstage.Stage("d", StageConfig()):
        pass


def test_other_model_is_refused_while_a_stage_lives():
    cpu, gpu = (
        StageConfig(ovstage.HierarchyComputationModel.CPU_INCREMENTAL),
        StageConfig(ovstage.HierarchyComputationModel.GPU_INCREMENTAL),
    )
    with ovstage.Stage("a", cpu):
        with pytest.raises(OvstageError) as caught:
            ovstage.Stage("b", gpu)
        assert caught.value.code == ErrorCode.INVALID_ARGUMENT
        with ovstage.Stage("c", cpu):
            pass


# --- one native object for each ---


@pytest.mark.parametrize("config", [None, StageConfig(ovstage.HierarchyComputationModel.CPU_INCREMENTAL)])
def test_stage_is_initialised_once(config):
    stage = ovstage.Stage("once")
    with ovstage.PathDictionary(stage) as names, names.create_path_list_from_strings(["/A"]) as paths:
        with pytest.raises(RuntimeError, match="a Stage cannot be initialised twice"):
            stage.__init__("again", config)
        assert names.get_path_strings(paths) == ["/A"]
        assert not paths.released
    assert paths.released
    stage.destroy()
    other = StageConfig(ovstage.HierarchyComputationModel.GPU_INCREMENTAL)
    ovstage.Stage("other", other).destroy()  # no model was left behind


def test_stage_may_be_initialised_after_a_refusal():
    stage = ovstage.Stage.__new__(ovstage.Stage)
    with pytest.raises(TypeError, match="config must be"):
        stage.__init__("a", 5)
    stage.__init__("a")
    assert stage.alive
    stage.destroy()


def test_name_without_nul():
    with pytest.raises(ValueError, match=r"name must not contain NUL, got 'a\\x00b'"):
        ovstage.Stage("a\0b")
    with pytest.raises(TypeError, match="expected str for name, got 5"):
        ovstage.Stage(5)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_handles_are_not_copied(table, duplicate):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    stage, token = table.stage, table.token("mass")
    with (
        stage.read_attributes(table.query, [token], ovstage.OrdinalRange.latest(1)) as read,
        stage.map_attribute(table.query, token, 2) as mapping,
        stage.get_attribute_write_floor(token) as floor,
    ):
        named = {"a Query": table.query, "a Read": read, "a Map": mapping, "an OrdinalQuery": floor}
        for name, handle in named.items():
            with pytest.raises(TypeError, match=f"^{name} cannot be copied or pickled$"):
                duplicate(handle)
    assert table.read("mass", 1) == [1, 2]


# --- silence ---


def test_a_plain_program_prints_nothing_of_its_own(fresh_python):
    program = """
import numpy as np, ovstage
with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
    with names.create_path_list_from_strings(["/A", "/B"]) as prims, stage.query_from_path_list(prims) as query:
        stage.write_attribute(query, "mass", 1, np.float32([1, 2]), is_array=False).wait()
        assert not stage.write_attribute(query, "mass", 1, np.float32([1]), is_array=False).ok
        stage.advance_write_floor(1).wait()
        with stage.read_attributes(query, [names.intern_token("mass")], ovstage.OrdinalRange.latest(1)) as read:
            with read.fetch_next() as group:
                view = group.array(0)
        with stage.map_attribute(query, "mass", 2) as mapping:
            kept = np.from_dlpack(mapping.fetch_next().dlpack(0))
leak = ovstage.Stage("never closed")
print("done")
"""
    done = fresh_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
