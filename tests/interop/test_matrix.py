"""Every library both ways: values, shape, address, who may write. What is seen is recorded for docs/interop.md."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
from libraries import CONSUMERS, PRODUCERS, STRIDED, TYPES, ImmutableError, dtype_of, opened

import ovstage
from ovstage import DLTensor, ManagedDLTensor, OrdinalRange, make_dltensor


def name(kind):
    return kind.name


@pytest.fixture
def library(request, record):
    try:
        found = opened(request.param)
    except ImportError as error:
        pytest.skip(f"{request.param.name}: {error}")
    record(found.name, "version", found.version)
    return found


def counting(shape, dtype="float64"):
    """0, 1, 2 ... in that shape and type."""
    try:
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype_of(dtype))
    except ImportError as error:
        pytest.skip(f"{dtype}: {error}")


def bytes_at(where, values):
    return ctypes.string_at(where, values.nbytes)


every_consumer = pytest.mark.parametrize("library", CONSUMERS, ids=name, indirect=True)
every_producer = pytest.mark.parametrize("library", PRODUCERS, ids=name, indirect=True)


# --- from the stage to the library ---


class Recorder:
    """An export that remembers how it was asked for, and has no table."""

    def __init__(self, export):
        self.export, self.asked = export, []

    def __dlpack__(self, **options):
        capsule = self.export.__dlpack__(**options)
        self.asked.append(options)
        return capsule

    def __dlpack_device__(self):
        return self.export.__dlpack_device__()


class TableOnly(ManagedDLTensor):
    """An export for those who do not call methods."""

    def __dlpack__(self, **options):
        raise RuntimeError("asked for a capsule")


@every_consumer
def test_form_that_it_asks_for(library, column, record):
    try:
        values = np.zeros(3)
        library.take(TableOnly(make_dltensor(values), manager_ctx=None))
        form = "table"
    except (RuntimeError, TypeError):
        export = Recorder(column(np.zeros(3)).group().dlpack(0, readonly=False))
        library.take(export)
        version = export.asked[-1].get("max_version")
        form = f"versioned {version}" if version else "legacy"
    record(library.name, "asks", form)
    assert form == library.asks


@every_consumer
@pytest.mark.parametrize("dtype", TYPES)
def test_element_types_out(library, column, record, dtype):
    values = counting((3, 2), dtype)
    group = column(values).group()
    try:
        taken = library.take(group.dlpack(0, readonly=library.writing == "immutable"))
    except (BufferError, RuntimeError, TypeError, ValueError, KeyError):
        record(library.name, f"out {dtype}", "no")
        if dtype not in library.refuses:
            raise
        return
    assert dtype not in library.refuses
    where = library.address(taken)
    assert bytes_at(where, values) == values.tobytes()
    assert library.shape(taken) == (3, 2)
    record(library.name, f"out {dtype}", "view" if where == group.tensor(0).data else "copy")
    assert where == group.tensor(0).data


LAYOUTS = {
    "(N,)": ((5,), {}, (5,)),
    "(N, 3)": ((5, 3), {}, (5, 3)),
    "(N, 16)": ((5, 4, 4), {}, (5, 16)),
    "(N, 4, 4)": ((5, 4, 4), {"shape": (-1, 4, 4)}, (5, 4, 4)),
    "one row": ((1, 3), {}, (1, 3)),
}


@every_consumer
@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_out(library, column, record, layout):
    shape, options, seen = LAYOUTS[layout]
    values = counting(shape)
    group = column(values).group()
    taken = library.take(group.dlpack(0, readonly=library.writing == "immutable", **options))
    assert library.shape(taken) == seen
    assert library.address(taken) == group.tensor(0).data
    assert bytes_at(library.address(taken), values) == values.tobytes()
    record(library.name, f"shape {layout}", "view")


@every_consumer
def test_no_rows_out(library, column, record):
    group = column([np.empty(0), np.zeros(2)], is_array=True).group()
    taken = library.take(group.dlpack(0, readonly=library.writing == "immutable"))
    assert library.shape(taken) == (0,)
    record(library.name, "shape no rows", "view")


@every_consumer
def test_arrays_of_single_prims_out(library, column, record):
    rows = [counting(8), counting(3)]
    group = column(rows, is_array=True).group()
    for i, values in enumerate(rows):
        taken = library.take(group.dlpack(i, readonly=library.writing == "immutable"))
        assert bytes_at(library.address(taken), values) == values.tobytes()
        assert library.address(taken) == group.tensor(i).data  # 0 and 64 bytes from the start
    record(library.name, "shape array", "view")


@every_consumer
def test_part_of_a_column_out(library, column, record):
    """It begins in the middle of a cache line, which some cannot take as it is."""
    values = counting(9)
    whole = column(values)
    group = whole.group(whole.pick(3, 4, 5))
    taken = library.take(group.dlpack(0, readonly=library.writing == "immutable"))
    where = library.address(taken)
    assert bytes_at(where, values[3:6]) == values[3:6].tobytes()
    record(library.name, "shape part", "view" if where == group.tensor(0).data else "copy")
    assert (where == group.tensor(0).data) == (group.tensor(0).data % library.aligned == 0)


@every_consumer
def test_writing_to_a_snapshot(library, column, record):
    group = column(np.zeros((3, 2))).group()
    try:
        library.write(library.take(group.dlpack(0)))
        fact = "written through"
    except ImmutableError:
        fact = "immutable"
    except (ValueError, TypeError, PermissionError, BufferError):
        fact = "refused"
    assert (group.array(0).flat[0] == 1) == (fact == "written through")
    record(library.name, "writing", fact)
    assert fact == library.writing


@every_consumer
def test_writing_to_a_mapped_buffer(library, column, stage, record):
    mapped = column(np.zeros((3, 2)))
    with mapped.map() as mapping:
        group = mapping.fetch_next()
        taken = library.take(group.dlpack(0))
        assert library.address(taken) == group.tensor(0).data
        try:
            library.write(taken)
            written = True
        except (ImmutableError, ValueError):
            written = False
        del taken
    stage.advance_write_floor(2).wait()
    assert mapped.group().array(0).flat[0] == written
    record(library.name, "maps", "yes" if written else "no")
    assert written == library.reaches_maps


@every_consumer
def test_view_outlives_everything(library, record):
    def live():
        gc.collect()
        counters = ovstage.process_counters()
        return counters["live_exports"], counters["live_blocks"]

    before, values = live(), counting((1000, 3))
    stage = ovstage.Stage("outlived")
    with ovstage.PathDictionary(stage) as names:
        paths = names.create_path_list_from_strings([f"/p{i}" for i in range(1000)])
        with stage.query_from_path_list(paths) as query:
            stage.write_attribute(query, "points", 1, values, is_array=False).wait()
            stage.advance_write_floor(1).wait()
            with stage.read_attributes(query, [names.intern_token("points")], OrdinalRange.latest(1)) as read:
                with read.fetch_next() as group:
                    taken = library.take(group.dlpack(0, readonly=library.writing == "immutable"))
        paths.release()
    stage.destroy()
    del stage, group
    gc.collect()
    assert bytes_at(library.address(taken), values) == values.tobytes()
    del taken
    assert live() == before
    record(library.name, "outlives", "yes")


# --- from the library to the stage ---


MADE = [
    pytest.param(kind, dtype, id=f"{dtype}-{kind.name}") for kind in PRODUCERS for dtype in TYPES if dtype in kind.makes
]


@pytest.mark.filterwarnings("ignore:Exporting an unversioned DLPack capsule:DeprecationWarning")  # asked for by retry
@pytest.mark.parametrize(("library", "dtype"), MADE, indirect=["library"])
def test_element_types_in(library, column, record, dtype):
    values = counting((3, 2), dtype)
    try:
        theirs, where = library.make(values)
        described = DLTensor.from_dlpack(theirs)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError, KeyError, NotImplementedError):
        record(library.name, f"in {dtype}", "no")
        if dtype not in library.lacks:
            raise
        return
    assert dtype not in library.lacks
    record(library.name, f"in {dtype}", "view" if described.data + described.byte_offset == where else "copy")
    assert described.data + described.byte_offset == where
    assert bytes_at(where, values) == values.tobytes()
    del described, theirs
    gc.collect()
    theirs, _ = library.make(values)
    group = column(theirs, rows=6 if library.name == "pyarrow" else 3).group()
    assert bytes_at(group.tensor(0).data, values) == values.tobytes()


@every_producer
def test_layouts_in(library, column, record):
    values = counting((4, 6))
    for layout, view in library.views.items():
        theirs, where = library.make(values)
        expected = STRIDED[layout](values)
        described = DLTensor.from_dlpack(view(theirs))
        assert np.array_equal(ovstage.dltensor_to_numpy(described), expected.reshape(-1)), layout
        group = column(view(theirs), rows=len(expected)).group()
        assert np.array_equal(np.asarray(group), expected), layout
        inside = where <= described.data + described.byte_offset < where + values.nbytes
        record(library.name, f"strided {layout}", "view" if inside else "copy")
        assert inside


@every_producer
def test_descriptor_holds_the_producer(library, record):
    values = counting((20, 3))
    theirs, _ = library.make(values)
    described = DLTensor.from_dlpack(theirs)
    del theirs
    gc.collect()
    assert bytes_at(described.data + described.byte_offset, values) == values.tobytes()
    record(library.name, "held", "yes")


CHOOSERS = [kind for kind in PRODUCERS if {"bool", "int32"} <= set(kind.makes) - kind.lacks]


@pytest.mark.parametrize("library", CHOOSERS, ids=name, indirect=True)
def test_masks_and_index_maps(library, stage):
    """What a library makes of truth values and of row numbers chooses prims and rows."""
    names = ovstage.PathDictionary(stage)
    listed = names.create_path_list_from_strings([f"/World/P{i}" for i in range(6)])
    with names, listed, stage.query_from_path_list(listed) as query:
        mask, _ = library.make(np.array([False, True, False, False, True, False]))
        rows, _ = library.make(np.int32([5, 4, 3, 2, 1, 0]))
        values = np.arange(6, dtype="f4")
        stage.write_attribute(query, "mass", 1, values, is_array=False, index_map=rows).wait()
        stage.write_attribute(query, "mass", 2, values * 10, is_array=False, mask=mask).wait()
        with query.where(mask) as part:
            stage.write_attribute(part, "drag", 2, np.float32([1, 4]), is_array=False).wait()
        with pytest.raises(TypeError, match="index_map"):
            stage.write_attribute(query, "mass", 3, values, is_array=False, index_map=mask)
        stage.advance_write_floor(2).wait()
        read = stage.read(query, ["mass", "drag"])
        assert read["mass"].values.tolist() == [5, 10, 3, 2, 40, 0]
        assert read["drag"].valid.tolist() == [False, True, False, False, True, False]
