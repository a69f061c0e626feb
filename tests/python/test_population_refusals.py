"""What a population call refuses before it removes or writes anything."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ovstage import ErrorCode, FilterOp, OvstageError, PathDictionary, Scope, Stage

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Sdf  # type: ignore # noqa: E402
from scenes import contents, count, read, usda, write  # noqa: E402

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
    text = 'the scene cannot be written: attribute "size": ordinal 2 is sealed, the write floor is 3'
    with pytest.raises(OvstageError, match=text) as caught:
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


# Prims with attributes of their own, written apart, and so much data that it is copied while others may go on.
NUMBERS = list(range(1500))
CROWD = usda(
    *(
        f'def "P{i}"\n{{\n    custom float zz = {i}\n    custom double a{i} = {i}\n    custom float[] b = {NUMBERS}\n}}'
        for i in range(60)
    )
)


def attack(stage: Stage, patience: int) -> tuple[OvstageError | None, OvstageError | None]:
    """Open the crowd while a client writes what does not go with it, after so many calls; how each of them failed."""
    writing = threading.Event()
    refusals: list[OvstageError] = []

    def client() -> None:
        writing.wait()
        for _ in range(patience):
            stage.counters()
        try:
            write(stage, "/P0", "zz", np.array([[1, 2, 3]]), 1)
        except OvstageError as error:
            refusals.append(error)

    def begin(done: int, total: int, label: str) -> None:
        if label == "writing columns":
            writing.set()

    thread = threading.Thread(target=client)
    thread.start()
    refusal = None
    try:
        population.open_usd_from_string(stage, CROWD, progress=begin)
    except OvstageError as error:
        refusal = error
    thread.join()
    return refusal, refusals[0] if refusals else None


def test_a_client_that_writes_while_a_scene_is_published_meets_all_of_it_or_nothing(stage: Stage) -> None:
    """Whoever comes second is refused, and what he wanted is not there in part either."""
    population.open_usd_from_string(stage, CROWD)
    stage.advance_write_floor(1).wait()
    scene = contents(stage, 1)
    for patience in range(0, 400, 20):
        with Stage("attacked") as other:
            refusal, clients = attack(other, patience)
            other.advance_write_floor(1).wait()
            if refusal is None:
                assert clients is not None and "existing float32" in clients.message
                assert contents(other, 1) == scene
                assert population.apply_usd_changes(other, 2).values == 0
            else:
                assert 'the scene cannot be written: attribute "zz": float32 does not match' in refusal.message
                assert clients is None and list(contents(other, 1)) == [("/P0", "zz")]
                with pytest.raises(OvstageError, match="no USD scene was opened"):
                    population.apply_usd_changes(other, 2)


def test_what_is_published_is_given_as_pairs(stage: Stage) -> None:
    with pytest.raises(TypeError, match=r"deletes\[0\] must be a pair of a query and a list, got 5"):
        stage._publish([5], [], 1)  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"batches\[0\] must be a pair of a query and a list, got \(1, \[\], 2\)"):
        stage._publish([], [(1, [], 2)], 1)  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"writes\[0\] must be a WriteDesc, got 3"):
        stage._publish([], [(1, [3])], 1)
    for pairs in ([(1, ["a"]), (2, [None])], [(1, 5)], [(None, [])]):
        with pytest.raises(TypeError):
            stage._publish(pairs, [], 1)  # type: ignore[arg-type]
    with pytest.raises(OvstageError, match="query handle 4711"):
        stage._publish([], [(4711, [])], 1).wait()
    assert stage.counters()["live_operations"] == 0


def known(stage: Stage) -> tuple[int, set[int]]:
    """How many prims there are, and which attributes, sealed or not."""
    with stage.query() as query:
        query.wait()
        found = stage.fetch_query_result(query)
        return found.total_prim_count, set(found.attributes)
