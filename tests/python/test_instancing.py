"""Which prims are instances of which prototypes: an attribute that whoever brings the scene writes."""

from __future__ import annotations

import numpy as np
import pytest

import ovstage
from ovstage import ErrorCode, OvstageError, instancing

PROTOTYPE = "/__Prototype_1"


@pytest.fixture
def forest(stage, make_table):
    """Two trees of one prototype and a stone of another."""
    marks = {"/World/TreeA": PROTOTYPE, "/World/TreeB": PROTOTYPE, "/World/Stone": "/__Prototype_2"}
    instancing.mark(stage, marks, 1).wait()
    make_table(["/World/TreeA/leaf", PROTOTYPE]).write("mass", np.float32([1, 2]), 1)
    return marks


def test_prototypes_and_instances_find_each_other(stage, forest):
    assert instancing.available()
    assert sorted(instancing.get_prototype_roots(stage)) == ["/__Prototype_1", "/__Prototype_2"]
    assert sorted(instancing.get_instance_roots(stage, PROTOTYPE)) == ["/World/TreeA", "/World/TreeB"]
    assert {path: instancing.get_prototype_root(stage, path) for path in forest} == forest


def test_a_stage_without_instances(stage):
    assert instancing.get_prototype_roots(stage) == []
    assert instancing.get_instance_roots(stage, "/__Prototype_1") == []
    instancing.mark(stage, {}, 1).wait()


@pytest.mark.parametrize("path", ["/World/TreeA/leaf", "/World", PROTOTYPE, "/Nobody"])
def test_only_roots_are_instances(stage, forest, path):
    with pytest.raises(OvstageError, match=f"prim {path} is not the root of an instance") as failure:
        instancing.get_prototype_root(stage, path)
    assert failure.value.code == ErrorCode.NOT_FOUND


def test_instances_come_and_go(stage, forest, make_table):
    gone = make_table(["/World/TreeA"])
    stage.delete_attributes(gone.query, [], 2).wait()
    instancing.mark(stage, {"/World/Stone": PROTOTYPE}, 2).wait()
    assert instancing.get_prototype_roots(stage) == [PROTOTYPE]
    assert sorted(instancing.get_instance_roots(stage, PROTOTYPE)) == ["/World/Stone", "/World/TreeB"]


def test_clones_of_instances_are_instances(stage, forest):
    stage.clone("/World/TreeA", ["/World/TreeC", "/World/TreeB/inside"], 2)
    assert instancing.get_prototype_root(stage, "/World/TreeC") == PROTOTYPE
    assert len(instancing.get_instance_roots(stage, PROTOTYPE)) == 4


def test_bad_paths(stage):
    for call in (instancing.get_prototype_root, instancing.get_instance_roots):
        with pytest.raises(TypeError):
            call(stage, 5)
        with pytest.raises(ovstage.OvxError):
            call(stage, "no/root")
    with pytest.raises(ovstage.OvxError):
        instancing.mark(stage, {"/A": "no/root"}, 1)
    refused = instancing.mark(stage, {"/A": PROTOTYPE}, 0)
    assert refused.status == ErrorCode.WRITE_FLOOR_VIOLATION
    stage.destroy()
    with pytest.raises(OvstageError) as failure:
        instancing.get_prototype_roots(stage)
    assert failure.value.code == ErrorCode.INVALID_HANDLE


def test_marks_are_a_mapping_of_paths(stage):
    for wrong in (["/A", "/B"], "/A", None):
        with pytest.raises(TypeError, match="prototypes must map instance roots to prototype roots"):
            instancing.mark(stage, wrong, 1)
    with pytest.raises(TypeError, match=r"str for prototypes\['/A'\], got 1"):
        instancing.mark(stage, {"/A": 1}, 1)
    with pytest.raises(TypeError, match="str for an instance root in prototypes, got 1"):
        instancing.mark(stage, {1: PROTOTYPE}, 1)
    assert stage.counters()["live_queries"] == 0
