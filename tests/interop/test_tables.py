"""Whole reads as tables: the rows of a query, in its order, under the types of pyarrow and of pandas."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from conftest import address

import ovstage
from ovstage import AttributeSemantic, OrdinalRange, OvstageError, make_dltensor

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

PATHS = [f"/World/P{i}" for i in range(5)]
SOME = [3, 0]


class Scene:
    """Five prims, and writes that are sealed at once: of all of them, or of the fourth and the first."""

    def __init__(self, stage: ovstage.Stage, names: ovstage.PathDictionary) -> None:
        self.stage, self.names, self.ordinal = stage, names, 0
        self.lists = [names.create_path_list_from_strings(p) for p in (PATHS, [PATHS[i] for i in SOME])]
        self.all, self.some = map(stage.query_from_path_list, self.lists)

    def write(self, name, values, query=None, **options):
        self.ordinal += 1
        options.setdefault("is_array", isinstance(values, list))
        self.stage.write_attribute(query or self.all, name, self.ordinal, values, **options).wait()
        self.seal()

    def delete(self, name, query):
        self.ordinal += 1
        self.stage.delete_attributes(query, [name], self.ordinal).wait()
        self.seal()

    def seal(self):
        self.stage.advance_write_floor(self.ordinal).wait()

    def arrow(self, *names, query=None, **options):
        table = self.stage.read_arrow(query or self.all, names, **options)
        table.validate(full=True)
        assert table["usd-path"].to_pylist() == (PATHS if query is None else [PATHS[i] for i in SOME])
        return table

    def pandas(self, *names, query=None, **options):
        frame = self.stage.read_pandas(query or self.all, names, **options)
        assert frame.index.name == "usd-path"
        assert frame.index.tolist() == (PATHS if query is None else [PATHS[i] for i in SOME])
        return frame


@pytest.fixture
def scene(stage):
    with ovstage.PathDictionary(stage) as names:
        scene = Scene(stage, names)
        yield scene
        if stage.alive:
            for handle in (scene.all, scene.some):
                handle.release().wait()
            for paths in scene.lists:
                paths.release()


def elements(column):
    """What lies below the lists of a column of one chunk."""
    (array,) = column.chunks
    while pa.types.is_nested(array.type):
        array = array.values
    return array


# --- Arrow ---


def test_arrow_reads_the_columns_own_memory(scene):
    for name, values in {
        "mass": np.arange(5, dtype="f4"),
        "position": np.arange(15, dtype="f8").reshape(5, 3),
        "contacts": [np.arange(n, dtype="i4") for n in (2, 0, 3, 1, 1)],
    }.items():
        scene.write(name, values)
        table, column = scene.arrow(name), scene.stage.read(scene.all, [name])[name]
        assert table[name].null_count == 0
        assert table[name].to_pylist() == [np.asarray(row).tolist() for row in values]
        assert elements(table[name]).buffers()[1].address == address(column.values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(5, dtype="u2"), pa.uint16()),
        (np.arange(5) % 2 == 0, pa.bool_()),
        (np.arange(5, dtype="f2"), pa.float16()),
        (np.arange(20, dtype="f4").reshape(5, 4), pa.list_(pa.float32(), 4)),
        (np.arange(10).reshape(5, 2) % 3 == 0, pa.list_(pa.bool_(), 2)),
        ([np.arange(n, dtype="i8") for n in range(5)], pa.list_(pa.int64())),
        ([np.arange(n) % 2 == 0 for n in range(5)], pa.list_(pa.bool_())),
        (
            [make_dltensor(np.ones(3 * n, "f4"), dtype=ovstage.DLDataType(2, 32, 3), shape=[n]) for n in range(5)],
            pa.list_(pa.list_(pa.float32(), 3)),
        ),
    ],
    ids=str,
)
def test_types_with_and_without_missing_prims(scene, values, kind):
    scene.write("x", values, is_array=isinstance(values, list))
    whole = scene.arrow("x")["x"]
    assert whole.type == kind and whole.null_count == 0
    scene.delete("x", scene.some)
    left = scene.arrow("x")["x"]
    assert left.type == kind
    assert left.to_pylist() == [None if i in SOME else row for i, row in enumerate(whole.to_pylist())]


def test_attributes_come_in_the_order_that_was_asked_for(scene):
    for name in ("b", "a", "c"):
        scene.write(name, np.ones(5, "f4"))
    assert scene.arrow("c", "nobody's", scene.names.intern_token("a")).column_names == ["usd-path", "c", "a"]
    assert list(scene.pandas("c", "nobody's", "a").columns) == ["c", "a"]


def test_rows_are_those_of_the_query(scene):
    scene.write("x", np.arange(5, dtype="i4"))
    assert scene.arrow("x", query=scene.some)["x"].to_pylist() == SOME
    assert scene.pandas("x", query=scene.some)["x"].tolist() == SOME


def test_tables_outlive_the_stage(scene):
    scene.write("x", np.arange(5, dtype="i4"))
    table, frame = scene.arrow("x"), scene.pandas("x")
    scene.stage.destroy()
    assert table["x"].to_pylist() == frame["x"].tolist() == [0, 1, 2, 3, 4]


# --- pandas ---


def test_lanes_are_columns(scene):
    scene.write("p", np.arange(10, dtype="f4").reshape(5, 2))
    frame = scene.pandas("p")
    assert list(frame.columns) == ["p.0", "p.1"]
    assert frame["p.1"].dtype == np.float32
    assert frame["p.1"].tolist() == [1, 3, 5, 7, 9]
    frame.loc["/World/P1", "p.1"] = 100  # a frame is a copy
    assert scene.pandas("p")["p.1"].tolist() == [1, 3, 5, 7, 9]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.arange(5, dtype="f4"), "float32"),
        (np.arange(5, dtype="c8"), "complex64"),
        (np.arange(5, dtype="u2"), "UInt16"),
        (np.arange(5) % 2 == 0, "boolean"),
    ],
    ids=str,
)
def test_prims_without_a_value(scene, values, dtype):
    scene.write("x", values[:2], scene.some)
    found = scene.pandas("x")["x"]
    assert found.dtype == dtype
    assert found.isna().tolist() == [i not in SOME for i in range(5)]
    assert found[PATHS[3]] == values[0] and found[PATHS[0]] == values[1]


def test_arrays_are_objects(scene):
    scene.write("x", [np.arange(2, dtype="i4")] * 2, scene.some)
    found = scene.pandas("x")["x"]
    assert [None if cell is None else cell.tolist() for cell in found] == [[0, 1], None, None, [0, 1], None]


def test_columns_of_one_name_are_refused(scene):
    scene.write("p", np.ones((5, 2), "f4"))
    scene.write("p.1", np.ones(5, "f4"))
    with pytest.raises(ValueError, match=r"two columns would be called 'p\.1'"):
        scene.pandas("p", "p.1")


# --- changes ---


def test_deletions_are_told_from_what_did_not_change(scene):
    scene.write("x", np.arange(5, dtype="i4"))
    scene.delete("x", scene.some)
    scene.write("x", np.int32([7, 8, 9, 10, 11]))
    scene.delete("x", scene.some)
    gone = [i in SOME for i in range(5)]
    changes = OrdinalRange.between(2, 4)
    table = scene.arrow("x", ordinal=changes)
    assert table["x"].to_pylist() == [None, 8, 9, None, 11]
    assert table["x deleted"].to_pylist() == scene.pandas("x", ordinal=changes)["x deleted"].tolist() == gone
    only = OrdinalRange.between(4, 4)
    assert scene.arrow("x", ordinal=only)["x"].to_pylist() == [None] * 5
    assert scene.pandas("x", ordinal=only)["x deleted"].tolist() == gone
    assert scene.arrow("x").column_names == ["usd-path", "x"]


def test_nothing_to_show(scene):
    assert scene.stage.read_arrow(scene.all, ["nobody's"]).num_rows == 0
    assert scene.stage.read_pandas(scene.all, ["nobody's"]).empty


# --- words ---


def test_ids_come_as_their_names(scene):
    mesh, cube = scene.names.intern_tokens(["Mesh", "Cube"])
    kinds = np.uint64([mesh, cube, mesh, 0, cube])
    scene.write("usd-prim-type", kinds)
    assert scene.arrow("usd-prim-type")["usd-prim-type"].to_pylist() == kinds.tolist()
    expected = ["Mesh", "Cube", "Mesh", "", "Cube"]
    assert scene.arrow("usd-prim-type", strings=True)["usd-prim-type"].to_pylist() == expected
    assert scene.pandas("usd-prim-type", strings=True)["usd-prim-type"].tolist() == expected


def test_ids_of_every_role(scene):
    token, path = np.uint64(scene.names.intern_token("out")), np.uint64(scene.names.intern_path("/A/b"))
    role = AttributeSemantic
    two = [make_dltensor(np.uint64([path, token]), dtype=ovstage.DLDataType(1, 64, 2), shape=[1])]
    scene.write("asset", np.tile(np.uint64([token, 0]), (5, 1)), semantic=role.ASSET_PATH_ID)
    scene.write("rel", [np.uint64([path, path])] * 5, semantic=role.RELATIONSHIP_PATH_ID)
    scene.write("link", two * 5, semantic=role.CONNECTION_PATH_ID)
    scene.write("t", np.full(2, token), scene.some, semantic=role.TOKEN_ID)
    table = scene.arrow("asset", "rel", "link", "t", "usd-path", "usd-parent", strings=True)
    assert table["asset"][0].as_py() == ["out", ""]
    assert table["rel"][0].as_py() == ["/A/b", "/A/b"]
    assert table["link"][0].as_py() == [["/A/b", "out"]]
    assert table["t"].to_pylist() == ["out", None, None, "out", None]
    assert table.column_names.count("usd-path") == 1
    assert "usd-parent" not in table.column_names  # /World is no prim
    frame = scene.pandas("asset", "rel", strings=True)
    assert frame["asset.0"].tolist() == ["out"] * 5
    assert frame["rel"].iloc[4].tolist() == ["/A/b", "/A/b"]


def test_strings_come_as_text(scene):
    texts = ["", "Schraube", "ø", "two\nlines", "x"]
    rows = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    scene.write("label", rows, is_array=True, semantic=AttributeSemantic.STRING)
    scene.delete("label", scene.some)
    expected = [None, "Schraube", "ø", None, "x"]
    assert scene.arrow("label", strings=True)["label"].to_pylist() == expected
    found = scene.pandas("label", strings=True)["label"]
    assert [None if pd.isna(cell) else cell for cell in found] == expected
    assert scene.arrow("label")["label"].type == pa.list_(pa.uint8())


# --- refusals ---


def test_what_names_nothing_is_no_text(scene):
    scene.write("t", np.full(5, 2**60, np.uint64), semantic=AttributeSemantic.TOKEN_ID)
    with pytest.raises(ValueError, match="attribute 't' holds ids that name nothing, leave out strings"):
        scene.arrow("t", strings=True)
    scene.write("s", [np.uint8([255])] * 5, is_array=True, semantic=AttributeSemantic.STRING)
    with pytest.raises(ValueError, match="attribute 's' holds bytes that are no UTF-8, leave out strings"):
        scene.pandas("s", strings=True)


def test_element_types_that_a_library_lacks(scene):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    scene.write("c", np.ones(5, "c8"))
    scene.write("b", np.ones(5, ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match=r"attribute 'c' has the element type complex64, which Arrow lacks"):
        scene.arrow("c")
    with pytest.raises(ValueError, match=r"attribute 'b' has the element type bfloat16, which Arrow lacks"):
        scene.arrow("b")
    with pytest.raises(ValueError, match=r"attribute 'b' has the element type bfloat16, which pandas lacks"):
        scene.pandas("b")
    assert scene.stage.counters()["live_groups"] == 0


def test_failures_of_the_read(scene):
    scene.stage.write_attribute(scene.all, "x", 9, np.ones(5, "f4"), is_array=False).wait()
    for read in (scene.stage.read_arrow, scene.stage.read_pandas):
        with pytest.raises(OvstageError, match="not sealed"):
            read(scene.all, ["x"], 9)
        with pytest.raises(TypeError, match="single string"):
            read(scene.all, "x")


# --- attributes of which nothing is found ---------------------------------------------------------------------------


def why(mapping, key):
    with pytest.raises(KeyError) as caught:
        mapping[key]
    return str(caught.value)


def test_frames_say_why_a_column_is_missing(scene):
    scene.write("mass", np.zeros(5, np.float32))
    frame = scene.pandas("mass", "charge")
    assert why(frame, "charge") == '"charge": no prim has it; there are mass (unknown attribute)'
    assert frame.attrs["missing"].keys() == {"charge"}
    assert why(frame, "other") == "'other'"  # pandas' own words
    assert "charge" not in frame
    assert list(frame.columns) == ["mass"]
    assert type(frame[["mass"]]) is pd.DataFrame  # what is made of it is a plain one
    assert type(scene.pandas("mass")) is pd.DataFrame
    assert why(pickle.loads(pickle.dumps(frame)), "charge") == why(frame, "charge")


def test_tables_say_why_a_column_is_missing(scene):
    scene.write("mass", np.zeros(5, np.float32))
    table = scene.arrow("mass", "charge")
    assert table.column_names == ["usd-path", "mass"]
    assert json.loads(table.schema.metadata[b"missing"]) == {
        "charge": "no prim has it; there are mass (unknown attribute)"
    }
    assert b"missing" not in (scene.arrow("mass").schema.metadata or {})


# --- the way back -----------------------------------------------------------------------------------------------------


@pytest.fixture
def other():
    with ovstage.Stage("other") as other:
        yield other


def tokens(stage, *texts):
    return np.array(stage._intern_tokens(texts), np.uint64)


NAMES = ["point", "on", "note", "mark", "runs", "words", "link", "asset", "bytes", "half"]


@pytest.fixture
def rich(scene):
    """Attributes of every kind, some of them of two prims only."""
    s = scene.stage
    scene.write("point", np.arange(15, dtype="f4").reshape(5, 3), semantic=AttributeSemantic.POINT, type_name="point3f")
    scene.write("on", np.array([True, False]), query=scene.some, type_name="bool")
    scene.write("note", tokens(s, "a", "b", "a", "größe", "c"), type_name="string")
    scene.write("mark", tokens(s, "m", "n"), query=scene.some, semantic=AttributeSemantic.TOKEN_ID, type_name="token")
    scene.write("runs", [np.full((i, 3), i, "f4") for i in range(5)], lanes=3)
    scene.write("words", [tokens(s, "x", "y"), tokens(s)], query=scene.some, type_name="string[]")
    paths = np.array(s._intern_paths(["/World/P1", "/World/P2"]), np.uint64)
    scene.write("link", [paths, paths[:0]], query=scene.some, semantic=AttributeSemantic.RELATIONSHIP_PATH_ID)
    scene.write("asset", tokens(s, *"abcdefghij").reshape(5, 2), semantic=AttributeSemantic.ASSET_PATH_ID)
    texts = [np.frombuffer(text.encode(), np.uint8) for text in ("one", "", "zwölf", "4", "5")]
    scene.write("bytes", texts, semantic=AttributeSemantic.STRING)
    scene.write("half", np.arange(5, dtype="f2"))
    return scene


@pytest.mark.parametrize("strings", [False, True])
def test_a_table_that_is_written_back_reads_the_same(rich, other, strings):
    table = rich.stage.read_arrow(PATHS, NAMES, strings=strings)
    other.write_arrow(table, 3).wait()
    other.advance_write_floor(3).wait()
    assert other.read_arrow(PATHS, NAMES, strings=strings).equals(table, check_metadata=True)
    assert {
        (a.name, a.type_name, a.semantic, a.dtype, a.lanes, a.is_array, a.prim_count) for a in other.attributes()
    } == {
        (a.name, a.type_name, a.semantic, a.dtype, a.lanes, a.is_array, a.prim_count) for a in rich.stage.attributes()
    }


def test_a_table_survives_a_file(rich, other, tmp_path):
    table = rich.stage.read_arrow(PATHS, NAMES, strings=True)
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pa.memory_map(str(tmp_path / "t.arrow")) as file:
        other.write_arrow(pa.ipc.open_file(file).read_all(), 1).wait()
    other.advance_write_floor(1).wait()
    assert other.read_arrow(PATHS, NAMES, strings=True).equals(table.combine_chunks(), check_metadata=True)


def test_fields_say_what_arrow_does_not(rich):
    schema = rich.stage.read_arrow(PATHS, NAMES).schema
    assert schema.field("point").metadata == {
        b"role": b"POINT",
        b"dtype": b"float32",
        b"lanes": b"3",
        b"type": b"point3f",
    }
    assert schema.field("note").metadata == {b"role": b"NONE", b"dtype": b"uint64", b"lanes": b"1", b"type": b"string"}
    assert b"type" not in schema.field("half").metadata


def test_lists_of_texts_are_of_texts_when_all_are_empty(other):
    other.write(PATHS, "words", 1, [[]] * 5, type_name="string[]").wait()
    other.advance_write_floor(1).wait()
    assert other.read_arrow(PATHS, ["words"])["words"].type == pa.list_(pa.string())


def test_texts_are_texts_and_tokens_are_on_request(rich):
    table = rich.arrow("note", "mark", "words")
    assert table["note"].to_pylist() == ["a", "b", "a", "größe", "c"]
    assert table["words"].to_pylist() == [[], None, None, ["x", "y"], None]
    assert table.schema.field("mark").type == pa.uint64()
    assert rich.arrow("mark", strings=True)["mark"].to_pylist() == ["n", None, None, "m", None]
    assert rich.pandas("note")["note"].tolist() == ["a", "b", "a", "größe", "c"]


def test_what_a_range_found_deleted_is_deleted_in_the_copy(rich, other):
    other.write_arrow(rich.stage.read_arrow(PATHS, ["note", "mark"]), 1).wait()
    before = rich.ordinal
    rich.delete("mark", rich.some)
    rich.write("note", tokens(rich.stage, "new", "newer"), query=rich.some, type_name="string")
    changes = rich.stage.read_arrow(PATHS, ["note", "mark"], OrdinalRange.between(before + 1, rich.ordinal))
    other.write_arrow(changes, 2).wait()
    other.advance_write_floor(2).wait()
    assert other.read_arrow(PATHS, ["note"])["note"].to_pylist() == ["newer", "b", "a", "new", "c"]
    assert not other.read(PATHS, ["mark"])


def test_prims_may_be_named_beside_the_table(other):
    table = pa.table({"mass": pa.array([1.0, None, 3.0])})
    other.write_arrow(table, 1, prims=PATHS[:3]).wait()
    other.advance_write_floor(1).wait()
    assert other.read(PATHS[:3], ["mass"])["mass"].valid.tolist() == [True, False, True]


def test_a_whole_stage_as_tables(rich):
    with rich.names.create_path_list_from_strings(["/Other"]) as paths, rich.stage.query_from_path_list(paths) as query:
        rich.write("point", np.float64([7]), query=query)  # of another type than that of the others
    tables = rich.stage.tables()
    assert [(a.name, a.dtype, table.num_rows) for a, table in tables.items() if a.name == "point"] == [
        ("point", "float32", 5),
        ("point", "float64", 1),
    ]
    assert sorted(a.name for a in tables) == sorted([*NAMES, "point"])
    assert set(tables) == set(rich.stage.attributes())
    for attribute, table in tables.items():
        table.validate(full=True)
        assert table.column_names == ["usd-path", attribute.name]
        assert table[attribute.name].null_count == 0
        prims = table["usd-path"].to_pylist()
        assert table[attribute.name].equals(rich.stage.read_arrow(prims, [attribute.name])[attribute.name])


def test_a_whole_stage_comes_out_of_its_tables(rich, other):
    for table in rich.stage.tables().values():
        other.write_arrow(table, 1).wait()
    other.advance_write_floor(1).wait()
    for attribute, table in rich.stage.tables().items():
        prims = table["usd-path"].to_pylist()
        assert other.read_arrow(prims, [attribute.name]).equals(table.combine_chunks(), check_metadata=True)


def test_an_empty_stage_has_no_tables(stage):
    assert stage.tables() == {}


def test_path_texts_are_made_once(rich, monkeypatch):
    stage = rich.stage
    rich.arrow("half")
    monkeypatch.setattr(type(stage), "_path_strings", lambda *_: pytest.fail("the texts were made again"))
    rich.arrow("half")
    with stage.query_from_path_list(rich.lists[0]) as query:  # another query over the same prims
        stage.read_arrow(query, ["half"])


def test_what_is_kept_of_paths_is_bounded(stage):
    for at in range(60):
        stage.write([f"/P{at}"], "mass", 1, np.float32([1]))
    stage.advance_write_floor(1).wait()
    for at in range(60):
        assert stage.read_arrow([f"/P{at}"], ["mass"])["usd-path"].to_pylist() == [f"/P{at}"]
    assert len(stage._lists._by_handle) <= stage._lists.MOST
    assert len(stage._lists._by_content) <= stage._lists.MOST


def test_groups_as_arrow_arrays_can_be_written(rich, other):
    with rich.stage.read_attributes(
        rich.all, rich.stage._intern_tokens(["point", "on"]), OrdinalRange.latest(99)
    ) as read:
        for group in read.groups():
            with group:
                array, name, count = pa.array(group), group._name(), group.prim_count
                other.write(PATHS[:count], name, 1, array).wait()
                other.write(PATHS[:count], f"{name} sliced", 1, pa.concat_arrays([array, array])[count:]).wait()
    other.advance_write_floor(1).wait()
    for name in ("point", "point sliced"):
        assert other.read(PATHS, [name])[name].values.tolist() == np.arange(15).reshape(5, 3).tolist()
    for name in ("on", "on sliced"):
        assert sorted(other.read(PATHS[:2], [name])[name].values.tolist()) == [False, True]


def lone(kind, *values, **metadata):
    """A table of one row for each value."""
    field = pa.field("v", kind, metadata=metadata)
    return pa.table(
        [pa.array(PATHS[: len(values)]), pa.array(values, kind)], pa.schema([("usd-path", pa.string()), field])
    )


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (lambda: pa.table({"v": [1.0]}), "table has no column 'usd-path'"),
        (lambda: lone(pa.string(), "a"), "table column 'v' has texts, and nothing says what they are"),
        (
            lambda: lone(pa.string(), "a", role="POINTS"),
            "table column 'v' has the role 'POINTS' in its metadata, expected one of ",
        ),
        (lambda: lone(pa.timestamp("s"), 1), "table column 'v' is an Arrow array of timestamp"),
        (
            lambda: lone(pa.list_(pa.float32(), 2), [1.0, None]),
            "table column 'v' has 1 nulls inside its tuples, which are no values",
        ),
        (lambda: {"v": [1.0]}, "table must be a pyarrow.Table, got dict; "),
        (lambda: pd.DataFrame({"v": [1.0]}), "table must be a pyarrow.Table, got DataFrame; "),
        (lambda: None, "table must be a pyarrow.Table, got NoneType; "),
        (
            lambda: pa.Table.from_arrays([pa.array(PATHS[:1]), pa.array([1]), pa.array([2])], ["usd-path", "v", "v"]),
            "table has several columns 'v': rename or drop all but one",
        ),
        (
            lambda: pa.table({"usd-path": PATHS[:1], "v": [1], "v deleted": [1]}),
            "table column 'v deleted' must be truth values without nulls, .*; got int64",
        ),
        (
            lambda: pa.table({"usd-path": PATHS[:1], "v": [1], "v deleted": pa.array([None], pa.bool_())}),
            "table column 'v deleted' must be truth values without nulls, .*; got bool with 1 nulls",
        ),
        (
            lambda: pa.table({"usd-path": PATHS[:2], "v": [None, 1], "v deleted": [True, True]}),
            "table column 'v' has a value in row 1, which 'v deleted' marks as deleted: make it null, or the mark ",
        ),
    ],
)
def test_tables_that_no_stage_can_hold(other, table, text):
    with pytest.raises((ValueError, TypeError), match=text):
        other.write_arrow(table(), 1)
    assert other.attributes() == []


def test_a_table_needs_a_prim_for_each_row(other):
    with pytest.raises(ValueError, match="table has 1 rows, but there are 2 prims"):
        other.write_arrow(lone(pa.float32(), 1.0), 1, prims=PATHS[:2])


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (lambda: pa.array([1.0, None]), "values has 1 nulls"),
        (lambda: pa.array([True, None]), "values has 1 nulls"),
        (lambda: pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), "values has 1 nulls"),
        (lambda: pa.array(["a", "b"]), "values is an Arrow array of string, which is no tensor"),
        (lambda: pa.array([[1.0], [2.0]]), "values is an Arrow array of list"),
    ],
)
def test_arrow_arrays_that_are_no_tensors(other, array, text):
    with pytest.raises((ValueError, TypeError), match=text):
        other.write(PATHS[:2], "v", 1, array())


def test_a_query_does_not_name_the_prims_of_a_table(scene):
    with pytest.raises(TypeError, match="prims must be paths or a PathList where a table is written, got <Query"):
        scene.stage.write_arrow(lone(pa.float32(), 1.0), 9, prims=scene.all)


def test_writing_a_table_is_one_operation(rich, other):
    other.write(PATHS, "half", 1, np.float64([1, 2, 3, 4, 5])).wait()
    op = other.write_arrow(rich.stage.read_arrow(PATHS, ["note", "half"]), 2)
    assert not op.ok
    assert "half" in op.error_message()
    assert [attribute.name for attribute in other.attributes()] == ["half"]


# --- columns of tables as masks --------------------------------------------------------------------------------------


DONES = [False, True, False, False, True]


@pytest.mark.parametrize(
    "make",
    [
        pd.Series,
        pd.Index,
        pd.array,
        lambda v: pd.Series(v, dtype="boolean"),
        lambda v: pd.Series(v, dtype=object),
        lambda v: pd.Series(v, dtype="bool[pyarrow]"),
        pa.array,
        lambda v: pa.chunked_array([v[:2], v[2:]]),
    ],
)
def test_columns_of_tables_are_masks(scene, make):
    scene.write("mass", np.zeros(5, "f4"))
    scene.stage.write_attribute(scene.all, "mass", 9, np.arange(5, dtype="f4"), is_array=False, mask=make(DONES)).wait()
    scene.stage.advance_write_floor(9).wait()
    assert scene.stage.read(scene.all, ["mass"])["mass"].values.tolist() == [0, 1, 0, 0, 4]
    with pytest.raises(TypeError, match="index_map"):
        scene.stage.write_attribute(scene.all, "mass", 10, np.zeros(5), is_array=False, index_map=make(DONES))


@pytest.mark.parametrize("kind", ["Int64", "Float32", "boolean", "int64[pyarrow]"])
def test_columns_with_holes_are_no_values(other, kind):
    column = pd.Series([1, None, 0], dtype=kind)
    with pytest.raises(ValueError, match=r"values has missing values \(NA\)"):
        other.write(PATHS[:3], "v", 1, column)
    assert other.attributes() == []
    other.write(PATHS[:3], "v", 1, column.fillna(column.iloc[0])).wait()
    with pytest.raises(ValueError, match=r"values\[1\] has missing values"):
        other.write(PATHS[:2], "w", 1, [column.dropna(), column], is_array=True)


@pytest.mark.parametrize(
    "mask", [pd.Series([True, None] * 2 + [True], dtype="boolean"), pa.array([True, None] * 2 + [True])]
)
def test_masks_with_holes_are_refused(scene, mask):
    with pytest.raises(TypeError, match="mask must be truth values"):
        scene.stage.write_attribute(scene.all, "mass", 9, np.zeros(5, "f4"), is_array=False, mask=mask)
