"""The short form: paths and names in, columns out, and nothing to give back."""

from __future__ import annotations

import gc
import inspect
import os
import re
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import ovstage
from ovstage import ErrorCode, Filter, FilterOp, OvstageError, PathDictionary, Predicate, Stage, population, selection

PATHS = ["/World/A", "/World/B"]


@pytest.fixture
def written(stage: Stage) -> Stage:
    stage.write(PATHS, "mass", 1, np.float32([1, 2])).wait()
    stage.write(PATHS, "position", 1, np.arange(6, dtype=np.float32).reshape(2, 3)).wait()
    stage.write(PATHS, "runs", 1, [np.int32([7]), np.int32([8, 9])], is_array=True).wait()
    stage.advance_write_floor(1).wait()
    return stage


def test_reads_what_it_wrote(written):
    columns = written.read(PATHS, ["mass", "position"])
    assert columns["mass"].values.tolist() == [1, 2]
    assert columns["position"].values.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_order_is_that_of_the_paths(written):
    assert written.read(["/World/B", "/World/A", "/World/B"], ["mass"])["mass"].values.tolist() == [2, 1, 2]


def test_every_way_to_name_prims_gives_the_same(written):
    with PathDictionary(written) as names, names.create_path_list_from_strings(PATHS) as listed:
        with written.query_from_path_list(listed) as query:
            for at, prims in enumerate((PATHS, tuple(PATHS), np.array(PATHS), listed, query, query.handle)):
                assert written.read(prims, ["mass"])["mass"].values.tolist() == [1, 2]
                written.write(prims, "order", 2 + at, np.int32([at, -at])).wait()
                written.advance_write_floor(2 + at).wait()
                assert written.read(query, ["order"])["order"].values.tolist() == [at, -at]
            assert written.read(iter(PATHS), ["mass"])["mass"].values.tolist() == [1, 2]


def test_get_is_one_value(written):
    assert written.get("/World/B", "mass") == np.float32(2)
    assert written.get("/World/B", "position").tolist() == [3, 4, 5]
    assert written.get("/World/B", "runs").tolist() == [8, 9]
    with pytest.raises(KeyError, match="mass"):
        written.get("/World/Nobody", "mass")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("write", lambda s: s.write(["/New"], "mass", 2, np.float32([1]))),
        ("map", lambda s: s.map(["/New"], "mass", 2)),
        ("delete", lambda s: s.delete(["/New"], ["mass"], 2)),
        ("read", lambda s: s.read(["/New"], ["mass"])),
        ("get", lambda s: s.get("/New", "mass")),
        ("attributes", lambda s: s.attributes()),
        ("prims", lambda s: s.prims()),
        ("tree", lambda s: s.tree()),
        ("describe", lambda s: s.describe()),
        ("tables", lambda s: s.tables()),
        ("read_arrow", lambda s: s.read_arrow(["/New"], ["mass"])),
        ("read_pandas", lambda s: s.read_pandas(["/New"], ["mass"])),
        ("write_arrow", lambda s: s.write_arrow(None, 2)),
        ("wait_floor", lambda s: s.wait_floor(1, "mass")),
        ("open_usd", lambda s: population.open_usd(s, "scene.usda")),
        ("export_to_usd_file", lambda s: population.export_to_usd_file(s, "scene.usda", 1)),
        ("export_to_usd_file", lambda s: population.export_to_usd_file_async(s, "scene.usda", 1)),
        ("create_export_destination", lambda s: population.create_export_destination(s, "scene.usda")),
        ("create_export_destination", lambda s: population.create_export_destination_async(s, "scene.usda")),
    ],
)
def test_a_stage_that_has_gone_names_the_call(name, call, monkeypatch):
    for package in ("pyarrow", "pandas", "pxr"):  # what a call needs is asked for after that
        monkeypatch.setitem(sys.modules, package, None)
    stage = Stage("gone")
    stage.destroy()
    with pytest.raises(OvstageError) as error:
        call(stage)
    assert error.value.code == ErrorCode.INVALID_HANDLE
    assert str(error.value).endswith(f"{name} called after Stage was destroyed")


def test_maps_and_deletes_by_paths(written):
    with written.map(PATHS, "mass", 2) as mapping:
        mapping.fetch_next().array(0)[0] = 5
    written.delete(["/World/B"], ["position", "runs"], 2).wait()
    written.advance_write_floor(2).wait()
    assert written.read(PATHS, ["mass"])["mass"].values.tolist() == [5, 2]
    assert written.read(PATHS, ["position"])["position"].valid.tolist() == [True, False]
    written.delete(["/World/A"], [], 3).wait()
    assert list(written.prims()) == ["/World/B"]


def test_prims_are_paths(written):
    prims = written.prims()
    assert list(prims) == PATHS
    assert len(prims) == 2
    assert (prims[0], prims[-1], prims[:1]) == ("/World/A", "/World/B", ["/World/A"])
    assert "/World/A" in prims
    assert "/World/C" not in prims
    with pytest.raises(IndexError):
        prims[2]
    heavy = written.prims(Filter([Predicate("mass", FilterOp.GT, ["1.5"])]))
    assert list(heavy) == ["/World/B"]
    assert written.read(heavy, ["mass"])["mass"].values.tolist() == [2]


def test_prims_stay_what_they_were(written):
    before = written.prims()
    written.write(["/World/C"], "mass", 2, np.float32([3])).wait()
    assert list(before) == PATHS
    assert list(written.prims()) == [*PATHS, "/World/C"]


def test_prims_of_an_empty_stage(stage):
    assert list(stage.prims()) == []
    assert len(stage.prims()) == 0


def test_nothing_made_in_passing_warns(written):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            written.read(written.prims(), ["mass"])
            written.read([f"/World/P{id(object())}"], ["mass"])
        gc.collect()


def test_a_list_that_changed_is_another_list(written):
    paths = list(PATHS)
    assert written.read(paths, ["mass"])["mass"].values.tolist() == [1, 2]
    paths[0] = "/World/B"
    assert written.read(paths, ["mass"])["mass"].values.tolist() == [2, 2]
    paths.pop()
    assert written.read(paths, ["mass"])["mass"].values.tolist() == [2]


def test_the_same_paths_make_one_query(written):
    written.read(PATHS, ["mass"])
    before = written.counters()["live_queries"]
    for _ in range(100):
        written.read(list(PATHS), ["mass"])
        written.read(tuple(PATHS), ["mass"])
    assert written.counters()["live_queries"] == before


def known(stage: Stage, paths: list[str]) -> None:
    """Lists of paths that nobody made are not kept."""
    with PathDictionary(stage) as names:
        names.intern_paths(paths)


def test_lists_of_paths_that_nobody_made_are_not_kept(written):
    before = written.counters()["live_queries"]
    written.read([*PATHS, "/World/Nobody"], ["mass"])
    assert written.counters()["live_queries"] == before
    known(written, ["/World/Nobody"])
    written.read([*PATHS, "/World/Nobody"], ["mass"])
    assert written.counters()["live_queries"] == before + 1


def test_as_many_lists_are_kept_as_is_said_and_no_more(written):
    known(written, [f"/World/P{at}" for at in range(3 * selection.MOST_LISTS)])
    for at in range(3 * selection.MOST_LISTS):
        written.read([f"/World/P{at}"], ["mass"])
    assert written.counters()["live_queries"] == selection.MOST_LISTS


def test_lists_that_lie_elsewhere_are_not_kept_longer(written):
    early = [[f"/World/Early{k}"] for k in range(selection.MOST_RECENT)]
    known(written, [f"/World/P{at}" for at in range(2 * selection.MOST_LISTS)] + [path for (path,) in early])
    for paths in early:
        written.read(paths, ["mass"])
    for at in range(2 * selection.MOST_LISTS):
        written.read(iter([f"/World/P{at}"]), ["mass"])
    assert written.counters()["live_queries"] == selection.MOST_LISTS


def test_long_lists_drive_out_the_others(stage, monkeypatch):
    monkeypatch.setattr(selection, "MOST_PATHS", 10)
    monkeypatch.setattr(selection, "MOST_RECENT", 0)
    for at in range(20):
        stage.write([f"/P{at}/C{k}" for k in range(4)], "mass", 1, np.zeros(4, np.float32)).wait()
        assert stage.counters()["live_queries"] <= 2
    stage.write([f"/Q{k}" for k in range(40)], "mass", 1, np.zeros(40, np.float32)).wait()
    assert stage.counters()["live_queries"] == 1


def test_a_path_list_keeps_its_query_until_it_is_released(written):
    with PathDictionary(written) as names:
        listed = names.create_path_list_from_strings(PATHS)
        before = written.counters()["live_queries"]
        for _ in range(10):
            written.read(listed, ["mass"])
        assert written.counters()["live_queries"] == before + 1
        listed.release()
        assert written.counters()["live_queries"] == before
        with pytest.raises(ovstage.OvstageError, match="path_list"):
            written.read(listed, ["mass"])


def test_a_path_list_serves_two_stages(written):
    with Stage("other") as other, PathDictionary(written) as names:
        with names.create_path_list_from_strings(PATHS) as listed:
            other.write(listed, "mass", 1, np.float32([8, 9])).wait()
            other.advance_write_floor(1).wait()
            for _ in range(2):
                assert written.read(listed, ["mass"])["mass"].values.tolist() == [1, 2]
                assert other.read(listed, ["mass"])["mass"].values.tolist() == [8, 9]


def test_threads_share_what_is_kept(stage, monkeypatch):
    monkeypatch.setattr(selection, "MOST_LISTS", 2)
    monkeypatch.setattr(selection, "MOST_RECENT", 2)
    lists = [[f"/World/{letter}{at}" for letter in "ABC"] for at in range(6)]
    for at, paths in enumerate(lists):
        stage.write(paths, "mass", 1, np.full(3, at, np.float32)).wait()
    stage.advance_write_floor(1).wait()
    wrong: list[object] = []

    def reads(start: int) -> None:
        try:
            for turn in range(200):
                at = (start + turn) % len(lists)
                if stage.read(lists[at], ["mass"])["mass"].values.tolist() != [at] * 3:
                    wrong.append(at)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=reads, args=(at,), daemon=True) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def test_the_page_and_the_docstrings_name_the_same_calls():
    page = (Path(__file__).parents[2] / "docs/dev/api.md").read_text()
    calls = dict(re.findall(r"^\| `(\w+)\(([^)]*)\)", page, re.MULTILINE))
    assert {"write", "read", "get", "prims", "attributes"} <= calls.keys()
    for call, written in calls.items():
        assert "Example::" in (inspect.getdoc(getattr(Stage, call)) or ""), call
        named = [name.partition("=")[0] for name in written.split(", ") if name not in ("", "...")]
        assert named == list(inspect.signature(getattr(Stage, call)).parameters)[1 : 1 + len(named)], call


# --- what objects say of themselves ---------------------------------------------------------------------------------


def told(thing: object) -> str:
    """Twice, since nothing may come of looking."""
    text = repr(thing)
    assert repr(thing) == text
    return text


def test_repr_of_a_stage():
    with Stage("robots") as stage:
        assert told(stage) == "<Stage 'robots': 0 prims, 0 attributes, sealed up to 0>"
        stage.write(PATHS, "mass", 1, np.float32([1, 2])).wait()
        stage.advance_write_floor(1).wait()
        assert told(stage) == "<Stage 'robots': 2 prims, 1 attribute, sealed up to 1, mass>"
        for name in "bcd":
            stage.write(PATHS, name, 2, np.float32([1, 2])).wait()
        assert told(stage) == "<Stage 'robots': 2 prims, 4 attributes, sealed up to 1, mass, b, c, ...>"
    assert told(stage) == "<Stage 'robots', destroyed>"


def test_repr_of_handles(written):
    with PathDictionary(written) as names, names.create_path_list_from_strings(PATHS) as listed:
        assert told(listed) == f"PathList({int(listed)}, owned: 2 prims, /World/A, /World/B)"
        query = written.query_from_path_list(listed)
    assert told(query) == f"<Query {query.handle}: 2 prims, 3 attributes, mass, position, runs>"
    query.release().wait()
    assert told(query) == f"<Query {query.handle}, released>"
    with written.query() as every:
        mapping = written.map_attribute(every, "mass", 2)
        assert told(mapping) == f"<Map {mapping.handle} of 'mass' at ordinal 2>"
        group = mapping.fetch_next()
        assert told(group) == "<MapGroup: 2 prims, float32>"
        mapping.unmap().wait()
        assert told(mapping) == f"<Map {mapping.handle}, unmapped>"
        refused = written.map_attribute(every, "usd-path", 2)
        assert "refused: " in told(refused)


def test_repr_of_groups(written):
    with (
        written.query() as every,
        written.read_attributes(
            every,
            [written._intern_tokens([name])[0] for name in ("mass", "position", "runs")],
            ovstage.OrdinalRange.latest(1),
        ) as read,
    ):
        groups = list(read.groups())
        assert [told(group) for group in groups] == [
            "<ReadGroup 'mass': 2 prims, float32, ordinal 1>",
            "<ReadGroup 'position': 2 prims, float32x3, ordinal 1>",
            "<ReadGroup 'runs': 2 prims, arrays of int32, ordinal 1>",
        ]
        for group in groups:
            group.release()
        assert told(groups[0]) == "<ReadGroup 'mass': 2 prims, released, ordinal 1>"


def test_repr_of_an_operation(written):
    good = written.write(PATHS, "mass", 2, np.float32([1, 2]))
    assert "done" in told(good)
    good.wait()
    assert "waited for" in told(good)
    refused = written.write(PATHS, "mass", 1, np.float32([1, 2]))
    assert "sealed" in told(refused) and not refused.ok


def test_repr_never_raises_after_the_end():
    stage = Stage("gone")
    listed = PathDictionary(stage).create_path_list_from_strings(PATHS)
    op = stage.write(listed, "mass", 1, np.float32([1, 2]))
    query = stage.query_from_path_list(listed)
    stage.advance_write_floor(1).wait()
    read = stage.read_attributes(query, stage._intern_tokens(["mass"]), ovstage.OrdinalRange.latest(1))
    group = read.fetch_next()
    mapping = stage.map_attribute(query, "mass", 2)
    lent = mapping.fetch_next()
    objects = [stage, listed, op, query, read, group, mapping, lent]
    stage.destroy()
    for thing in objects:
        assert told(thing)
    assert "destroyed" in told(query)


def test_repr_in_a_forked_child(written):
    listed = written.prims()
    op = written.write(listed, "mass", 2, np.float32([1, 2]))
    query = written.query()
    mapping = written.map_attribute(query, "mass", 3)
    group = mapping.fetch_next()
    objects = [written, listed, op, query, mapping, group, group.dlpack(0)]
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if all(repr(thing) for thing in objects) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    mapping.abort()
    query.release().wait()


def test_repr_of_a_report_is_short():
    from ovstage.population.report import Report, Skipped

    report = Report("robot.usd", 3, [f"/P{i}" for i in range(1000)], 7, 900, skipped=[Skipped("/P1", "a", "b")])
    assert repr(report) == "<Report robot.usd: 1000 prims, 900 values in 7 columns at ordinal 3, 1 skipped>"


def test_dir_shows_the_public_names_only():
    names = dir(ovstage)
    assert set(ovstage.__all__) <= set(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert {"os", "sys", "Any", "import_module", "annotations", "TYPE_CHECKING"}.isdisjoint(names)
