"""An operation that fails and is dropped before anybody asks what became of it: one warning, one line in the log."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovstage
from ovstage import ErrorCode, OvstageError, OvstageWarning, WriteDesc

Told = list[str]


@pytest.fixture
def told() -> Iterator[Told]:
    """The texts of the warnings so far."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield _Texts(caught)
    assert all(issubclass(w.category, OvstageWarning) for w in caught)


class _Texts(list[str]):
    def __init__(self, caught: list[Any]) -> None:
        self._caught = caught

    def __iter__(self) -> Iterator[str]:
        return (str(w.message) for w in self._caught)

    def __len__(self) -> int:
        return len(self._caught)

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == other


def refused(table: Any, attribute: str = "mass", ordinal: int = 2) -> ovstage.Operation:
    """Three values for two prims."""
    return table.stage.write_attribute(table.query, attribute, ordinal, np.zeros(3, np.float32), is_array=False)


REASON = "the tensor (shape (3,), float32) has 3 rows, but 2 prims are to be written"


def test_it_names_call_attribute_ordinal_and_reason(table: Any, told: Told) -> None:
    refused(table)
    assert told == [
        'write_attribute of "mass" at ordinal 2 was refused and nobody asked why: '
        f'INVALID_ARGUMENT: attribute "mass": {REASON}'
    ]
    assert table.stage.counters()["refused_unasked"] == 1


def test_it_points_at_the_line_that_dropped_the_operation(table: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refused(table)
    assert caught[0].filename == __file__
    assert issubclass(OvstageWarning, RuntimeWarning)  # which Python shows by default


async def _await(op: ovstage.Operation) -> None:
    with pytest.raises(OvstageError):
        await op


def _wait(op: ovstage.Operation) -> None:
    with pytest.raises(OvstageError):
        op.wait()


@pytest.mark.parametrize(
    "ask",
    [
        _wait,
        lambda op: asyncio.run(_await(op)),
        lambda op: op.status,
        lambda op: op.ok,
        lambda op: op.done(),
        lambda op: op.error_message(),
        lambda op: op.op_id,
    ],
    ids=["wait", "await", "status", "ok", "done", "error_message", "op_id"],
)
def test_who_asked_is_not_warned(table: Any, told: Told, ask: Callable[[Any], object]) -> None:
    ask(refused(table))
    assert told == []
    assert table.stage.counters()["refused_unasked"] == 0


def test_the_last_error_asks_about_the_refusal_that_it_is_about(table: Any, told: Told) -> None:
    first, second = refused(table), refused(table, "charge")
    assert "charge" in table.stage.last_error()
    del second
    assert told == []
    del first
    assert len(told) == 1 and "mass" in told[0]


def test_the_last_error_of_another_thread_asks_about_nothing(table: Any, told: Told) -> None:
    op = refused(table)
    thread = threading.Thread(target=table.stage.last_error)
    thread.start()
    thread.join()
    del op
    assert len(told) == 1


def test_success_says_nothing(table: Any, told: Told) -> None:
    for ordinal in range(1, 50):
        table.stage.write_attribute(table.query, "mass", ordinal, np.zeros(2, np.float32), is_array=False)
    table.stage.advance_write_floor(49)
    assert told == []


# --- how often --------------------------------------------------------------------------------------------------------


def test_the_first_of_each_call_attribute_and_code(table: Any, told: Told) -> None:
    for _ in range(3):
        refused(table)
        refused(table, "charge")
        table.stage.write_attributes(
            table.query, [WriteDesc("mass", np.zeros(3, np.float32), is_array=False)], 2
        )  # another call
        table.stage.write_attribute(table.query, "usd-path", 2, np.zeros(2, np.float32), is_array=False)  # another code
    assert [text.split(":")[0].rsplit(" was", 1)[0] for text in told] == [
        'write_attribute of "mass" at ordinal 2',
        'write_attribute of "charge" at ordinal 2',
        "write_attributes at ordinal 2",
        'write_attribute of "usd-path" at ordinal 2',
    ]
    assert table.stage.counters()["refused_unasked"] == 12


def test_then_one_a_second_with_the_number_held_back(table: Any, told: Told) -> None:
    start, drops = time.monotonic(), 0
    while len(told) < 2:
        refused(table, ordinal=drops + 2)
        drops += 1
        assert time.monotonic() < start + 30
    assert time.monotonic() >= start + 0.99
    assert told[1].endswith(f"({drops - 2} more were held back)")
    assert table.stage.counters()["refused_unasked"] == drops


def test_a_program_that_fails_under_ever_new_names_is_told_the_first_thousand(table: Any, told: Told) -> None:
    for i in range(1100):
        refused(table, f"a{i}")
    assert 1024 <= len(told) < 1100
    assert table.stage.counters()["refused_unasked"] == 1100


# --- where else it is told --------------------------------------------------------------------------------------------


def test_the_log_has_it_too(table: Any, told: Told) -> None:
    lines: list[tuple[int, str]] = []
    ovstage.set_log_callback(lambda severity, _, text: lines.append((int(severity), text)))
    try:
        refused(table)
        assert ovstage.flush_log()
    finally:
        ovstage.set_log_callback(None)
    assert lines == [(ovstage.LogSeverity.WARNING, f"ovstage: {told[0]}")]


def test_as_an_error_it_is_reported_and_raised_nowhere(table: Any, unraisable: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(table)
    (report,) = unraisable
    assert report.exc_type is OvstageWarning
    assert "mass" in str(report.exc_value)


def test_pytest_turns_it_into_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_forgetful.py").write_text(
        "import numpy as np, ovstage\n"
        "def test_it():\n"
        "    with ovstage.Stage() as s, ovstage.PathDictionary(s) as n, n.create_path_list_from_strings(['/A']) as p:\n"
        "        with s.query_from_path_list(p) as q:\n"
        "            s.write_attribute(q, 'mass', 1, np.zeros(2, np.float32), is_array=False)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    patient = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert patient.returncode == 0 and "OvstageWarning" in patient.stdout
    strict = subprocess.run([*command, "-W", "error"], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert strict.returncode == 1
    assert 'write_attribute of "mass" at ordinal 1 was refused' in strict.stdout


# --- which operations -------------------------------------------------------------------------------------------------


def _delete(table: Any) -> None:
    table.write("mass", np.zeros(2, np.float32), 1)
    table.seal(1)
    table.stage.delete_attributes(table.query, ["mass"], 1)


def _unmap(table: Any) -> None:
    mapping = table.stage.map_attribute(table.query, "mass", 3, dtype=ovstage.numpy_to_dldatatype(np.dtype("float32")))
    table.seal(3)
    mapping.unmap()


def _unmap_group(table: Any) -> None:
    dtype = ovstage.numpy_to_dldatatype(np.dtype("float32"))
    mapping = table.stage.map_attribute(table.query, "mass", 3, dtype=dtype)
    group = mapping.fetch_next()
    table.seal(3)
    mapping.unmap_group(group)
    mapping.abort()


def _query(table: Any) -> None:
    predicate = ovstage.Predicate("usd-path", ovstage.FilterOp.GT, ["1"])
    table.stage.query(ovstage.Filter([predicate]))


def _read(table: Any) -> None:
    table.write("mass", np.zeros(2, np.float32), 1)
    table.stage.read_attributes(table.query, [table.token("mass")], ovstage.OrdinalRange.latest(1))


CASES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a batch": (
        lambda t: t.stage.write_attributes(t.query, [WriteDesc("mass", np.zeros(3, np.float32), is_array=False)], 7),
        "write_attributes at ordinal 7 was refused",
    ),
    "a floor": (
        lambda t: t.stage.advance_write_floor(4, ovstage.Scope.INCLUDE, [2**63]),
        "advance_write_floor at ordinal 4 was refused",
    ),
    "a delete": (_delete, "delete_attributes at ordinal 1 was refused"),
    "a clone": (lambda t: t.stage.clone_async("/World/No", ["/World/Copy"], 5), "clone at ordinal 5 failed"),
    "world transforms": (
        lambda t: t.stage.compute_hierarchy_async(1, 1, 99),
        "compute_hierarchy at ordinal 1 was refused",
    ),
    "an unmap": (_unmap, 'unmap_attribute of "mass" at ordinal 3 failed'),
    "an unmap of a group": (_unmap_group, 'unmap_group of "mass" at ordinal 3 failed'),
    "a map": (lambda t: t.stage.map_attribute(t.query, "mass", 3), 'map_attribute of "mass" at ordinal 3 was refused'),
    "a query": (_query, "query was refused"),
    "a read": (_read, "read_attributes at ordinal 1 was refused"),
}


@pytest.mark.parametrize(("call", "start"), CASES.values(), ids=list(CASES))
def test_every_call_that_can_fail(table: Any, told: Told, call: Callable[[Any], object], start: str) -> None:
    call(table)
    assert [text.split(" and nobody asked why: ")[0] for text in told] == [start]
    assert table.stage.counters()["refused_unasked"] == 1


def test_an_attribute_that_was_given_as_a_token_is_named(table: Any, told: Told) -> None:
    values = np.zeros(3, np.float32)
    table.stage.write_attribute(table.query, table.token("mass"), 2, values, is_array=False)
    assert told[0].startswith('write_attribute of "mass" at ordinal 2')


def test_a_handle_that_says_why_it_is_none_has_been_asked(table: Any, told: Told) -> None:
    mapping = table.stage.map_attribute(table.query, "mass", 3)  # new, and without a dtype
    with pytest.raises(OvstageError, match="pass the dtype"):
        mapping.fetch_next()
    del mapping
    assert told == []


def test_releases_and_context_exits_say_nothing(table: Any, told: Told) -> None:
    table.write("mass", np.zeros(2, np.float32), 1)
    table.seal(1)
    with table.stage.read_attributes(table.query, [table.token("mass")], ovstage.OrdinalRange.latest(1)) as read:
        number = read.handle
    table.stage.release_read(number)  # once more: refused, and nothing is lost
    with pytest.raises(OvstageError), table.stage.map_attribute(table.query, "mass", 3) as mapping:
        table.seal(3)
        mapping.unmap().wait()
    assert told == []
    assert table.stage.counters()["refused_unasked"] == 0


def test_population_and_export(table: Any, told: Told, tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    from ovstage import population

    def join() -> None:
        for thread in threading.enumerate():
            if thread.name.startswith("ovstage population"):
                thread.join()

    population.open_usd_async(table.stage, str(tmp_path / "missing.usda"), 5)
    join()  # it ended after it was dropped
    held = population.open_usd_from_string_async(table.stage, "no scene", 5)
    join()
    del held  # and here before
    asked = population.open_usd_from_string_async(table.stage, "no scene", 5)
    assert asked.ok
    join()
    del asked
    texts = [text.split(" and nobody asked why: ")[0] for text in told]
    assert texts == ["open_usd failed", "open_usd_from_string failed"]
    assert table.stage.counters()["refused_unasked"] == 2


def test_an_export_that_failed(table: Any, told: Told, tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    from ovstage import population

    operation = population.export_to_usd_file_async(table.stage, str(tmp_path / "no folder" / "a.usda"), ordinal=1)
    operation._job.wait()
    del operation
    assert [text.split(" and nobody asked why: ")[0] for text in told] == ["export_to_usd_file failed"]


# --- where an operation may be dropped --------------------------------------------------------------------------------


def test_with_an_exception_pending(table: Any, told: Told) -> None:
    with pytest.raises(KeyError, match="mine"):
        [refused(table), {}["mine"]]  # dropped from the stack, on the way out
    assert len(told) == 1


def test_in_other_threads(table: Any, told: Told) -> None:
    threads = [
        threading.Thread(target=lambda i=i: [refused(table, f"a{i}") for _ in range(200)] and None) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {text.split('"')[1] for text in told} == {"a0", "a1", "a2", "a3"}
    assert table.stage.counters()["refused_unasked"] == 800


def test_after_the_stage_was_destroyed(told: Told) -> None:
    with ovstage.Stage() as stage, ovstage.PathDictionary(stage) as names:
        with names.create_path_list_from_strings(["/A"]) as prims, stage.query_from_path_list(prims) as query:
            op = stage.write_attribute(query, "mass", 1, np.zeros(2, np.float32), is_array=False)
            late = stage.clone_async("/No", ["/Copy"], 1)
    del op
    del late
    assert [text.split(" and ")[0] for text in told] == [
        'write_attribute of "mass" at ordinal 1 was refused',
        "clone at ordinal 1 failed",
    ]


def test_what_shows_the_warning_may_use_the_stage(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def show(message: Warning | str, *_: Any) -> None:
        shown.append(str(message).split('"')[1])
        if shown == ["mass"]:
            refused(table, "charge")  # warns inside the warning
        table.write("mass", np.ones(2, np.float32), 4 + len(shown))
        if shown == ["mass", "charge", "inertia"]:
            table.stage.destroy()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        refused(table)
        table.seal(6)
        assert table.read("mass", 6) == [1, 1]
        refused(table, "inertia")
    assert shown == ["mass", "charge", "inertia"]
    assert not table.stage.alive


PROGRAM = """
import sys, numpy as np, ovstage
s = ovstage.Stage(); n = ovstage.PathDictionary(s); p = n.create_path_list_from_strings(["/A"])
q = s.query_from_path_list(p)
op = s.write_attribute(q, "mass", 1, np.zeros(2, np.float32), is_array=False)
"""


def test_at_the_exit_of_the_interpreter(fresh_python: Callable[..., Any]) -> None:
    done = fresh_python(PROGRAM)
    assert done.returncode == 0
    assert 'OvstageWarning: write_attribute of "mass" at ordinal 1 was refused' in done.stderr
    strict = fresh_python("import warnings; warnings.simplefilter('error')\n" + PROGRAM)
    assert strict.returncode == 0
    assert 'write_attribute of "mass" at ordinal 1 was refused' in strict.stderr


def test_a_forked_child_says_nothing(table: Any, tmp_path: Path) -> None:
    said = tmp_path / "said"
    op = refused(table)
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(30)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                del op
            said.write_text(str(len(caught)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert said.read_text() == "0"
    assert op.status == ErrorCode.INVALID_ARGUMENT
