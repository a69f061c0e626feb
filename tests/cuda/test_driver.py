"""What the fake answers is what NVIDIA's manual of the driver API says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from client import (
    DEVICE,
    EVENTS,
    LEGACY,
    MANAGED,
    PER_THREAD,
    PINNED,
    STREAMS,
    DriverError,
    call,
    copied,
    device,
    download,
    event,
    fake,
    pinned,
    recorded,
    stream,
    upload,
    uploaded,
)
from cuda.bindings import driver

SIXTEEN = np.arange(16, dtype=np.int32)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: it may end by a signal, and the environment is read once."""
    return subprocess.run(
        [sys.executable, "-c", "from client import *\nstart()\n" + program],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def refused(code: str, name: str, *arguments: object) -> None:
    with pytest.raises(DriverError, match=f"^CUDA_ERROR_{code}$"):
        call(name, *arguments)


def test_devices_and_contexts() -> None:
    assert call("cuDeviceGetCount") == 1
    assert call("cuDeviceGetName", 64, 0).strip(b"\0 ") == b"Fake CUDA device 0"
    refused("INVALID_DEVICE", "cuDeviceGet", 1)
    refused("INVALID_DEVICE", "cuDevicePrimaryCtxRetain", 7)
    top = call("cuCtxGetCurrent")
    call("cuCtxPushCurrent", top)
    assert int(call("cuCtxPopCurrent")) == int(top) and int(call("cuCtxGetCurrent")) == int(top)


def test_without_a_context() -> None:
    top = call("cuCtxPopCurrent")
    try:
        for name, arguments in (("cuMemAlloc", (4,)), ("cuStreamCreate", (0,)), ("cuCtxSynchronize", ())):
            refused("INVALID_CONTEXT", name, *arguments)
    finally:
        call("cuCtxPushCurrent", top)


@pytest.mark.parametrize(
    ("count", "said"), [("0", "CUDA_ERROR_NO_DEVICE"), ("3", "3"), ("99", "8")], ids=["none", "three", "too many"]
)
def test_how_many_devices_there_are(count: str, said: str) -> None:
    done = run("print(call('cuDeviceGetCount'))", FAKECUDA_DEVICES=count)
    assert said in done.stdout + done.stderr


def test_memory() -> None:
    before = [fake.fakecuda_live(kind) for kind in (DEVICE, PINNED, MANAGED)]
    memory, host, managed = device(100), call("cuMemHostAlloc", 100, 0), call("cuMemAllocManaged", 100, 1)
    assert [fake.fakecuda_live(kind) for kind in (DEVICE, PINNED, MANAGED)] == [k + 1 for k in before]
    start, size = call("cuMemGetAddressRange", memory + 7)
    assert (int(start), size) == (memory, 100)
    for wrong in (memory + 1, 4096):
        refused("INVALID_VALUE", "cuMemFree", wrong)
    call("cuMemFree", memory)
    call("cuMemFree", managed)
    call("cuMemFreeHost", host)
    assert [fake.fakecuda_live(kind) for kind in (DEVICE, PINNED, MANAGED)] == before
    refused("INVALID_VALUE", "cuMemFree", memory)
    refused("INVALID_VALUE", "cuMemAlloc", 0)


def test_what_a_pointer_is() -> None:
    attribute = driver.CUpointer_attribute
    kind, ordinal, managed = (
        attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED,
    )
    memory, host = device(8), pinned(SIXTEEN).ctypes.data
    assert int(call("cuPointerGetAttribute", kind, memory)) == 2
    assert int(call("cuPointerGetAttribute", kind, host)) == 1
    assert call("cuPointerGetAttribute", ordinal, memory) == 0
    assert not call("cuPointerGetAttribute", managed, memory)
    refused("INVALID_VALUE", "cuPointerGetAttribute", kind, SIXTEEN.ctypes.data)  # memory that is not the driver's


def test_copies() -> None:
    on = stream()
    memory = device(SIXTEEN.nbytes)
    upload(memory, SIXTEEN, on)
    assert np.array_equal(download(memory, SIXTEEN, on), SIXTEEN)
    pageable = SIXTEEN * 2
    call("cuMemcpyHtoDAsync", memory, pageable.ctypes.data, pageable.nbytes, on)  # is staged before the call returns
    pageable[:] = 0
    assert np.array_equal(download(memory, SIXTEEN, on), SIXTEEN * 2)
    target = np.zeros_like(SIXTEEN)
    call("cuMemcpyDtoHAsync", target.ctypes.data, memory, target.nbytes, on)  # waits, since the target is pageable
    assert np.array_equal(target, SIXTEEN * 2)
    call("cuMemsetD8Async", memory, 1, SIXTEEN.nbytes, on)
    assert np.array_equal(download(memory, SIXTEEN, on), np.full(16, 0x01010101))
    for size, to in ((SIXTEEN.nbytes + 1, memory), (4, 64)):
        refused("INVALID_VALUE", "cuMemcpyHtoDAsync", to, pageable.ctypes.data, size, on)
    assert (fake.fakecuda_races(), fake.fakecuda_faults()) == (0, 0)


def test_nothing_runs_before_it_is_waited_for() -> None:
    on, memory = stream(), uploaded(SIXTEEN)
    upload(memory, SIXTEEN * 3, on)
    seen = np.zeros_like(SIXTEEN)
    fake.fakecuda_peek(seen.ctypes.data, memory, seen.nbytes)
    assert np.array_equal(seen, SIXTEEN)
    call("cuStreamSynchronize", on)
    fake.fakecuda_peek(seen.ctypes.data, memory, seen.nbytes)
    assert np.array_equal(seen, SIXTEEN * 3)


def test_a_query_first_says_that_it_is_not_ready() -> None:
    on, memory = stream(), device(SIXTEEN.nbytes)
    upload(memory, SIXTEEN, on)
    mark = recorded(on)
    answers = [driver.cuEventQuery(mark)[0].name for _ in range(8)]
    assert answers[:2] == ["CUDA_ERROR_NOT_READY"] * 2 and answers[-1] == "CUDA_SUCCESS"
    assert driver.cuStreamQuery(on)[0].name == "CUDA_SUCCESS"
    assert driver.cuEventQuery(event())[0].name == "CUDA_SUCCESS"  # never recorded


def test_the_legacy_stream_and_blocking_ones_wait_for_each_other() -> None:
    blocking = stream(blocking=True)
    for first, second in ((blocking, LEGACY), (LEGACY, blocking), (blocking, 0), (PER_THREAD, LEGACY)):
        memory, out = device(SIXTEEN.nbytes), device(SIXTEEN.nbytes)
        upload(memory, SIXTEEN, first)
        copied(out, memory, SIXTEEN.nbytes, second)
        assert np.array_equal(download(out, SIXTEEN, second), SIXTEEN)
    assert fake.fakecuda_races() == 0


def test_host_functions_run_in_their_turn() -> None:
    import ctypes

    ran: list[int] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    function = kind(lambda at: ran.append(at or 0))
    on, address = stream(), ctypes.cast(function, ctypes.c_void_p).value
    for at in (1, 2, 3):
        assert fake.cuLaunchHostFunc(ctypes.c_void_p(int(on)), ctypes.c_void_p(address), ctypes.c_void_p(at)) == 0
    assert ran == []
    call("cuStreamSynchronize", on)
    assert ran == [1, 2, 3]


def test_stale_handles_are_told() -> None:
    events, streams = fake.fakecuda_live(EVENTS), fake.fakecuda_live(STREAMS)
    on, mark = stream(), event()
    assert (fake.fakecuda_live(EVENTS), fake.fakecuda_live(STREAMS)) == (events + 1, streams + 1)
    call("cuEventDestroy", mark)
    call("cuStreamDestroy", on)
    assert (fake.fakecuda_live(EVENTS), fake.fakecuda_live(STREAMS)) == (events, streams)
    refused("INVALID_HANDLE", "cuEventRecord", mark, stream())
    refused("INVALID_HANDLE", "cuStreamSynchronize", on)
    refused("INVALID_HANDLE", "cuStreamDestroy", on)
    first, second = call("cuStreamGetId", stream()), call("cuStreamGetId", stream())
    assert first != second


def test_calls_can_be_made_to_fail() -> None:
    fake.fakecuda_fail(b"cuMemAlloc_v2", 2, 2)
    device(4)
    refused("OUT_OF_MEMORY", "cuMemAlloc", 4)
    device(4)
    fake.fakecuda_fail(b"cuStreamCreateWithPriority", 1, 700)
    refused("ILLEGAL_ADDRESS", "cuStreamCreate", 0)
    done = run("", FAKECUDA_FAIL="cuInit:1:100")
    assert "CUDA_ERROR_NO_DEVICE" in done.stderr


def test_calls_are_counted_and_traced(tmp_path: Path) -> None:
    before = fake.fakecuda_calls(b"cuMemAlloc_v2")
    device(4)
    assert fake.fakecuda_calls(b"cuMemAlloc_v2") == before + 1
    assert run("device(4)", FAKECUDA_TRACE=str(tmp_path / "trace")).returncode == 0
    assert "cuMemAlloc_v2" in (tmp_path / "trace").read_text().splitlines()


def test_memory_of_another_device() -> None:
    program = (
        "there = uploaded(np.zeros(4, np.uint32))\nstart(1)\nhere = uploaded(np.ones(4, np.uint32))\non = stream()\n"
        "import kernels\nrows = Kernels(kernels.text())\n"
        "rows.launch('rows4', 4, on, there, 0, here, 0, 4, np.uint32(1))\nprint(fake.fakecuda_races())\n"
        "print(fake.fakecuda_report().decode())"
    )
    done = run(program, FAKECUDA_DEVICES="2")
    assert "peer: rows4 on device 1 touches memory of device 0" in done.stdout, done.stderr
    peers = "start(0)\nzero = call('cuCtxGetCurrent')\nstart(1)\ncall('cuCtxEnablePeerAccess', zero, 0)\n"
    assert "peer" not in run(peers + program, FAKECUDA_DEVICES="2").stdout


# --- walls ----------------------------------------------------------------------------------------------------------


def test_the_host_cannot_touch_device_memory() -> None:
    assert run("print(ctypes.string_at(device(16), 4))").returncode == -signal.SIGSEGV


COPY_BACK = "on = stream()\nmemory = uploaded(np.arange(4))\nhost = pinned(np.zeros(4, np.int64))\n"


def test_pinned_memory_is_walled_while_a_copy_is_in_flight() -> None:
    queued = COPY_BACK + "call('cuMemcpyDtoHAsync', host.ctypes.data, memory, host.nbytes, on)\n"
    assert run(queued + "print(host.sum())").returncode == -signal.SIGSEGV
    assert run(queued + "call('cuStreamSynchronize', on)\nprint(host.sum())").stdout == "6\n"
    # to have waited for another stream is not enough
    assert run(queued + "call('cuStreamSynchronize', stream())\nprint(host.sum())").returncode == -signal.SIGSEGV
    queued = COPY_BACK + "call('cuMemcpyHtoDAsync', memory, host.ctypes.data, host.nbytes, on)\n"
    assert run(queued + "print(host.sum())").stdout == "0\n"  # a source may be read
    assert run(queued + "host[0] = 1").returncode == -signal.SIGSEGV
    assert run(queued + "call('cuCtxSynchronize')\nhost[0] = 1").returncode == 0


def test_a_walled_block_waits_for_all_its_copies() -> None:
    program = (
        COPY_BACK + "two = stream()\n"
        "call('cuMemcpyDtoHAsync', host.ctypes.data, memory, 8, on)\n"
        "call('cuMemcpyDtoHAsync', host.ctypes.data + 8, memory, 8, two)\n"
        "call('cuStreamSynchronize', two)\n"
    )
    assert run(program + "print(host.sum())").returncode == -signal.SIGSEGV
    assert run(program + "call('cuStreamSynchronize', on)\nprint(host.sum())").stdout == "0\n"
