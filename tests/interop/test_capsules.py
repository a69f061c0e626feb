"""What is inside our capsules, and what becomes of capsules that are not what they should be."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import address, needs_writable_imports

from ovstage import DLTensor, ErrorCode, ManagedDLTensor, OvstageError, dltensor_to_numpy, make_dltensor

READ_ONLY, IS_COPIED = 1, 2


@pytest.fixture
def group(column):
    return column(np.arange(32, dtype="f8").reshape(2, 16)).group()


@pytest.fixture
def deletions(probe):
    """How many deleters of capsules made by the probe have run since the test began."""
    before = probe.deleted()
    return lambda: probe.deleted() - before


def taken(probe, export, **options):
    return probe.look(probe.consume(export.__dlpack__(**options)))


# --- ours ---


def test_versioned_capsule(probe, group):
    assert taken(probe, group.dlpack(0), max_version=(1, 0)) == {
        "version": (1, 3),
        "flags": READ_ONLY,
        "data": address(group.array(0)),
        "device": (1, 0),
        "dtype": (2, 64, 1),
        "ndim": 2,
        "shape": (2, 16),
        "strides": (16, 1),
        "byte_offset": 0,
    }


def test_legacy_capsule_says_the_same_without_flags(probe, group):
    versioned = taken(probe, group.dlpack(0), max_version=(1, 3))
    legacy = taken(probe, group.dlpack(0))
    assert legacy == versioned | {"version": None, "flags": 0}


@pytest.mark.parametrize(
    ("asked", "version"),
    [(None, None), ((0, 8), None), ((1, 0), (1, 3)), ((1, 9), (1, 3)), ((2, 0), (1, 3)), ((np.int64(1), 0), (1, 3))],
)
def test_consumer_gets_what_it_can_read(probe, group, asked, version):
    assert taken(probe, group.dlpack(0), max_version=asked)["version"] == version


@pytest.mark.parametrize("asked", [[1, 0], (1,), 1, ("1", 0), (1.0, 0)])
def test_version_that_is_none(group, asked):
    with pytest.raises(TypeError, match=r"max_version must be a \(major, minor\) tuple"):
        group.dlpack(0).__dlpack__(max_version=asked)


def test_columns_are_aligned_for_every_consumer(column):
    for rows in (1, 3, 1000, 100_000):
        assert address(column(np.zeros(rows, "f4")).group().array(0)) % 256 == 0


def test_writable_export(probe, group, column):
    assert taken(probe, group.dlpack(0, readonly=False), max_version=(1, 0))["flags"] == 0
    with column(np.zeros(2)).map() as mapping:
        mapped = mapping.fetch_next()
        assert taken(probe, mapped.dlpack(0), max_version=(1, 0))["flags"] == 0
        assert taken(probe, mapped.dlpack(0, readonly=True), max_version=(1, 0))["flags"] == READ_ONLY


@pytest.mark.parametrize("ask", [{"copy": True}, {"copy": True, "max_version": (1, 0)}])
def test_copy_is_the_consumers_own(probe, group, ask):
    held = probe.consume(group.dlpack(0).__dlpack__(**ask))
    copy = probe.look(held)
    assert copy["data"] != address(group.array(0))
    assert copy["data"] % 256 == 0
    assert copy["flags"] == (IS_COPIED if "max_version" in ask else 0)
    assert (copy["shape"], copy["strides"]) == ((2, 16), (16, 1))


def test_strides_of_a_copy_are_compact(probe):
    source = np.arange(12, dtype="f4").reshape(3, 4)
    transposed = make_dltensor(source, shape=[4, 3], strides=[1, 4])
    export = ManagedDLTensor(transposed, manager_ctx=None)
    assert taken(probe, export)["strides"] == (1, 4)
    assert taken(probe, export, copy=True)["strides"] == (3, 1)
    assert np.array_equal(np.from_dlpack(export), source.T)
    assert np.array_equal(np.from_dlpack(Copied(export)), source.T)


class Copied:
    def __init__(self, export):
        self.export = export

    def __dlpack__(self, **options):
        return self.export.__dlpack__(**options | {"copy": True})

    def __dlpack_device__(self):
        return self.export.__dlpack_device__()


def test_no_rows_have_an_address(probe, column):
    empty = column([np.empty((0, 3), "f4"), np.ones((1, 3), "f4")], is_array=True, rows=2).group()
    assert empty.tensor_count == 2
    seen = taken(probe, empty.dlpack(0))
    assert seen["data"] % 4 == 0 and seen["data"] != 0
    assert seen["shape"][0] == 0
    assert np.from_dlpack(empty.dlpack(0)).shape[0] == 0


def test_device_requests(group):
    export = group.dlpack(0)
    assert export.__dlpack_device__() == (1, 0)
    assert export.__dlpack__(dl_device=(1, 0), copy=False)
    for other in ((2, 0), (1, 1), (13, 0)):
        with pytest.raises(BufferError, match="does not match tensor device"):
            export.__dlpack__(dl_device=other)


def test_device_memory_that_the_host_reads_is_copied_to_the_host(probe):
    pinned = ManagedDLTensor(make_dltensor(np.float32([1, 2]), device_type=3), manager_ctx=None)
    assert pinned.__dlpack_device__() == (3, 0)
    assert taken(probe, pinned, dl_device=(1, 0), max_version=(1, 0))["device"] == (1, 0)
    with pytest.raises(BufferError, match="copy=False"):
        pinned.__dlpack__(dl_device=(1, 0), copy=False)
    remote = ManagedDLTensor(make_dltensor(np.float32([1, 2]), device_type=2), manager_ctx=None)
    for wish in ({"dl_device": (1, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            remote.__dlpack__(**wish)


# --- axes on request ---


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((-1, 4, 4), (2, 4, 4)),
        ((2, 4, 4), (2, 4, 4)),
        ([2, -1], (2, 16)),
        ((-1,), (32,)),
        ((2, 2, 2, -1, 2), (2, 2, 2, 2, 2)),
        ((32, 1), (32, 1)),
        (np.array([2, 16]), (2, 16)),
    ],
)
def test_axes_on_request(probe, group, shape, axes):
    export = group.dlpack(0, shape=shape)
    assert (export.shape, export.dtype.lanes, export.ndim) == (axes, 1, len(axes))
    seen = taken(probe, export, max_version=(1, 0))
    assert (seen["shape"], seen["dtype"], seen["flags"]) == (axes, (2, 64, 1), READ_ONLY)
    assert seen["data"] == address(group.array(0))
    assert np.array_equal(np.from_dlpack(export), np.arange(32.0).reshape(axes))


def test_axes_of_a_scalar(column):
    one = column(np.float32([7])).group()
    assert np.from_dlpack(one.dlpack(0, shape=())).shape == ()
    assert np.from_dlpack(one.dlpack(0, shape=(1, 1, -1))).tolist() == [[[7]]]


def test_axes_of_no_rows(column):
    empty = column([np.empty((0, 3), "f4"), np.ones((1, 3), "f4")], is_array=True, rows=2).group()
    assert np.from_dlpack(empty.dlpack(0, shape=(-1, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="shape must be"):
        empty.dlpack(0, shape=(-1, 0))


@pytest.mark.parametrize("shape", [(3, -1), (2, 4), (-1, -1), (-2, -16), (2**62, 2**62), (0, -1), (1,) * 65])
def test_axes_that_do_not_fit(group, shape):
    with pytest.raises(ValueError, match=r"shape must be .*for 2 rows of 16 elements"):
        group.dlpack(0, shape=shape)


@pytest.mark.parametrize("shape", [16, "ab", (1.0, 2), ("2", 16)])
def test_axes_that_are_none(group, shape):
    with pytest.raises(TypeError, match="shape must be a sequence of ints"):
        group.dlpack(0, shape=shape)


@needs_writable_imports
def test_mapped_matrices_are_filled_as_matrices(column, stage):
    matrices = column(np.zeros((2, 16)))
    with matrices.map() as mapping:
        np.from_dlpack(mapping.fetch_next().dlpack(0, shape=(-1, 4, 4)))[1, 3, 0] = 5
    stage.advance_write_floor(2).wait()
    assert np.flatnonzero(matrices.group().array(0)).tolist() == [16 + 12]


# --- descriptors that describe nothing ---


def changed(**fields):
    tensor = make_dltensor(np.float32([1, 2]))
    for name, value in fields.items():
        setattr(tensor, name, value)
    return ManagedDLTensor(tensor, manager_ctx=None)


@pytest.mark.parametrize("fields", [{"ndim": -1}, {"ndim": 65}, {"shape": None}, {"data": None}])
@pytest.mark.parametrize("ask", [{}, {"max_version": (1, 0)}, {"copy": True}])
def test_descriptor_that_cannot_be_exported(fields, ask):
    with pytest.raises(BufferError, match="dl_tensor cannot be exported"):
        changed(**fields).__dlpack__(**ask)


def test_lanes_that_became_none():
    tensor = make_dltensor(np.float32([1, 2]))
    tensor.dtype.lanes = 0
    with pytest.raises(BufferError, match="0 lanes"):
        ManagedDLTensor(tensor, manager_ctx=None).__dlpack__()


# --- theirs ---


class Capsule:
    """A producer of one capsule, which says nothing about its device."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule


class Placed(Capsule):
    """The same, which does say something."""

    def __init__(self, capsule, device):
        super().__init__(capsule)
        self.device = device

    def __dlpack_device__(self):
        return self.device


def decoded(producer):
    return dltensor_to_numpy(DLTensor.from_dlpack(producer)).tolist()


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ({"shape": (3,)}, [0, 1, 2]),
        ({"shape": (3,), "strides": (2,)}, [0, 2, 4]),
        ({"shape": (3,), "strides": (-1,), "byte_offset": 16}, [2, 1, 0]),
        ({"shape": (3,), "strides": (0,)}, [0, 0, 0]),
        ({"shape": (2, 3), "ndim": 2, "strides": (1, 2)}, [0, 2, 4, 1, 3, 5]),
        ({"shape": (1, 3), "ndim": 2, "strides": (999, 1)}, [0, 1, 2]),
        ({"shape": (3, 1), "ndim": 2, "strides": (1, -77)}, [0, 1, 2]),
        ({"shape": (0, 3), "ndim": 2, "strides": (-5, 123456)}, []),
        ({"shape": (0,), "data": False}, []),
        ({"shape": None, "ndim": 0}, [0]),
        ({"shape": (), "strides": (), "ndim": 0, "byte_offset": 8}, [1]),
        ({"shape": (2,), "dtype": (2, 64, 3)}, [0, 1, 2, 3, 4, 5]),
        ({"shape": (2,), "strides": (2,), "dtype": (2, 64, 2)}, [0, 1, 4, 5]),
        ({"shape": (2,), "flags": READ_ONLY}, [0, 1]),
        ({"shape": (2,), "flags": 0xFF00}, [0, 1]),
        ({"shape": (2,), "deleter": False}, [0, 1]),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_layouts_that_producers_use(probe, column, deletions, versioned, fields, values):
    def capsule():
        return probe.produce(versioned=versioned, **fields)

    assert decoded(Capsule(capsule())) == values
    assert deletions() == fields.get("deleter", True)
    shape = fields["shape"] or ()
    written = column(Capsule(capsule()), rows=shape[0] if shape else 1) if values else None
    if written:
        assert written.group().array(0).reshape(-1).tolist() == values
    gc.collect()
    assert deletions() == fields.get("deleter", True) * (1 + bool(values))


def test_read_only_source_stays_read_only(probe):
    tensor = DLTensor.from_dlpack(Capsule(probe.produce(shape=(2,), flags=READ_ONLY)))
    view = dltensor_to_numpy(tensor)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)


@pytest.mark.parametrize("major", [0, 2, 99])
def test_foreign_version_is_given_back_unread(probe, column, deletions, major):
    with pytest.raises(BufferError, match=rf"DLPack {major}\.0"):
        DLTensor.from_dlpack(Capsule(probe.produce_foreign(major)))
    assert deletions() == 1
    with pytest.raises(BufferError, match=r"tensors.*has another layout"):
        column(Capsule(probe.produce_foreign(major)), rows=1)
    assert deletions() == 2


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ndim": -1, "shape": (1,)}, "ndim -1"),
        ({"ndim": 2**31 - 1, "shape": (1,)}, "ndim 2147483647"),
        ({"ndim": 65, "shape": (1,) * 65}, "ndim 65"),
        ({"ndim": 1, "shape": None}, "no shape"),
        ({"shape": (2,), "dtype": (2, 64, 0)}, "lanes must be in"),
        ({"shape": (2,), "dtype": (2, 64, 256)}, "lanes must be in"),
    ],
)
def test_tensor_that_cannot_be_read(probe, column, deletions, versioned, fields, text):
    capsule = probe.produce(versioned=versioned, **fields)
    with pytest.raises(ValueError, match=text):
        DLTensor.from_dlpack(Capsule(capsule))
    assert deletions() == 0  # it was not taken
    with pytest.raises(ValueError, match=f"tensors: .*{text}"):
        column(Capsule(capsule), rows=2)
    del capsule
    gc.collect()
    assert deletions() == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"shape": (-1,)}, ErrorCode.INVALID_ARGUMENT),
        ({"shape": (2,), "data": False}, ErrorCode.INVALID_ARGUMENT),
        ({"shape": (2**40, 2**40), "ndim": 2}, ErrorCode.INVALID_ARGUMENT),
        ({"shape": (2,), "dtype": (2, 0, 1)}, None),
        ({"shape": (2,), "dtype": (99, 64, 1)}, None),
        ({"shape": (2,), "dtype": (1, 4, 1)}, ErrorCode.NOT_SUPPORTED),
        ({"shape": (2,), "device": 2}, ErrorCode.NOT_SUPPORTED),
    ],
)
def test_tensor_that_the_engine_refuses(probe, column, deletions, fields, code):
    with pytest.raises(OvstageError) as caught:
        column(Capsule(probe.produce(**fields)), rows=2)
    assert code in (None, caught.value.code)
    assert caught.value.message
    gc.collect()
    assert deletions() == 1


def test_capsule_is_taken_once(probe, deletions):
    capsule = probe.produce(shape=(2,))
    assert decoded(Capsule(capsule)) == [0, 1]
    with pytest.raises(ValueError, match="consumed only once"):
        decoded(Capsule(capsule))
    del capsule
    assert deletions() == 1


@pytest.mark.parametrize("answer", [None, 7, "dltensor", b"dltensor", object()])
def test_answers_that_are_no_capsule(column, answer):
    with pytest.raises(ValueError, match="invalid PyCapsule object"):
        DLTensor.from_dlpack(Capsule(answer))
    with pytest.raises(ValueError, match=r"tensors: .*invalid PyCapsule object"):
        column(Capsule(answer), rows=1)


# --- producers that fail or lie ---


@pytest.mark.parametrize("error", [BufferError, RuntimeError, MemoryError, KeyboardInterrupt, TypeError])
@pytest.mark.parametrize("where", ["__dlpack__", "__dlpack_device__"])
def test_producer_that_raises(column, error, where):
    def fail(self, **options):
        raise error("not today")

    methods = {"__dlpack__": lambda self, **options: np.zeros(1).__dlpack__(), where: fail}
    producer = type("Failing", (), methods)()
    with pytest.raises(error, match="not today"):
        DLTensor.from_dlpack(producer)
    with pytest.raises(error, match="not today"):
        column(producer, rows=1)


def test_attribute_that_raises_is_no_missing_attribute():
    class Broken:
        @property
        def __dlpack__(self):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        DLTensor.from_dlpack(Broken())


@pytest.mark.parametrize(("stated", "real"), [((2, 0), 1), ((1, 0), 2), ((10, 0), 1), ((99, 0), 1)])
def test_producer_that_lies_about_its_device(probe, column, deletions, stated, real):
    capsule = probe.produce(shape=(2,), device=real)
    text = f"says device type {stated[0]}, but the tensor of __dlpack__ is on device type {real}"
    with pytest.raises(BufferError, match=text):
        DLTensor.from_dlpack(Placed(capsule, stated))
    with pytest.raises(BufferError, match=text):
        column(Placed(capsule, stated), rows=2)
    assert deletions() == 0
    assert decoded(Capsule(capsule)) == [0, 1] if real == 1 else True


def test_pinned_memory_may_be_filed_under_the_host(probe):
    assert decoded(Placed(probe.produce(shape=(2,)), (3, 0))) == [0, 1]


@pytest.mark.parametrize("answer", [None, (), ("cpu", 0), 1, (1.0, 0)])
def test_device_that_is_none(answer):
    with pytest.raises((TypeError, IndexError)):
        DLTensor.from_dlpack(Placed(None, answer))


@pytest.mark.parametrize("device", [1, 2, 13])
def test_stream_reaches_device_memory_only(probe, device):
    asked = []

    class Streaming:
        def __dlpack__(self, **options):
            asked.append(options)
            return probe.produce(shape=(2,), device=device)

        def __dlpack_device__(self):
            return (device, 0)

    DLTensor.from_dlpack(Streaming(), stream=7)
    DLTensor.from_dlpack(Streaming())
    expected = {"max_version": (1, 3)}
    assert asked == [expected if device == 1 else expected | {"stream": 7}, expected]


# --- the exchange table ---


def test_table_of_the_exported_type(probe, group):
    assert probe.table(type(group.dlpack(0))) == {
        "version": (1, 3),
        "previous": False,
        "allocator": True,
        "from_object": True,
        "to_object": True,
        "borrow": False,
        "stream": True,
    }
    assert probe.stream(ManagedDLTensor) == 0


def test_export_through_the_table(probe, stage, group):
    before = stage.counters()["live_exports"]
    held = probe.from_object(ManagedDLTensor, group.dlpack(0))
    assert probe.look(held) == taken(probe, group.dlpack(0), max_version=(1, 3))
    assert stage.counters()["live_exports"] == before + 1
    del held
    assert stage.counters()["live_exports"] == before
    with pytest.raises(TypeError, match="expected a ManagedDLTensor"):
        probe.from_object(ManagedDLTensor, np.zeros(1))


def test_return_through_the_table(probe, group, deletions):
    again = probe.to_object(ManagedDLTensor, probe.from_object(ManagedDLTensor, group.dlpack(0)))
    assert type(again) is ManagedDLTensor
    assert (again.shape, again.data, again.readonly) == ((2, 16), address(group.array(0)), True)
    group.release()
    assert np.from_dlpack(again).tolist() == np.arange(32.0).reshape(2, 16).tolist()
    foreign = probe.to_object(ManagedDLTensor, probe.consume(probe.produce(shape=(3,), strides=(2,))))
    assert np.from_dlpack(foreign).tolist() == [0, 2, 4]
    assert deletions() == 0
    del foreign
    gc.collect()
    assert deletions() == 1


def test_foreign_version_through_the_table(probe, deletions):
    with pytest.raises(BufferError, match="DLPack 9"):
        probe.to_object(ManagedDLTensor, probe.consume(probe.produce_foreign(9)))
    assert deletions() == 1


def test_allocation_through_the_table(probe):
    made = probe.look(probe.allocate(ManagedDLTensor, (2, 3), (2, 32, 4), 1))
    assert made["data"] % 256 == 0
    assert (made["shape"], made["strides"], made["dtype"], made["flags"]) == ((2, 3), (3, 1), (2, 32, 4), 0)
    assert probe.look(probe.allocate(ManagedDLTensor, (0, 3), (2, 32, 1), 1))["strides"] == (3, 1)
    for refused in (((-1,), (2, 32, 1), 1), ((2,), (2, 32, 1), 2), ((2**62, 8), (2, 32, 1), 1)):
        with pytest.raises(RuntimeError, match="BufferError: prototype has device type"):
            probe.allocate(ManagedDLTensor, *refused)
