"""What the fake finds, by calls of the driver alone: each fault in every order, and nothing where there is none.

A scenario is written twice, with its edge and without it. Faulty ones must be reported in ten of ten orders, whether or
not the bytes came out right; correct ones in none.
"""

from __future__ import annotations

from collections.abc import Callable

import kernels
import numpy as np
import pytest
from client import (
    LEGACY,
    Kernels,
    call,
    copied,
    device,
    download,
    event,
    fake,
    judged,
    recorded,
    stream,
    upload,
    uploaded,
)

N = 64
BYTES = 4 * N
SEEDS = range(1, 11)

Scenario = Callable[[bool], None]
"""A program; with ``False`` it lacks an edge."""

scenarios: dict[str, Scenario] = {}


def scenario(program: Scenario) -> Scenario:
    scenarios[program.__name__] = program
    return program


def ramp(start: int) -> np.ndarray:
    return np.arange(start, start + N, dtype=np.int32)


def wait(by: object, on: object) -> None:
    call("cuStreamWaitEvent", by, recorded(on), 0)


@pytest.fixture(scope="module")
def streams() -> tuple[object, object]:
    return stream(), stream()


# --- scenarios ------------------------------------------------------------------------------------------------------

one: object = None
two: object = None
"""Two streams that do not wait for the legacy stream."""


@scenario
def a_read_waits_for_the_write(edge: bool) -> None:
    memory, out = device(BYTES), device(BYTES)
    upload(memory, ramp(1), one)
    if edge:
        wait(two, one)
    copied(out, memory, BYTES, two)


@scenario
def a_write_waits_for_the_write_before_it(edge: bool) -> None:
    memory = device(BYTES)
    upload(memory, ramp(1), one)
    if edge:
        wait(two, one)
    upload(memory, ramp(2), two)


@scenario
def memory_is_written_again_after_its_last_reader(edge: bool) -> None:
    """A buffer that is given back while a copy from it is in flight, and taken for the next write."""
    memory, out = device(BYTES), device(BYTES)
    upload(memory, ramp(1), one)
    wait(two, one)
    copied(out, memory, BYTES, two)
    if edge:
        wait(one, two)
    upload(memory, ramp(2), one)


@scenario
def an_event_is_recorded_behind_the_write(edge: bool) -> None:
    memory, out = device(BYTES), device(BYTES)
    early = recorded(one)
    upload(memory, ramp(1), one)
    call("cuStreamWaitEvent", two, recorded(one) if edge else early, 0)
    copied(out, memory, BYTES, two)


@scenario
def an_event_is_recorded_before_it_is_waited_for(edge: bool) -> None:
    """To wait for an event that was never recorded is no wait."""
    memory, out, mark = device(BYTES), device(BYTES), event()
    upload(memory, ramp(1), one)
    if edge:
        call("cuEventRecord", mark, one)
    call("cuStreamWaitEvent", two, mark, 0)
    copied(out, memory, BYTES, two)
    call("cuEventRecord", mark, one)


@scenario
def an_event_tells_of_its_newest_record(edge: bool) -> None:
    memory, out, mark = device(BYTES), device(BYTES), event()
    upload(memory, ramp(1), one)
    call("cuEventRecord", mark, one)
    if not edge:
        call("cuEventRecord", mark, two)  # for something else, in between
    call("cuStreamWaitEvent", two, mark, 0)
    copied(out, memory, BYTES, two)


@scenario
def the_host_asks_until_the_answer_is_yes(edge: bool) -> None:
    memory, mark = device(BYTES), event()
    upload(memory, ramp(1), one)
    call("cuEventRecord", mark, one)
    while not _done(mark) and edge:
        continue
    upload(memory, ramp(2), two)


@scenario
def the_host_waits_for_the_stream(edge: bool) -> None:
    memory = device(BYTES)
    upload(memory, ramp(1), one)
    call("cuStreamSynchronize", one if edge else two)
    upload(memory, ramp(2), two)


@scenario
def the_legacy_stream_waits_for_blocking_streams_alone(edge: bool) -> None:
    memory, out, writer = device(BYTES), device(BYTES), _blocking() if edge else one
    upload(memory, ramp(1), writer)
    copied(out, memory, BYTES, LEGACY)


@scenario
def a_kernel_waits_for_its_list(edge: bool) -> None:
    """The list of rows goes up on a stream of its own."""
    rows, source, target = device(BYTES), uploaded(ramp(1)), device(BYTES)
    upload(rows, np.arange(N, dtype=np.uint32)[::-1], one)
    if edge:
        wait(two, one)
    _rows().launch("rows4", N, two, target, rows, source, 0, N, np.uint32(1))


@scenario
def memory_is_freed_after_its_last_use(edge: bool) -> None:
    memory = int(call("cuMemAllocAsync", BYTES, one))
    wait(two, one)
    upload(memory, ramp(1), two)
    if edge:
        wait(one, two)
    call("cuMemFreeAsync", memory, one)


@scenario
def memory_is_used_after_its_allocation(edge: bool) -> None:
    memory = int(call("cuMemAllocAsync", BYTES, one))
    if edge:
        wait(two, one)
    upload(memory, ramp(1), two)


@scenario
def an_edge_goes_over_a_third_stream(edge: bool) -> None:
    memory, out, third = device(BYTES), device(BYTES), _blocking()
    upload(memory, ramp(1), one)
    if edge:
        wait(third, one)
    wait(two, third)
    copied(out, memory, BYTES, two)


@scenario
def halves_of_a_block_do_not_meet(edge: bool) -> None:
    memory = device(2 * BYTES)
    upload(memory, ramp(1), one)
    upload(memory + (BYTES if edge else BYTES - 4), ramp(2), two)


def _done(mark: object) -> bool:
    from cuda.bindings import driver

    return driver.cuEventQuery(mark)[0] == driver.CUresult.CUDA_SUCCESS


_kept: dict[str, object] = {}


def _blocking() -> object:
    return _kept.setdefault("blocking", stream(blocking=True)) if "blocking" not in _kept else _kept["blocking"]


def _rows() -> Kernels:
    if "rows" not in _kept:
        _kept["rows"] = Kernels(kernels.text())
    return _kept["rows"]  # type: ignore[return-value]


# --- the verdicts ---------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def two_streams(streams: tuple[object, object]) -> None:
    global one, two
    one, two = streams


@pytest.mark.parametrize("name", scenarios)
def test_a_missing_edge_is_reported_in_every_order(name: str) -> None:
    found = [judged(lambda: scenarios[name](False), seed) for seed in SEEDS]
    assert all(races > 0 for races, _ in found), found


@pytest.mark.parametrize("name", scenarios)
def test_correct_use_is_reported_in_none(name: str) -> None:
    found = [judged(lambda: scenarios[name](True), seed) for seed in SEEDS]
    assert found == [(0, 0)] * len(SEEDS), fake.fakecuda_report().decode()


def test_the_report_names_both_sides() -> None:
    judged(lambda: a_read_waits_for_the_write(False), 1)
    assert (
        "cuMemcpyDtoDAsync (read) is not ordered after cuMemcpyHtoDAsync (write)"
        in (said := fake.fakecuda_report().decode())
        or "cuMemcpyHtoDAsync (write) is not ordered after cuMemcpyDtoDAsync (read)" in said
    )


def test_a_race_is_found_where_the_bytes_are_right() -> None:
    """In some orders the reader comes second, and reads what it should; it is reported all the same."""
    right = 0
    for seed in range(1, 21):
        fake.fakecuda_begin(seed)
        memory, out = uploaded(ramp(0)), device(BYTES)
        upload(memory, ramp(5), one)
        copied(out, memory, BYTES, two)
        assert fake.fakecuda_races() > 0
        right += np.array_equal(download(out, ramp(0), two), ramp(5))
    assert 0 < right < 20


def test_use_after_a_queued_free_is_a_fault() -> None:
    fake.fakecuda_begin(1)
    memory = int(call("cuMemAllocAsync", BYTES, one))
    upload(memory, ramp(1), one)
    call("cuMemFreeAsync", memory, one)
    kernel = _rows()
    kernel.launch("rows4", N, one, memory, 0, uploaded(ramp(1)), 0, N, np.uint32(1))
    fake.fakecuda_races()
    assert "illegal address" in fake.fakecuda_report().decode()


def test_a_kernel_beyond_its_memory_is_a_fault() -> None:
    fake.fakecuda_begin(1)
    small, target = device(BYTES), device(BYTES // 2)
    _rows().launch("rows4", N, one, target, 0, small, 0, N, np.uint32(1))
    fake.fakecuda_races()
    assert fake.fakecuda_faults() == 1 and "illegal address" in fake.fakecuda_report().decode()


def test_a_misaligned_cell_is_a_fault() -> None:
    fake.fakecuda_begin(1)
    memory = device(BYTES)
    _rows().launch("rows16", 2, one, memory + 4, 0, memory + 128, 0, 2, np.uint32(1))
    fake.fakecuda_races()
    assert "misaligned" in fake.fakecuda_report().decode()
