"""NVIDIA's open Python client, ``cuda.core``, as producer and consumer of DLPack on the fake."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from client import call, copied, device, download, fake, judged, stream, upload
from cuda.core import Device
from cuda.core.utils import StridedMemoryView

VALUES = np.arange(64, dtype=np.uint8)


@pytest.fixture(scope="module")
def gpu() -> Device:
    found = Device(0)
    found.set_current()
    return found


def handle(of: object) -> int:
    return int(of.handle)  # type: ignore[attr-defined]


def test_it_sees_the_device(gpu: Device) -> None:
    assert gpu.name == "Fake CUDA device 0" and gpu.device_id == 0


def test_it_makes_memory_that_the_driver_calls_use(gpu: Device) -> None:
    on = gpu.create_stream()
    buffer = gpu.allocate(64, stream=on)
    upload(handle(buffer), VALUES, handle(on))
    assert np.array_equal(download(handle(buffer), VALUES, handle(on)), VALUES)
    buffer.close()
    assert (fake.fakecuda_races(), fake.fakecuda_faults()) == (0, 0), fake.fakecuda_report()


def test_its_capsules_name_the_device(gpu: Device) -> None:
    buffer = gpu.allocate(64, stream=gpu.create_stream())
    assert buffer.__dlpack_device__() == (2, 0)
    view = StridedMemoryView.from_dlpack(buffer, stream_ptr=-1)
    assert (view.ptr, view.device_id, view.is_device_accessible) == (handle(buffer), 0, True)


def test_a_consumer_that_goes_on_without_the_producer_is_caught(gpu: Device) -> None:
    """The view alone is no order: the consumer's stream must be told of the producer's."""
    producer, consumer, memory, out = stream(), stream(), device(64), device(64)

    def use(edge: bool) -> None:
        call("cuCtxSynchronize")
        upload(memory, VALUES, producer)
        if edge:
            mark = call("cuEventCreate", 2)
            call("cuEventRecord", mark, producer)
            call("cuStreamWaitEvent", consumer, mark, 0)
        copied(out, memory, 64, consumer)

    assert [judged(lambda: use(True), seed) for seed in range(10)] == [(0, 0)] * 10
    assert all(races for races, _ in (judged(lambda: use(False), seed) for seed in range(10)))


def test_the_library_that_it_calls_is_the_fake() -> None:
    before = fake.fakecuda_calls(b"cuStreamCreateWithPriority")
    Device(0).create_stream()
    assert fake.fakecuda_calls(b"cuStreamCreateWithPriority") == before + 1
    assert ctypes.CDLL("libcuda.so.1")._handle == fake._handle
