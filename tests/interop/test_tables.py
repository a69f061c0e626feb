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
