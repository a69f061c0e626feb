"""Values go in, are sealed, and come back: shapes, roles, write modes, floors."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import address, stored

from ovstage import (
    AttributeSemantic,
    DLDataType,
    DLDataTypeCode,
    ErrorCode,
    OrdinalRange,
    OvstageError,
    PrimMode,
    Scope,
    WriteDesc,
    make_dltensor,
)

BOTH_LEVELS = True

FLOAT3 = DLDataType(code=DLDataTypeCode.kDLFloat, bits=32, lanes=3)


def refuses(code, call, *texts):
    with pytest.raises(OvstageError) as caught:
        call()
    assert caught.value.code == code
    for text in texts:
        assert text in caught.value.message
    return caught.value.message


# --- round trips ---


def test_round_trip(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    read = table.stage.read_attributes(table.query, [table.token("mass")], OrdinalRange.latest(1))
    read.wait()
    group = read.fetch_next()
    assert group.array(0).tolist() == [1, 2]
    assert read.fetch_next() is None
    table.stage.release_group(group)
    read.release().wait()


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", "c8", "c16"], ids=str
)
def test_every_numpy_type_comes_back_as_itself(table, dtype):
    values = np.array([0, 1], dtype)
    table.write("value", values, 1)
    table.seal(1)
    with table.group("value", 1) as group:
        assert group.array(0).dtype == values.dtype
        assert group.array(0).tolist() == values.tolist()
        assert np.from_dlpack(group.dlpack(0)).dtype == values.dtype


@pytest.mark.parametrize(
    "source",
    [
        np.arange(12, dtype="f4").reshape(2, 6)[:, ::2],
        np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)),
        np.arange(6, dtype="f4").reshape(2, 3)[::-1],
        np.arange(6, dtype="f4").reshape(2, 3)[:, ::-1],
        np.broadcast_to(np.float32([1, 2, 3]), (2, 3)),
        np.arange(12, dtype="f4").reshape(4, 3)[1:3],
        np.lib.stride_tricks.as_strided(np.arange(6, dtype="f4"), (2, 3), (4, 8)),
    ],
    ids=["strided", "fortran", "reversed rows", "reversed lanes", "broadcast", "offset", "overlapping"],
)
def test_any_memory_layout_gives_its_values(table, source):
    class Producer:
        def __dlpack__(self, **options):
            return (
                source.copy(order="K").__dlpack__(**options) if source.strides[0] == 0 else source.__dlpack__(**options)
            )

        def __dlpack_device__(self):
            return 1, 0

    table.write("array", source, 1)
    table.write("producer", Producer(), 1)
    table.seal(1)
    assert table.read("array", 1) == source.tolist()
    assert table.read("producer", 1) == source.tolist()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("bfloat16", "u2"), ("float8_e4m3fn", "u1"), ("float8_e5m2", "u1"), ("float8_e8m0fnu", "u1")],
)
def test_types_of_other_packages_come_back_bit_for_bit(table, dtype, bits):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = np.array([[0, 1, 2], [253, 254, 255]], bits).view(getattr(ml_dtypes, dtype))
    table.write("fixed", source, 1)
    table.write("rows", [source[0], source[1, :2]], 1, is_array=True)
    table.seal(1)
    with table.group("fixed", 1) as group:
        assert group.array(0).view(bits).ravel().tolist() == source.view(bits).reshape(-1).tolist()
        assert stored(group.tensor(0))[1].lanes == 3
    with table.group("rows", 1) as group:
        assert [group.array(i).view(bits).tolist() for i in range(2)] == [[0, 1, 2], [253, 254]]


def test_bytes_before_the_first_element(table):
    values = np.arange(10, dtype="f4")
    tensor = make_dltensor(values, shape=[2])
    tensor.byte_offset = 12
    table.write("fixed", tensor, 1)
    table.write("rows", [tensor, tensor], 1, is_array=True)
    table.seal(1)
    assert table.read("fixed", 1) == [3, 4]
    assert table.read("rows", 1) == [[3, 4], [3, 4]]


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 7, 16, 33, 100, 254, 255])
@pytest.mark.parametrize("bits", ["u1", "u2", "f4", "c16"])
def test_every_width_of_a_row(make_table, lanes, bits):
    table, rng = make_table(5), np.random.default_rng(lanes)
    dtype = np.dtype(bits)
    source = np.frombuffer(rng.bytes(5 * lanes * dtype.itemsize), dtype).reshape(5, lanes)
    table.write("v", source, 1)
    table.write("v", source, 2, index_map=[4, 0, 2])
    table.write("w", source[:, ::-1], 2)
    table.seal(2)
    columns = table.stage.read(table.query, ["v", "w"])
    assert columns["v"].values.tobytes() == source[[4, 0, 2, 3, 4]].tobytes()
    assert columns["w"].values.tobytes() == source[:, ::-1].tobytes()


def test_zero_rows_and_one(make_table):
    none, one = make_table([]), make_table(1)
    none.write("v", np.empty((0, 3), "f4"), 1)
    none.write("v", np.empty((0, 3), "f4"), 1, is_array=True)
    one.write("v", np.float32([[1, 2, 3]]), 1)
    one.seal(1)
    assert none.groups("v", 1) == []
    assert one.read("v", 1) == [[1, 2, 3]]


@pytest.mark.slow
def test_ten_million_rows(stage, names):
    rows = 10_000_000
    handles = np.empty(rows, "u8")
    for start in range(0, rows, 1_000_000):
        handles[start : start + 1_000_000] = names.intern_paths([f"/P{i}" for i in range(start, start + 1_000_000)])
    with names.create_path_list(handles) as prims, stage.query_from_path_list(prims) as query:
        source = np.arange(rows, dtype="f4")
        stage.write_attribute(query, "v", 1, source, is_array=False).wait()
        stage.write_attribute(query, "v", 2, -source[:1000], is_array=False, count=1000).wait()
        stage.advance_write_floor(2).wait()
        values = stage.read(query, ["v"])["v"].values
        assert (values[:1000] == -source[:1000]).all()
        assert (values[1000:] == source[1000:]).all()


def test_readonly_source(table):
    source = np.float32([1, 2])
    source.flags.writeable = False
    table.write("mass", source, 1)
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]


def test_bytes_are_taken_when_the_write_runs(table):
    """A descriptor, and a WriteDesc around it, serve every tick over memory that changes."""
    memory = np.float32([1, 2])
    desc = WriteDesc("mass", make_dltensor(memory), False)
    for ordinal in (1, 2, 3):
        memory[:] = ordinal
        table.stage.write_attributes(table.query, [desc], ordinal).wait()
        table.seal(ordinal)
        assert table.read("mass", ordinal) == [ordinal, ordinal]
    memory[:] = 99
    assert table.read("mass", 3) == [3, 3]


def test_source_may_be_dropped_before_the_wait(table):
    op = table.stage.write_attribute(table.query, "mass", 1, np.float32([1, 2]), is_array=False)
    gc.collect()
    op.wait()
    table.stage.write_attribute(table.query, "other", 1, np.float32([3, 4]), is_array=False)
    gc.collect()
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]
    assert table.read("other", 1) == [3, 4]


def test_name_and_token_are_the_same_attribute(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.write(table.token("mass"), np.float32([3, 4]), 2)
    table.seal(2)
    assert table.read("mass", 2) == [3, 4]


def test_several_attributes_at_one_ordinal_and_in_one_read(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.write("position", np.arange(6, dtype="f4").reshape(2, 3), 1)
    table.seal(1)
    tokens = [table.token("mass"), table.token("position"), table.token("never written")]
    with table.stage.read_attributes(table.query, tokens, OrdinalRange.latest(1)) as read:
        seen = {}
        for group in read.groups():
            with group:
                seen[group.attribute] = group.array(0).ravel().tolist()
    assert seen == {tokens[0]: [1, 2], tokens[1]: [0, 1, 2, 3, 4, 5]}


def test_batch_is_one_operation(table):
    writes = [
        WriteDesc("mass", np.float32([1, 2]), False),
        WriteDesc("position", np.arange(6, dtype="f4").reshape(2, 3), False, semantic=AttributeSemantic.POINT),
    ]
    table.stage.write_attributes(table.query, writes, 1).wait()
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]
    assert table.read("position", 1) == [[0, 1, 2], [3, 4, 5]]
    table.stage.write_attributes(table.query, [], 2).wait()


def test_one_attribute_under_two_names_is_refused(table):
    writes = [WriteDesc("mass", np.float32([1, 2]), False), WriteDesc(table.token("mass"), np.float32([3, 4]), False)]
    op = table.stage.write_attributes(table.query, writes, 1)
    assert (op.status, op.op_id) == (ErrorCode.INVALID_ARGUMENT, 0)
    assert "'mass'" in op.error_message() or '"mass"' in op.error_message()
    table.seal(1)
    assert table.groups("mass", 1) == []


def test_batch_is_seen_whole_or_not_at_all(table):
    for ordinal in (1, 2):
        writes = [WriteDesc(name, np.float32([ordinal, ordinal]), False) for name in "abc"]
        table.stage.write_attributes(table.query, writes, ordinal).wait()
    table.seal(1)
    assert [table.read(name, 1) for name in "abc"] == [[1, 1]] * 3
    table.seal(2)
    assert [table.read(name, 2) for name in "abc"] == [[2, 2]] * 3


def test_batch_takes_the_mode_of_the_call(table):
    writes = [WriteDesc(name, np.float32([1, 2]), False) for name in "ab"]
    table.stage.write_attributes(table.query, writes, 1, prim_mode=PrimMode.INSERT).wait()
    op = table.stage.write_attributes(table.query, writes, 2, prim_mode=PrimMode.INSERT)
    refuses(ErrorCode.PRIM_NOT_FOUND, op.wait)
    table.stage.write_attributes(table.query, writes, 2, prim_mode=PrimMode.UPDATE).wait()


def test_batch_with_one_bad_entry_changes_nothing(table):
    writes = [WriteDesc("mass", np.float32([1, 2]), False), WriteDesc("position", np.float32([1, 2, 3]), False)]
    op = table.stage.write_attributes(table.query, writes, 1)
    assert op.status == ErrorCode.INVALID_ARGUMENT
    table.seal(1)
    assert table.read("mass", 1) == [None, None]


def test_query_of_no_prims(make_table):
    empty = make_table([])
    empty.write("mass", np.empty(0, "f4"), 1)
    empty.seal(1)
    assert empty.groups("mass", 1) == []


def test_prims_listed_twice(make_table):
    twice = make_table(["/A", "/B", "/A"])
    twice.write("mass", np.float32([1, 2, 3]), 1)
    twice.seal(1)
    assert twice.read("mass", 1) == [3, 2, 3]


# --- shapes of fixed-size columns ---


def test_scalar_column(make_table):
    table = make_table(3)
    table.write("value", np.float32([18.5, 19.5, 20.5]), 1)
    table.seal(1)
    with table.group("value", 1) as group:
        assert (group.tensor_count, group.tensor(0).dtype.lanes) == (1, 1)
        assert group.array(0).tolist() == [18.5, 19.5, 20.5]
        assert not group.is_array
        assert not group.is_delete


def test_lanes_of_a_column_never_show_in_its_shape(make_table):
    table = make_table(3)
    flat = np.arange(9, dtype="f4")
    table.write("value", make_dltensor(flat, dtype=FLOAT3, shape=[3]), 1)
    table.write("strided", make_dltensor(flat, dtype=FLOAT3, shape=[3], strides=[1]), 1)
    table.seal(1)
    for name in ("value", "strided"):
        with table.group(name, 1) as group:
            tensor = group.tensor(0)
            assert stored(tensor) == (3, FLOAT3)
            assert not tensor.strides
            assert tensor.byte_offset == 0
            assert group.array(0).ravel().tolist() == flat.tolist()
            assert group.array(0, shaped=True).tolist() == flat.reshape(3, 3).tolist()


@pytest.mark.parametrize(
    ("source", "lanes"),
    [
        (np.arange(6, dtype="f4").reshape(2, 3), 3),
        (np.arange(32, dtype="f8").reshape(2, 4, 4), 16),
        (np.arange(8, dtype="f4").reshape(2, 4, 1), 4),
        (np.arange(2, dtype="f4").reshape(2, 1), 1),
        (np.arange(510, dtype="u1").astype("u1").reshape(2, 255), 255),
    ],
    ids=["point", "matrix", "trailing one", "column", "widest"],
)
def test_trailing_axes_fold_into_lanes(table, source, lanes):
    table.write("value", source, 1)
    table.seal(1)
    with table.group("value", 1) as group:
        rows, dtype = stored(group.tensor(0))
        assert (rows, dtype.lanes) == (2, lanes)
        exported = np.from_dlpack(group.dlpack(0))
        assert exported.shape == ((2, lanes) if lanes > 1 else (2,))
        assert exported.reshape(-1).tolist() == source.reshape(-1).tolist()
    assert table.groups("value", 1)[0].release() is None


def test_rows_of_four_lanes_make_a_matrix(table):
    flat = np.arange(32, dtype="f8")
    table.write("value", make_dltensor(flat, dtype=DLDataType(2, 64, 4), shape=[2, 4]), 1)
    table.seal(1)
    with table.group("value", 1) as group:
        assert stored(group.tensor(0)) == (2, DLDataType(2, 64, 16))


def test_flat_payload_is_refused_and_changes_nothing(table):
    op = table.stage.write_attribute(
        table.query, "position", 1, np.arange(6, dtype="f4"), is_array=False, semantic=AttributeSemantic.POINT
    )
    assert op.status == ErrorCode.INVALID_ARGUMENT
    assert op.op_id == 0
    table.write("position", np.arange(6, dtype="f4").reshape(2, 3), 1)


# --- roles ---


def test_role_is_independent_of_storage(table):
    position = make_dltensor(np.arange(6, dtype="f4"), dtype=FLOAT3, shape=[2])
    matrices = make_dltensor(np.tile(np.eye(4), (2, 1, 1)), dtype=DLDataType(2, 64, 16), shape=[2])
    words = [table.token("alpha"), table.token("beta")]
    roles = {
        "point": (position, AttributeSemantic.POINT),
        "color": (position, AttributeSemantic.COLOR),
        "matrix": (matrices, AttributeSemantic.MATRIX),
        "word": (np.uint64(words), AttributeSemantic.TOKEN_ID),
        "plain": (position, AttributeSemantic.NONE),
    }
    for name, (payload, role) in roles.items():
        table.write(name, payload, 1, semantic=role)
    table.seal(1)
    for name, (_, role) in roles.items():
        with table.group(name, 1) as group:
            assert group.semantic is role
            assert group.raw.semantic == role
    with table.group("word", 1) as group:
        assert [table.names.token_to_string(int(token)) for token in group.array(0)] == ["alpha", "beta"]


def test_role_survives_a_write_without_one(table):
    table.write("point", np.zeros((2, 3), "f4"), 1, semantic=AttributeSemantic.POINT)
    table.write("point", np.ones((2, 3), "f4"), 2)
    table.seal(2)
    with table.group("point", 2) as group:
        assert group.semantic is AttributeSemantic.POINT


def test_role_can_be_stamped_later(table):
    table.write("point", np.zeros((2, 3), "f4"), 1)
    table.write("point", np.zeros((2, 3), "f4"), 2, semantic=AttributeSemantic.POINT)
    table.seal(2)
    with table.group("point", 2) as group:
        assert group.semantic is AttributeSemantic.POINT


def test_asset_pairs(make_table):
    table = make_table(3)
    pairs = np.uint64([[table.token("a.usd"), table.token("/abs/a.usd")], [table.token("b.usd"), 0], [0, 0]])
    table.write("asset", pairs, 1, semantic=AttributeSemantic.ASSET_PATH_ID)
    table.seal(1)
    with table.group("asset", 1) as group:
        assert stored(group.tensor(0)) == (3, DLDataType(DLDataTypeCode.kDLUInt, 64, 2))
        assert group.array(0).reshape(-1, 2)[group.data_row_index(1)].tolist() == pairs[1].tolist()


ONE_ID, TWO_IDS, BYTES = np.zeros(2, "u8"), np.zeros((2, 2), "u8"), np.zeros(2, "u1")
PLAIN = np.zeros((2, 3), "f4")
PAYLOADS = {  # a fixed payload and rows of an array that each role takes; None = it takes no such
    AttributeSemantic.NONE: (PLAIN, PLAIN),
    AttributeSemantic.ASSET_PATH_ID: (TWO_IDS, make_dltensor(TWO_IDS, dtype=DLDataType(1, 64, 2), shape=[2])),
    AttributeSemantic.TOKEN_ID: (ONE_ID, ONE_ID),
    AttributeSemantic.PATH_EXPRESSION_STRING: (ONE_ID, ONE_ID),
    AttributeSemantic.RELATIONSHIP_PATH_ID: (None, ONE_ID),
    AttributeSemantic.POINT: (PLAIN, PLAIN),
    AttributeSemantic.VECTOR: (PLAIN, PLAIN),
    AttributeSemantic.NORMAL: (PLAIN.astype("f2"), PLAIN),
    AttributeSemantic.COLOR: (PLAIN.astype("f8"), PLAIN),
    AttributeSemantic.QUATERNION: (np.zeros((2, 4), "f4"), PLAIN),
    AttributeSemantic.MATRIX: (np.zeros((2, 3, 3), "f8"), PLAIN),
    AttributeSemantic.TEXTURE_COORDINATE: (np.zeros((2, 2), "f4"), PLAIN),
    AttributeSemantic.CONNECTION_PATH_ID: (None, make_dltensor(TWO_IDS, dtype=DLDataType(1, 64, 2), shape=[2])),
    AttributeSemantic.STRING: (None, BYTES),
    AttributeSemantic.TIME_CODE: (np.zeros(2, "f8"), np.zeros(2, "f8")),
    AttributeSemantic.FRAME: (np.zeros((2, 4, 4), "f8"), PLAIN),
}
STRICT = [role for role in AttributeSemantic if role.name.endswith("_ID") or "STRING" in role.name]


@pytest.mark.parametrize("role", AttributeSemantic, ids=lambda role: role.name)
@pytest.mark.parametrize("is_array", [False, True], ids=["fixed", "array"])
def test_each_role_takes_its_payload_and_comes_back(table, role, is_array):
    payload = PAYLOADS[role][is_array]
    if payload is None:
        op = table.stage.write_attribute(table.query, "v", 1, PAYLOADS[role][True], is_array=False, semantic=role)
        assert (op.status, op.op_id) == (ErrorCode.INVALID_ARGUMENT, 0)
        assert role.name in op.error_message()
        return
    table.write("v", payload, 1, is_array=is_array, semantic=role)
    table.seal(1)
    with table.group("v", 1) as group:
        assert (group.semantic, group.is_array) == (role, is_array)


@pytest.mark.parametrize("role", STRICT, ids=lambda role: role.name)
@pytest.mark.parametrize("payload", [np.zeros(2, "f4"), np.zeros(2, "i8"), np.zeros((2, 3), "u8"), BYTES], ids=str)
def test_roles_of_ids_name_themselves_where_the_layout_is_wrong(table, role, payload):
    if role is AttributeSemantic.STRING and payload is BYTES:
        return
    for is_array in (False, True):
        if payload.ndim == 2 and is_array and role not in (
            AttributeSemantic.ASSET_PATH_ID, AttributeSemantic.CONNECTION_PATH_ID
        ):  # fmt: skip
            continue  # six ids of one lane
        op = table.stage.write_attribute(table.query, "v", 1, payload, is_array=is_array, semantic=role)
        assert (op.status, op.op_id) == (ErrorCode.INVALID_ARGUMENT, 0)
        assert role.name in op.error_message()


def test_role_that_is_none(table):
    op = table.stage.write_attribute(table.query, "v", 1, PLAIN, is_array=False, semantic=16)
    refuses(ErrorCode.INVALID_ARGUMENT, op.wait, "16")


def test_role_of_a_column_never_changes(table):
    table.write("v", PLAIN, 1, semantic=AttributeSemantic.POINT)
    op = table.stage.write_attribute(table.query, "v", 2, PLAIN, is_array=False, semantic=AttributeSemantic.NORMAL)
    refuses(ErrorCode.INVALID_ARGUMENT, op.wait, "POINT", "NORMAL")
    table.write("v", PLAIN, 2)
    table.seal(2)
    with table.group("v", 2) as group:
        assert group.semantic is AttributeSemantic.POINT


def test_what_has_no_role_goes_where_the_prims_have_theirs(stage, make_table):
    points, colors = make_table(["/P"]), make_table(["/C"])
    points.write("v", PLAIN[:1], 1, semantic=AttributeSemantic.POINT)
    colors.write("v", PLAIN[:1], 1, semantic=AttributeSemantic.COLOR)
    colors.write("v", PLAIN[1:2], 2)
    points.seal(2)
    with colors.group("v", 2) as group:
        assert group.semantic is AttributeSemantic.COLOR
        assert np.array_equal(np.asarray(group), PLAIN[1:2])
    with stage.map_attribute(colors.query, "v", 3) as mapping:
        np.asarray(mapping.fetch_next())[:] = 7
    points.seal(3)
    with colors.group("v", 3) as group:
        assert group.semantic is AttributeSemantic.COLOR
        assert (np.asarray(group) == 7).all()


def test_bytes_are_no_asset(table):
    op = table.stage.write_attribute(
        table.query, "asset", 1, np.zeros(2, "u1"), is_array=False, semantic=AttributeSemantic.ASSET_PATH_ID
    )
    refuses(ErrorCode.INVALID_ARGUMENT, op.wait, "ASSET_PATH_ID")


# --- write modes and ordinals ---


def test_insert_creates(table):
    table.write("mass", np.float32([1, 2]), 1, prim_mode=PrimMode.INSERT)
    table.seal(1)
    assert table.read("mass", 1) == [1, 2]


def test_insert_over_existing_prims_changes_nothing(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    op = table.stage.write_attribute(
        table.query, "mass", 2, np.float32([9, 9]), is_array=False, prim_mode=PrimMode.INSERT
    )
    assert op.status == ErrorCode.PRIM_NOT_FOUND
    refuses(ErrorCode.PRIM_NOT_FOUND, op.wait)
    table.write("mass", np.float32([10, 20]), 2)
    table.seal(2)
    assert table.read("mass", 2) == [10, 20]


def test_writes_at_or_below_the_floor_are_refused(table):
    table.write("mass", np.float32([1, 2]), 5)
    table.seal(5)
    for ordinal in (3, 5):
        op = table.stage.write_attribute(table.query, "mass", ordinal, np.float32([9, 9]), is_array=False)
        refuses(ErrorCode.WRITE_FLOOR_VIOLATION, op.wait, str(ordinal), "5")
    table.write("mass", np.float32([10, 20]), 6)
    table.seal(6)
    assert table.read("mass", 6) == [10, 20]


def test_ordinal_zero_is_never_writable(table):
    op = table.stage.write_attribute(table.query, "mass", 0, np.float32([1, 2]), is_array=False)
    refuses(ErrorCode.WRITE_FLOOR_VIOLATION, op.wait)


def test_ordinals_may_jump_and_come_unsealed(table):
    for ordinal in (7, 9, 2**63):
        table.write("mass", np.float32([ordinal % 100, 0]), ordinal)
    table.seal(2**63)
    assert table.read("mass", 2**64 - 1) == [2**63 % 100, 0]


def test_last_writer_at_an_ordinal_wins(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.write("mass", np.float32([3, 4]), 1)
    table.seal(1)
    assert table.read("mass", 1) == [3, 4]


def test_ordinals_decide_and_not_the_order_of_submission(table):
    table.write("mass", np.float32([7, 7]), 7)
    table.write("mass", np.float32([5, 5]), 5)
    table.seal(5)
    assert table.read("mass", 5) == [5, 5]
    table.seal(7)
    assert table.read("mass", 7) == [7, 7]


def test_floor_never_sinks(table):
    table.seal(5)
    table.seal(3)
    with table.stage.get_attribute_write_floor() as floor:
        assert floor.fetch() == 5


def test_scopes_of_a_floor(table):
    mass, size = table.token("mass"), table.token("size")
    table.write("mass", np.float32([1, 2]), 1)
    table.write("size", np.float32([1, 2]), 1)

    def floors():
        result = []
        for attribute in (mass, size, None):
            with table.stage.get_attribute_write_floor(attribute) as floor:
                result.append(floor.fetch())
        return result

    table.stage.advance_write_floor(2, Scope.INCLUDE, [mass]).wait()
    assert floors() == [2, 0, 0]
    table.stage.advance_write_floor(3, Scope.EXCLUDE, [mass]).wait()
    assert floors() == [2, 3, 0]
    table.stage.advance_write_floor(4, Scope.INCLUDE, []).wait()
    assert floors() == [2, 3, 0]
    table.stage.advance_write_floor(5, Scope.EXCLUDE).wait()
    assert floors() == [5, 5, 5]
    with table.stage.get_attribute_write_floor("mass") as floor:
        assert floor.fetch() == 5


# --- snapshots ---


def test_unsealed_values_are_not_read(table):
    table.write("mass", np.float32([1, 2]), 1)
    message = refuses(ErrorCode.WRITE_FLOOR_VIOLATION, lambda: table.read("mass", 1))
    assert "mass" in message
    table.seal(1)
    table.write("mass", np.float32([3, 4]), 2)
    assert table.read("mass", 2) == [1, 2]


def test_older_end_reads_what_was_sealed_by_then(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(3)
    assert table.read("mass", 2) == [1, 2]
    assert table.read("mass", 3) == [1, 2]


def test_values_above_the_end_that_are_not_sealed_contribute_no_row(table):
    table.seal(3)
    table.write("mass", np.float32([1, 2]), 5)
    assert table.groups("mass", 4) == []


def test_end_older_than_what_is_kept_reads_the_oldest_that_is(table):
    """Without a history only the newest sealed state is kept; the group tells which one it is."""
    table.write("mass", np.float32([1, 2]), 5)
    table.seal(5)
    with table.group("mass", 4) as group:
        assert (group.array(0).tolist(), group.ordinal) == ([1, 2], 5)


def test_prims_without_the_attribute_have_no_row(make_table):
    all_prims, even = make_table(4), make_table(["/World/Prim0", "/World/Prim2"])
    even.write("mass", np.float32([1, 2]), 1)
    even.seal(1)
    assert all_prims.read("mass", 1) == [1, None, 2, None]


def test_rows_come_in_query_order_in_one_group(make_table):
    table = make_table(5)
    for ordinal in (1, 2):
        table.write("mass", np.arange(5, dtype="f4") * ordinal, ordinal)
        table.seal(ordinal)
        with table.group("mass", ordinal) as group:
            assert group.array(0).tolist() == [0, ordinal, 2 * ordinal, 3 * ordinal, 4 * ordinal]
            assert not group.has_data_index_map
            assert group.prim_indices().tolist() == group.data_rows().tolist() == [0, 1, 2, 3, 4]


def test_part_of_a_column_is_cut_to_its_rows(make_table):
    table, middle = make_table(6), make_table([f"/World/Prim{i}" for i in (2, 3, 4)])
    table.write("mass", np.arange(6, dtype="f4"), 1)
    table.seal(1)
    with middle.group("mass", 1) as group:
        assert not group.has_data_index_map
        assert group.array(0).tolist() == [2, 3, 4]


def test_scattered_prims_are_found_through_the_index(make_table):
    table, some = make_table(6), make_table([f"/World/Prim{i}" for i in (5, 0, 3)])
    table.write("mass", np.arange(6, dtype="f4"), 1)
    table.seal(1)
    assert some.read("mass", 1) == [5, 0, 3]
    with some.group("mass", 1) as group:
        assert group.prim_count == group.data_count == 3
        rows = [group.data_row_index(i) for i in range(3)]
        assert group.data_rows().tolist() == rows
        assert group.array(0)[group.data_rows()].tolist() == [5, 0, 3]


def test_subset_write_leaves_the_others(make_table):
    table, some = make_table(6), make_table([f"/World/Prim{i}" for i in (5, 0, 3)])
    table.write("mass", np.arange(6, dtype="f4"), 1)
    table.seal(1)
    some.write("mass", np.float32([50, 0.5, 30]), 2)
    assert table.read("mass", 2) == [0, 1, 2, 3, 4, 5]
    table.seal(2)
    assert table.read("mass", 2) == [0.5, 1, 2, 30, 4, 50]


def test_views_keep_their_bytes(table):
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    with table.group("mass", 1) as group:
        array, exported, tensor = group.array(0), np.from_dlpack(group.dlpack(0)), group.tensor(0)
        assert address(array) == address(exported) == tensor.data + tensor.byte_offset
    for ordinal in range(2, 8):
        table.write("mass", np.float32([ordinal, ordinal]), ordinal)
        table.seal(ordinal)
    assert array.tolist() == exported.tolist() == [1, 2]


def test_generation_tells_rows_from_values(make_table):
    table = make_table(2)
    table.write("mass", np.float32([1, 2]), 1)
    table.seal(1)
    with table.group("mass", 1) as group:
        first = group.meta
    assert (first.attribute_write_floor_ordinal, first.layout_generation >= 1) == (1, True)
    table.write("mass", np.float32([3, 4]), 2)
    table.seal(2)
    with table.group("mass", 2) as group:
        assert group.meta.layout_generation == first.layout_generation
        assert group.meta.attribute_write_floor_ordinal == 2
        assert group.ordinal == 2
    make_table(["/Other"]).write("mass", np.float32([5]), 3)
    table.seal(3)
    with table.group("mass", 3) as group:
        assert group.meta.layout_generation > first.layout_generation
