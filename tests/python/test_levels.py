"""Interface levels: who says which one a stage speaks, and that they differ in the layout of what is read and mapped.

At 0.2 the components of a value are lanes, at 0.3 they are axes. The bytes are the same, and so is all else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from children import run_python
from conftest import Table, address

import ovstage
from ovstage import AttributeSemantic, DLDataType, DLDataTypeCode, OrdinalRange, StageConfig

MATRIX = AttributeSemantic.MATRIX
LEVELS = ["0.2", "0.3"]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stage(level: str) -> Iterator[ovstage.Stage]:
    with ovstage.Stage(config=StageConfig(interface=level)) as stage:
        yield stage


# --- which level a stage has ---


def test_a_stage_speaks_the_level_of_its_config(stage, level):
    assert stage.interface == level


def test_a_stage_without_a_word_has_the_level_of_the_process(monkeypatch):
    expected = ".".join(map(str, ovstage.library_version()[:2]))
    for config in (None, StageConfig(), StageConfig(interface=None)):
        with ovstage.Stage(config=config) as stage:
            assert stage.interface == expected


def test_the_level_is_told_after_the_end(stage, level):
    stage.destroy()
    assert stage.interface == level


@pytest.mark.parametrize("wrong", ["0.4", "", "0.2.1", "0.3 ", "3", "0,3", "latest", "0.3\0", "0.30"])
def test_an_unknown_level_names_the_two(wrong):
    with pytest.raises(ValueError, match=r"interface must be '0[.]2' or '0[.]3', got '"):
        ovstage.Stage(config=StageConfig(interface=wrong))


@pytest.mark.parametrize("wrong", [0.3, 3, True, b"0.3", ("0.3",), np.float64(0.3)])
def test_a_level_is_a_text(wrong):
    with pytest.raises(TypeError, match=r"interface must be '0[.]2' or '0[.]3', got"):
        ovstage.Stage(config=StageConfig(interface=wrong))


def test_a_refused_level_leaves_the_process_as_it_was():
    before = ovstage.process_counters()
    for _ in range(3):
        with pytest.raises(ValueError, match=r"0[.]3"):
            ovstage.Stage(config=StageConfig(interface="0.4"))
    assert ovstage.process_counters() == before
    with ovstage.Stage(config=StageConfig(interface="0.3")) as stage:
        assert stage.interface == "0.3"


def said_by(environment: str | None, program: str) -> str:
    import os

    variables = {key: value for key, value in os.environ.items() if key != "OVSTAGE_INTERFACE"}
    if environment is not None:
        variables["OVSTAGE_INTERFACE"] = environment
    child = run_python("import os, ovstage\nfrom ovstage import Stage, StageConfig\n" + program, env=variables)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [(None, "(0, 2, 1) 0.2"), ("", "(0, 2, 1) 0.2"), ("0.2", "(0, 2, 1) 0.2"), ("0.3", "(0, 3, 0) 0.3")],
)
def test_the_environment_says_what_the_config_does_not(environment, expected):
    assert said_by(environment, "print(ovstage.library_version(), Stage().interface)") == expected
    assert said_by(environment, "s = Stage(); print(Stage.get_version(), s.interface)") == expected


def test_the_config_has_the_last_word():
    both = "print(*(Stage(config=StageConfig(interface=level)).interface for level in ('0.2', '0.3')))"
    assert said_by("0.2", both) == said_by("0.3", both) == "0.2 0.3"


def test_the_environment_is_read_once():
    by_question = "ovstage.library_version(); os.environ['OVSTAGE_INTERFACE'] = '0.2'"
    by_stage = "Stage(); os.environ['OVSTAGE_INTERFACE'] = '0.2'"
    for first in (by_question, by_stage):
        assert said_by("0.3", first + "; print(Stage().interface, ovstage.library_version())") == "0.3 (0, 3, 0)"
    later = "os.environ['OVSTAGE_INTERFACE'] = '0.3'; print(Stage().interface)"
    assert said_by(None, later) == "0.3"  # nobody had asked before


@pytest.mark.parametrize("question", ["ovstage.library_version()", "Stage()", "Stage.get_version()"])
def test_an_unknown_level_in_the_environment_is_refused(question):
    program = f"""
for _ in range(2):
    try: {question}
    except ValueError as error: print(error)
"""
    text = "OVSTAGE_INTERFACE is '0.4', which is no interface level: set it to 0.2 or 0.3, or unset it for 0.2"
    assert said_by("0.4", program) == f"{text}\n{text}"


# --- the layout: everything that shows a group, at each level ---

# A row: lanes, role, and the axes of one value at 0.3.
VALUES = [
    (1, AttributeSemantic.NONE, ()),
    (2, AttributeSemantic.NONE, (2,)),
    (3, AttributeSemantic.POINT, (3,)),
    (4, AttributeSemantic.QUATERNION, (4,)),
    (4, MATRIX, (2, 2)),
    (9, MATRIX, (3, 3)),
    (9, AttributeSemantic.NONE, (9,)),
    (16, MATRIX, (4, 4)),
    (16, AttributeSemantic.FRAME, (16,)),
    (16, AttributeSemantic.NONE, (16,)),
    (255, AttributeSemantic.NONE, (255,)),
]


@pytest.fixture(params=VALUES, ids=lambda value: f"{value[0]}-{value[1].name}")
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def rows_of(count: int, lanes: int, dtype: str = "f8") -> np.ndarray:
    rows = np.arange(count * lanes, dtype=dtype).reshape(count, lanes)
    return rows.reshape(-1) if lanes == 1 else rows


def check_layout(group: Any, index: int, expected: np.ndarray, lanes: int, axes: tuple[int, ...], level: str) -> None:
    """All the views of one tensor of a group, against its rows."""
    rows = len(expected)
    shape = (rows, *axes) if level == "0.3" else (rows,)
    tensor = group.tensor(index)
    assert tensor.shape_tuple == shape
    assert tensor.ndim == len(shape)
    assert tensor.dtype == DLDataType(DLDataTypeCode.kDLFloat, 64, 1 if level == "0.3" else lanes)
    assert not tensor.strides
    assert tensor.byte_offset == 0

    flat = group.array(index)
    assert flat.shape == (shape if level == "0.3" else (rows * lanes,))
    assert group.array(index, shaped=True).shape == (rows, lanes)
    np.testing.assert_array_equal(flat.reshape(-1), expected.reshape(-1))
    assert ovstage.dltensor_to_numpy(tensor).tolist() == flat.reshape(-1).tolist()

    export = group.dlpack(index)
    trailing = axes if level == "0.3" else (lanes,) if lanes > 1 else ()
    array = np.from_dlpack(export)
    assert export.shape == shape
    assert array.shape == (rows, *trailing)
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array.reshape(-1), expected.reshape(-1))
    assert np.from_dlpack(group.dlpack(index, shape=(-1,))).shape == (rows * lanes,)
    if rows:
        assert int(tensor.data) == address(flat) == address(array)  # no copy anywhere


def test_a_read_of_fixed_values(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(12), rows_of(12, lanes)
    table.write("v", values, 1, semantic=role)
    table.seal(1)
    with table.group("v", 1) as group:
        assert (group.prim_count, group.is_array, group.has_data_index_map) == (12, False, False)
        assert group.array(0).shape[0] == (12 if level == "0.3" else 12 * lanes)
        check_layout(group, 0, values, lanes, axes, level)


def test_a_read_of_arrays(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(3), [rows_of(2, lanes), rows_of(0, lanes), rows_of(5, lanes)]
    table.write("v", values, 1, is_array=True, lanes=lanes, semantic=role)
    table.seal(1)
    with table.group("v", 1) as group:
        assert group.is_array
        for index, expected in enumerate(values):
            check_layout(group, index, expected, lanes, axes, level)


def test_a_part_of_a_column_and_rows_in_another_order(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(6), rows_of(6, lanes)
    table.write("v", values, 1, semantic=role)
    table.seal(1)
    part = make_table([f"/World/Prim{i}" for i in (2, 3, 4)])
    with part.group("v", 1) as group:
        check_layout(group, 0, values[2:5], lanes, axes, level)
    turned = make_table([f"/World/Prim{i}" for i in (4, 0, 2)])
    with turned.group("v", 1) as group:
        assert group.has_data_index_map
        check_layout(group, 0, values, lanes, axes, level)
        np.testing.assert_array_equal(group.array(0, shaped=True)[group.data_rows()].reshape(3, -1),
                                      values[[4, 0, 2]].reshape(3, -1))  # fmt: skip


def test_a_map_of_fixed_values(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(4), rows_of(4, lanes)
    dtype = DLDataType(DLDataTypeCode.kDLFloat, 64, lanes)  # what describes a map is the same at both levels
    with table.stage.map_attribute(table.query, "v", 1, dtype=dtype, semantic=role) as mapping:
        (group,) = mapping.groups()
        check_layout(group, 0, np.zeros_like(values), lanes, axes, level)
        group.array(0)[:] = values.reshape(group.array(0).shape)
        check_layout(group, 0, values, lanes, axes, level)
        del group
    table.seal(1)
    with table.group("v", 1) as group:
        check_layout(group, 0, values, lanes, axes, level)


def test_a_map_that_names_no_role_has_that_of_the_column(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(4), rows_of(4, lanes)
    table.stage.write_attribute(table.query, "v", 1, values, is_array=False, semantic=role).wait()
    table.seal(1)
    with table.stage.map_attribute(table.query, "v", 2) as mapping:
        (group,) = mapping.groups()
        check_layout(group, 0, values, lanes, axes, level)
        del group
    with table.stage.map_attribute(table.query, "v", 3, element_sizes=None, initial="zero", group_rows=2) as mapping:
        for group in mapping.groups():
            check_layout(group, 0, np.zeros((2, lanes)), lanes, axes, level)
            del group
    table.seal(3)
    with table.group("v", 3) as group:
        check_layout(group, 0, np.zeros((4, lanes)), lanes, axes, level)


def test_a_map_of_arrays(make_table, level, kind):
    lanes, role, axes = kind
    table = make_table(3)
    dtype = DLDataType(DLDataTypeCode.kDLFloat, 64, lanes)
    sizes = [2, 0, 3]
    with table.stage.map_attribute(table.query, "v", 1, dtype=dtype, semantic=role, element_sizes=sizes) as mapping:
        (group,) = mapping.groups()
        for index, size in enumerate(sizes):
            check_layout(group, index, np.zeros((size, lanes)), lanes, axes, level)
            group.array(index)[...] = index
        assert "arrays of" in repr(group)
    table.seal(1)
    with table.group("v", 1) as group:
        for index, size in enumerate(sizes):
            check_layout(group, index, np.full((size, lanes), float(index)), lanes, axes, level)


def test_what_is_ours_alone_is_the_same_at_both_levels(make_table, level, kind):
    lanes, role, axes = kind
    table, values = make_table(3), rows_of(3, lanes)
    table.write("v", values, 1, semantic=role)
    table.write("r", [values, values[:0], values[:2]], 1, is_array=True, lanes=lanes, semantic=role)
    table.seal(1)
    columns = table.stage.read(table.query, ["v", "r"])
    np.testing.assert_array_equal(columns["v"].values, values)
    np.testing.assert_array_equal(columns["r"].values, np.concatenate([values, values[:2]]))
    assert columns["v"].row(1).shape == values[1].shape
    np.testing.assert_array_equal(np.asarray(columns["v"]), values)
    with table.group("v", 1) as group:
        np.testing.assert_array_equal(np.asarray(group), values)
        assert (f"float64x{lanes}" if lanes > 1 else "float64") in repr(group)
    (attribute,) = (a for a in table.stage.attributes() if a.name == "v")
    assert (attribute.dtype, attribute.lanes, attribute.semantic) == ("float64", lanes, role)
    exported = np.from_dlpack(columns["v"])  # an export, so it is as the group's
    assert exported.shape == ((3, *axes) if level == "0.3" else values.shape)
    assert address(exported) == address(columns["v"].values)


def test_other_element_types_and_no_rows(make_table, level):
    table = make_table(2)
    table.write("half", np.ones((2, 3), np.float16), 1)
    table.write("truth", np.ones((2, 2), bool), 1)
    table.write("link", np.arange(4, dtype=np.uint64).reshape(2, 2), 1, semantic=AttributeSemantic.ASSET_PATH_ID)
    table.seal(1)
    for name, dtype, lanes in (("half", "f2", 3), ("truth", "?", 2), ("link", "u8", 2)):
        with table.group(name, 1) as group:
            array = group.array(0)
            assert array.dtype == dtype
            assert array.shape == ((2, lanes) if level == "0.3" else (2 * lanes,))
            assert not array.flags.writeable


def test_private_copies_and_legacy_capsules_follow(make_table, level):
    table, values = make_table(2), np.arange(32.0).reshape(2, 4, 4)
    table.write("m", values, 1, semantic=MATRIX)
    table.seal(1)
    shape = (2, 4, 4) if level == "0.3" else (2, 16)
    with table.group("m", 1) as group:
        for export in (group.dlpack(0, private=True), group.dlpack(0, readonly=False)):
            array = np.from_dlpack(export)
            assert array.shape == shape
            np.testing.assert_array_equal(array.reshape(2, 4, 4), values)
        described = ovstage.DLTensor.from_dlpack(group.dlpack(0))
        assert described.shape_tuple == shape
        with pytest.raises(ValueError, match="for 2 rows of 16 elements"):
            group.dlpack(0, shape=(5, 5))


# --- writes are the same, and take what was read ---


def forms(lanes: int) -> Iterator[tuple[str, Callable[[np.ndarray], Any]]]:
    yield "rows", lambda rows: rows
    yield (
        "lanes",
        lambda rows: ovstage.make_dltensor(
            rows.reshape(-1), dtype=DLDataType(DLDataTypeCode.kDLFloat, 64, lanes), shape=[len(rows)]
        ),
    )
    if lanes == 16:
        yield "squares", lambda rows: rows.reshape(-1, 4, 4)


@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_a_write_takes_every_form(make_table, level, lanes):
    table, rows = make_table(3), np.arange(3.0 * lanes).reshape(3, lanes)
    for ordinal, (name, form) in enumerate(forms(lanes), 1):
        table.write(name, form(rows), ordinal, semantic=MATRIX if lanes == 16 else AttributeSemantic.NONE)
        table.seal(ordinal)
        with table.group(name, ordinal) as group:
            np.testing.assert_array_equal(group.array(0, shaped=True), rows)


def test_what_was_read_can_be_written(make_table, level):
    table, values = make_table(3), np.arange(48.0).reshape(3, 16)
    table.write("m", values, 1, semantic=MATRIX)
    table.write("r", [np.ones((2, 3)), np.ones((1, 3)), np.ones((0, 3))], 1, is_array=True, lanes=3)
    table.seal(1)
    with table.group("m", 1) as group, table.group("r", 1) as arrays:
        for ordinal, given in enumerate((group.tensor(0), group.dlpack(0), np.from_dlpack(group.dlpack(0))), 2):
            table.write("m", given, ordinal, semantic=MATRIX)
        rows = [arrays.tensor(i) for i in range(3)]
        options = {"lanes": 3} if level == "0.3" else {}
        table.write("r", rows, 4, is_array=True, **options)
    table.seal(4)
    with table.group("m", 4) as group, table.group("r", 4) as arrays:
        np.testing.assert_array_equal(group.array(0, shaped=True), values)
        assert [arrays.array(i, shaped=True).shape for i in range(3)] == [(2, 3), (1, 3), (0, 3)]


# --- both in one process ---


def test_stages_of_both_levels_side_by_side():
    """Two threads write and read both stages in turns: nobody ever sees the other one's layout."""
    rounds, faults = 200, []
    values = np.arange(32.0).reshape(2, 4, 4)
    turn = threading.Barrier(2, timeout=60)

    with (
        ovstage.Stage(config=StageConfig(interface="0.2")) as old,
        ovstage.Stage(config=StageConfig(interface="0.3")) as new,
        ovstage.PathDictionary(old) as names,
    ):
        tables = {stage: Table(stage, names, ["/A", "/B"]) for stage in (old, new)}
        shapes = {old: (2,), new: (2, 4, 4)}

        def work(first: ovstage.Stage, second: ovstage.Stage, name: str) -> None:
            try:
                for ordinal in range(1, rounds + 1):
                    for stage in (first, second):
                        table = tables[stage]
                        stage.write_attribute(table.query, name, ordinal, values + ordinal, semantic=MATRIX,
                                              is_array=False).wait()  # fmt: skip
                    turn.wait()
                    for stage in (first, second):
                        stage.advance_write_floor(ordinal).wait()
                    for stage in (second, first):
                        with tables[stage].group(name, ordinal) as group:
                            assert group.tensor(0).shape_tuple == shapes[stage]
                            np.testing.assert_array_equal(group.array(0).reshape(2, 4, 4), values + ordinal)
                    turn.wait()
            except BaseException as error:
                faults.append(error)
                turn.abort()

        threads = [
            threading.Thread(target=work, args=(old, new, "a"), daemon=True),
            threading.Thread(target=work, args=(new, old, "b"), daemon=True),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads), sys._current_frames()
        assert not faults, faults
        for table in tables.values():
            table.close()


def test_a_tensor_of_one_level_is_written_to_the_other():
    values = np.arange(32.0).reshape(2, 4, 4)
    paths = ["/A", "/B"]
    with (
        ovstage.Stage(config=StageConfig(interface="0.2")) as old,
        ovstage.Stage(config=StageConfig(interface="0.3")) as new,
    ):
        for stage in (old, new):
            stage.write(paths, "m", 1, values, semantic=MATRIX).wait()
            stage.advance_write_floor(1).wait()
        for source, target in ((old, new), (new, old)):
            with source.query() as query, source.read_attributes(query, ["m"], OrdinalRange.latest(1)) as read:
                for group in read.groups():
                    with group:
                        target.write(paths, "copy", 2, group.dlpack(0), semantic=MATRIX).wait()
        for stage in (old, new):
            stage.advance_write_floor(2).wait()
            column = stage.read(paths, ["copy"])["copy"]
            assert column.semantic is MATRIX
            np.testing.assert_array_equal(column.values, values.reshape(2, 16))
