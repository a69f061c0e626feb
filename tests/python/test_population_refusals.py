"""What a population call refuses before it removes or writes anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovstage import ErrorCode, FilterOp, OvstageError, PathDictionary, Scope, Stage

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Sdf  # type: ignore # noqa: E402
from scenes import count, read, usda, write  # noqa: E402

from ovstage import population  # noqa: E402

CUBE = usda('def Xform "World"\n{\n    def Cube "Cube"\n    {\n        double size = 1\n    }\n}\n')
REFERENCE = usda('def Xform "Ref"\n{\n    def Cube "Box"\n    {\n    }\n}\n', header='defaultPrim = "Ref"')


def test_a_sealed_ordinal_is_refused(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE)
    stage.advance_write_floor(4).wait()
    for call in (
        lambda: population.apply_usd_changes(stage, 4),
        lambda: population.update_from_usd_time(stage, 3, 0.0),
        lambda: population.open_usd_from_string(stage, CUBE, ordinal=0),
    ):
        with pytest.raises(OvstageError, match="lowest open ordinal is 5") as caught:
            call()
        assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION


def test_a_scene_is_not_published_below_itself(stage: Stage) -> None:
    population.open_usd_from_string(stage, CUBE, ordinal=5)
    population.add_usd_reference_from_string(stage, REFERENCE, "/World/Ref")
    for call in (
        lambda: population.apply_usd_changes(stage, 4),
        lambda: population.update_from_usd_time(stage, 4, 0.0),
        lambda: population.open_usd_from_string(stage, REFERENCE, ordinal=4),
    ):
        with pytest.raises(OvstageError, match="was published at 5, which would hide it") as caught:
            call()
        assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    population.apply_usd_changes(stage, 5)
    stage.advance_write_floor(5).wait()
    assert count(stage, FilterOp.IN, "/World/Ref/Box") == 1


def test_a_sealed_attribute_refuses_the_whole_scene(stage: Stage) -> None:
    with PathDictionary(stage) as names:
        stage.advance_write_floor(3, Scope.INCLUDE, [names.intern_token("size")]).wait()
    with pytest.raises(OvstageError, match="attribute 'size' is sealed up to 3") as caught:
        population.open_usd_from_string(stage, CUBE, ordinal=2)
    assert caught.value.code == ErrorCode.WRITE_FLOOR_VIOLATION
    assert stage.counters()["bytes_columns"] == 0
    assert count(stage, FilterOp.PREFIX, "/World") == 0


@pytest.mark.parametrize("kind", ["double", "double[]", "token[]"])
def test_a_scene_that_does_not_fit_what_a_client_wrote_is_refused_whole(stage: Stage, kind: str) -> None:
    write(stage, "/World/Cube", "mine", np.array([[1, 2, 3]]), 1)
    value = {"double": "1", "double[]": "[1]", "token[]": '["a"]'}[kind]
    scene = CUBE.replace("double size = 1", f"custom {kind} mine = {value}")
    before = known(stage)
    with pytest.raises(OvstageError, match=r"cannot be written: attribute .mine.: .* existing int64x3") as caught:
        population.open_usd_from_string(stage, scene)
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    assert known(stage) == before


def test_an_update_that_does_not_fit_removes_nothing_and_can_be_tried_again(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "scene.usda"
    path.write_text(usda('def "A"\n{\n    custom float mine = 1\n}\ndef "B"\n{\n}\n'))
    population.open_usd(stage, path)
    write(stage, "/A", "yours", np.array([[1, 2, 3]]), 1)
    edited = usda('def "A"\n{\n    custom double3 mine = (1, 2, 3)\n    custom float yours = 1\n}\n')
    Sdf.Layer.FindOrOpen(str(path)).ImportFromString(edited)
    before = known(stage)
    with pytest.raises(OvstageError, match='attribute "yours"'):
        population.apply_usd_changes(stage, 2)
    assert known(stage) == before

    with PathDictionary(stage) as names, names.create_path_list_from_strings(["/A"]) as paths:
        with stage.query_from_path_list(paths) as query:
            stage.delete_attributes(query, ["yours"], 2).wait()
    population.apply_usd_changes(stage, 2)
    stage.advance_write_floor(2).wait()
    assert read(stage, "/A", "yours") == 1
    assert read(stage, "/A", "mine").tolist() == [1, 2, 3]
    assert count(stage, FilterOp.IN, "/B") == 0


def known(stage: Stage) -> tuple[int, set[int]]:
    """How many prims there are, and which attributes, sealed or not."""
    with stage.query() as query:
        query.wait()
        found = stage.fetch_query_result(query)
        return found.total_prim_count, set(found.attributes)
