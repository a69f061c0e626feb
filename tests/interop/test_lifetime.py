"""A view keeps its bytes for as long as it lives, and not longer: whoever drops it, wherever, whenever."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest
from conftest import run_python

import ovstage
from ovstage import ManagedDLTensor, OrdinalRange, make_dltensor


class Keeper:
    """A consumer that only keeps what it takes, in either form."""

    def __init__(self, probe, export, *, versioned=True, **options):
        version = (1, 0) if versioned else None
        self.held = probe.consume(export.__dlpack__(max_version=version, **options))


def live():
    """Exports and buffers of the whole process."""
    gc.collect()
    counters = ovstage.process_counters()
    return counters["live_exports"], counters["live_blocks"]


@pytest.fixture
def closed_stage():
    """Groups of a stage that is gone, and what is alive besides them."""
    before = live()
    stage, groups = ovstage.Stage("closed"), []
    with ovstage.PathDictionary(stage) as names:
        for number in range(3):
            paths = names.create_path_list_from_strings([f"/{number}/p{i}" for i in range(100)])
            with stage.query_from_path_list(paths) as query:
                token = names.intern_token(f"column{number}")
                stage.write_attribute(query, token, 1 + number, np.full((100, 3), number), is_array=False).wait()
                stage.advance_write_floor(1 + number).wait()
                with stage.read_attributes(query, [token], OrdinalRange.latest(1 + number)) as read:
                    groups += read.groups()
            paths.release()
    return stage, groups, before


VIEWS = {
    "from_dlpack": lambda probe, group: np.from_dlpack(group.dlpack(0)),
    "array": lambda probe, group: group.array(0),
    "asarray": lambda probe, group: np.asarray(group),
    "shaped": lambda probe, group: np.from_dlpack(group.dlpack(0, shape=(-1, 1, 3))),
    "descriptor": lambda probe, group: group.tensor(0),
    "export": lambda probe, group: group.dlpack(0),
    "raw": lambda probe, group: group.raw,
    "legacy": lambda probe, group: Keeper(probe, group.dlpack(0), versioned=False),
    "versioned": lambda probe, group: Keeper(probe, group.dlpack(0)),
    "capsule": lambda probe, group: group.dlpack(0).__dlpack__(),
    "arrow": lambda probe, group: group.__arrow_c_array__(),
}


@pytest.mark.parametrize("seed", range(5))
def test_views_die_in_any_order_after_the_stage(probe, closed_stage, seed):
    stage, groups, before = closed_stage
    views = [make(probe, group) for group in groups for make in VIEWS.values()]
    for group in groups:
        group.release()
    stage.destroy()
    assert all((view.reshape(-1) == number).all() for number in range(3) for view in views_of(views, number))
    random.Random(seed).shuffle(views)
    while views:
        views.pop()
    del stage, groups, group, closed_stage
    assert live() == before


def views_of(views, number):
    """The arrays of one column among them; the others cannot be read by NumPy."""
    size = len(VIEWS)
    return [view for view in views[number * size : (number + 1) * size] if isinstance(view, np.ndarray)]


@pytest.mark.parametrize("kind", VIEWS)
def test_each_kind_of_view_holds_the_bytes_alone(probe, closed_stage, kind):
    stage, groups, before = closed_stage
    view = VIEWS[kind](probe, groups[1])
    for group in groups:
        group.release()
    stage.destroy()
    del stage, groups, group, closed_stage
    assert live()[1] > before[1]
    del view
    assert live() == before


def test_views_die_on_any_thread(probe, column, stage):
    group = column(np.zeros((1000, 3))).group()
    before = live()

    def work():
        for _ in range(200):
            for make in VIEWS.values():
                make(probe, group)

    def hand_over(views):
        views.clear()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for make in VIEWS.values():
        threads.append(threading.Thread(target=hand_over, args=([make(probe, group) for _ in range(50)],)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads, thread
    assert live() == before
    assert stage.counters()["live_exports"] == 0


# --- deleters without Python around them ---


@pytest.mark.parametrize("options", [{}, {"versioned": False}, {"copy": True}, {"copy": True, "versioned": False}])
@pytest.mark.parametrize("end", ["delete_elsewhere", "delete_in_error"])
def test_deleter_of_a_group_needs_no_interpreter(probe, column, options, end):
    group = column(np.zeros(3)).group()
    before = live()
    taken = Keeper(probe, group.dlpack(0), **options)
    if end == "delete_in_error":
        with pytest.raises(LookupError, match="pending"):
            probe.delete_in_error(taken.held)
    else:
        probe.delete_elsewhere(taken.held)
    assert live() == before
    del taken  # nothing is left in it to delete
    assert live() == before


class Owner:
    pass


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("end", ["delete_elsewhere", "delete_in_error", "drop"])
def test_deleter_of_a_callers_tensor_leaves_python_to_python(probe, versioned, end):
    owner, threads = Owner(), []

    def callback(context):
        threads.append((context is owner, threading.get_ident()))

    export = ManagedDLTensor(make_dltensor(np.zeros(3)), manager_ctx=owner, deleter_callback=callback)
    taken = Keeper(probe, export, versioned=versioned)
    del export
    if end == "delete_elsewhere":
        probe.delete_elsewhere(taken.held)
    elif end == "delete_in_error":
        with pytest.raises(LookupError, match="pending"):
            probe.delete_in_error(taken.held)
    del taken
    ovstage.process_counters()  # any call takes what was parked
    assert threads == [(True, threading.get_ident())]


@pytest.mark.parametrize("ask", [{}, {"max_version": (1, 0)}])
@pytest.mark.parametrize("kind", ["group", "caller"])
def test_unconsumed_capsule_dies_in_an_error(probe, column, ask, kind, recwarn):
    group = column(np.zeros(3)).group()
    called = []
    before = live()
    export = group.dlpack(0)
    if kind == "caller":
        export = ManagedDLTensor(make_dltensor(np.zeros(3)), manager_ctx=1, deleter_callback=called.append)
    capsules = [export.__dlpack__(**ask)]
    with pytest.raises(LookupError, match="pending"):
        probe.drop_in_error(capsules)
    assert capsules == []
    del export
    assert called == ([1] if kind == "caller" else [])
    assert live() == before


def test_callback_that_raises_in_an_error_is_reported_only(probe, monkeypatch):
    import sys

    reports = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(report.exc_type))

    def callback(context):
        raise ValueError("no")

    export = ManagedDLTensor(make_dltensor(np.zeros(3)), manager_ctx=1, deleter_callback=callback)
    with pytest.raises(LookupError, match="pending"):
        probe.drop_in_error([export.__dlpack__()])
    assert reports == [ValueError]


def test_callback_runs_once_per_capsule_and_once_without_any():
    called = []
    tensor = make_dltensor(np.zeros(3))
    export = ManagedDLTensor(tensor, manager_ctx="a", deleter_callback=called.append)
    views = [np.from_dlpack(export) for _ in range(3)]
    del export
    assert called == []
    del views
    ovstage.process_counters()
    assert called == ["a"] * 3
    ManagedDLTensor(tensor, manager_ctx="b", deleter_callback=called.append)
    assert called == ["a"] * 3 + ["b"]


# --- the end of the process ---

SETUP = """
import sys, threading
import numpy as np
import ovstage
from conftest import build_probe
from ovstage import ManagedDLTensor, OrdinalRange, make_dltensor

probe = build_probe()
stage = ovstage.Stage("exit")
names = ovstage.PathDictionary(stage)
paths = names.create_path_list_from_strings([f"/p{i}" for i in range(1000)])
query = stage.query_from_path_list(paths)
token = names.intern_token("values")
stage.write_attribute(query, token, 1, np.zeros((1000, 3)), is_array=False).wait()
stage.advance_write_floor(1).wait()
read = stage.read_attributes(query, [token], OrdinalRange.latest(1))
group = read.fetch_next()
"""

TIDY = """
group.release(); read.release().wait(); query.release().wait(); paths.release(); names.destroy(); stage.destroy()
"""

ENDS = {
    "views in globals": "a = np.from_dlpack(group.dlpack(0)); b = group.array(0); c = group.tensor(0)" + TIDY,
    "views in a cycle": "a = [np.from_dlpack(group.dlpack(0))]; a.append(a)" + TIDY,
    "views in the interpreter": "sys.held = [np.from_dlpack(group.dlpack(0)), group.__arrow_c_array__()]" + TIDY,
    "views dropped by a finaliser": """
class Late:
    def __init__(self): self.view = np.from_dlpack(group.dlpack(0))
    def __del__(self): self.view = None
sys.late = Late()
"""
    + TIDY,
    "a daemon that exports": """
started = threading.Event()
def work():
    while True:
        np.from_dlpack(group.dlpack(0))
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
""",
    "deleters after the interpreter": """
for version in (None, (1, 0)):
    probe.delete_after_python(probe.consume(group.dlpack(0).__dlpack__(max_version=version)))
    own = ManagedDLTensor(make_dltensor(np.zeros(3)), manager_ctx=object(), deleter_callback=print)
    probe.delete_after_python(probe.consume(own.__dlpack__(max_version=version)))
    probe.delete_after_python(probe.consume(group.dlpack(0).__dlpack__(max_version=version, copy=True)))
del own
"""
    + TIDY,
}


@pytest.mark.parametrize("end", ENDS)
def test_process_ends_quietly(probe, end):
    done = run_python(SETUP + ENDS[end])
    expected = "deleted after Python\n" if end == "deleters after the interpreter" else ""
    assert (done.returncode, done.stdout, done.stderr) == (0, "", expected)


def test_a_million_exports_leave_no_trace():
    program = (
        SETUP
        + """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4
def exports(number):
    for _ in range(number // 3):
        np.from_dlpack(group.dlpack(0))
        group.dlpack(0).__dlpack__()
        group.dlpack(0, shape=(-1, 1, 3)).__dlpack__(max_version=(1, 0))
        group.array(0)
exports(50_000)
before, start = ovstage.process_counters(), resident()
exports(1_000_000)
grown, after = resident() - start, ovstage.process_counters()
assert grown < 1024, f"{grown} KiB"
assert after["live_exports"] == 0 == stage.counters()["live_exports"]
assert after["live_blocks"] == before["live_blocks"]
"""
        + TIDY
        + """
end = ovstage.process_counters()
assert [end[name] for name in end if name.startswith("live_")] == [0] * sum(n.startswith("live_") for n in end), end
"""
    )
    done = run_python(program)
    assert (done.returncode, done.stderr) == (0, "")
