"""What people hand to population and export by mistake, and the sentence that they get for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ovstage import ErrorCode, OvstageError, Stage, instancing

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

from pxr import Sdf  # type: ignore # noqa: E402
from scenes import usda  # noqa: E402

from ovstage import population  # noqa: E402

SCENE = usda('def Xform "A"\n{\n    double x = 1\n}\n', header='defaultPrim = "A"')


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.usda"
    path.write_text(SCENE)
    return path


# --- stages -----------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "open_usd": lambda stage: population.open_usd(stage, "scene.usda"),
    "open_usd_async": lambda stage: population.open_usd_async(stage, "scene.usda"),
    "apply_usd_changes": population.apply_usd_changes,
    "reset_usd": population.reset_usd,
    "Operation": lambda stage: population.Operation(stage, 0, 1),
    "export": lambda stage: population.export_to_usd_file(stage, "out.usda", 1),
    "export_async": lambda stage: population.export_to_usd_file_async(stage, "out.usda", 1),
    "typed": lambda stage: population.export_typed_hierarchy_to_usd_file(stage, "out.usda", "/", 1),
    "destination": lambda stage: population.ExportDestination.create(stage, "out.usda"),
    "prototypes": instancing.get_prototype_roots,
    "prototype": lambda stage: instancing.get_prototype_root(stage, "/A"),
    "instances": lambda stage: instancing.get_instance_roots(stage, "/A"),
    "mark": lambda stage: instancing.mark(stage, {"/A": "/B"}, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_stage(name: str) -> None:
    for wrong in (None, 5, "stage", Stage):
        with pytest.raises(TypeError, match=r"^stage must be an ovstage\.Stage, got .*\(\w+\)$"):
            CALLS[name](wrong)


def test_a_destination_is_not_asked_about_what_is_no_stage(stage: Stage, tmp_path: Path) -> None:
    with population.ExportDestination.create(stage, tmp_path / "out.usda") as destination:
        with pytest.raises(TypeError, match=r"stage must be an ovstage\.Stage, got None"):
            population.export_to_destination(None, destination, 1)  # type: ignore[arg-type]


# --- files ------------------------------------------------------------------------------------------------------------

FILES = {
    "notes.txt": (b"hello", "its extension says no USD format: USD reads .usd, .usda, .usdc and .usdz"),
    "none": (SCENE.encode(), "its extension says no USD format: USD reads .usd, .usda, .usdc and .usdz"),
    "empty.usda": (b"", "it is empty"),
    "empty.usdc": (b"", "it is empty"),
    "empty.usdz": (b"", "it is empty"),
    "latin.usda": ('#usda 1.0\ndef "\xe9"\n{\n}\n'.encode("latin-1"), "it has bytes that are not UTF-8 text"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_scene(stage: Stage, scene: Path, name: str) -> None:
    content, reason = FILES[name]
    path = scene.with_name(name)
    path.write_bytes(content)
    with pytest.raises(OvstageError, match=re.escape(f"cannot open USD file {str(path)!r}: {reason}")) as caught:
        population.open_usd(stage, path)
    assert caught.value.code == ErrorCode.OP_FAILED
    population.open_usd(stage, scene)
    with pytest.raises(OvstageError, match=re.escape(f"cannot add USD file {str(path)!r} at '/B': {reason}")):
        population.add_usd_reference(stage, path, "/B")


def test_a_binary_file_that_ends_too_early(stage: Stage, scene: Path) -> None:
    path = scene.with_name("cut.usdc")
    Sdf.Layer.FindOrOpen(str(scene)).Export(str(path))
    whole = path.read_bytes()
    for length in (4, 88, len(whole) // 2, len(whole) - 8):
        path.write_bytes(whole[:length])
        with pytest.raises(OvstageError, match=r"cannot open USD file '.*cut\.usdc': [A-Z]") as caught:
            population.open_usd(stage, path)
        assert "pxr" not in caught.value.message and "\n" not in caught.value.message


def test_an_address_that_leads_nowhere(stage: Stage) -> None:
    for address in ("omniverse://host/a.usd", "http://host.invalid/a.usda"):
        with pytest.raises(OvstageError, match=r"USD finds nothing there; without a resolver"):
            population.open_usd(stage, address)


@pytest.mark.parametrize("wrong", [None, 5, b"scene.usda", ["scene.usda"]])
def test_the_name_of_a_file(stage: Stage, scene: Path, wrong: Any) -> None:
    population.open_usd(stage, scene)
    expected = "must be a str or an os.PathLike of str, got "
    with pytest.raises(TypeError, match=f"^path {re.escape(expected)}"):
        population.open_usd(stage, wrong)
    with pytest.raises(TypeError, match=f"^ref_file_path {re.escape(expected)}"):
        population.add_usd_reference(stage, wrong, "/B")
    if not isinstance(wrong, bytes):
        with pytest.raises(TypeError, match=rf"^paths\[1\] {re.escape(expected)}"):
            population.register_usd_schemas(["somewhere", wrong])


def test_a_name_that_no_file_can_have(stage: Stage, tmp_path: Path) -> None:
    stage.advance_write_floor(1).wait()
    for call, name in (
        (lambda path: population.open_usd(stage, path), "path"),
        (population.register_usd_schemas, r"paths\[0\]"),
        (lambda path: population.export_to_usd_file(stage, path, 1), "identifier"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be the name of a file, which has no NUL in it, got "):
            call("a\0b.usda")
        with pytest.raises(ValueError, match=f"^{name} must be text that UTF-8 can express"):
            call("\ud800.usda")


def test_text_that_is_no_text(stage: Stage, scene: Path) -> None:
    population.open_usd(stage, scene)
    with pytest.raises(TypeError, match="expected str for usda, got b"):
        population.open_usd_from_string(stage, SCENE.encode())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected str for ref_str, got None"):
        population.add_usd_reference_from_string(stage, None, "/B")  # type: ignore[arg-type]


def test_a_progress_that_cannot_be_called(stage: Stage, scene: Path) -> None:
    expected = r"progress must be a function of \(done, total, label\) or None, got 5"
    with pytest.raises(TypeError, match=expected):
        population.open_usd(stage, scene, progress=5)  # type: ignore[arg-type]
    population.open_usd(stage, scene)
    with pytest.raises(TypeError, match=expected):
        population.apply_usd_changes(stage, 2, progress=5)  # type: ignore[arg-type]


# --- exports ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def populated(stage: Stage, scene: Path) -> Stage:
    population.open_usd(stage, scene)
    stage.advance_write_floor(1).wait()
    return stage


def test_a_name_as_long_as_names_can_be(populated: Stage, tmp_path: Path) -> None:
    longest = tmp_path / ("x" * 250 + ".usda")
    population.export_to_usd_file(populated, longest, 1, attribute_rules=["x"])
    assert longest.exists()
    too_long = tmp_path / ("x" * 300 + ".usda")
    with pytest.raises(OvstageError, match=r"cannot write '.*': File name too long$"):
        population.export_to_usd_file(populated, too_long, 1)


def test_a_directory_in_the_place_of_a_file(populated: Stage, tmp_path: Path) -> None:
    (tmp_path / "out.usda").mkdir()
    with pytest.raises(OvstageError, match=r"cannot write '.*out\.usda': Is a directory$"):
        population.export_to_usd_file(populated, tmp_path / "out.usda", 1)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.usda", "scene.usda"]


def test_a_rule_where_a_list_of_rules_belongs(populated: Stage, tmp_path: Path) -> None:
    rule = {"source_attribute_name": "x"}
    with pytest.raises(TypeError, match=r"attribute_rules must be a list of rules, got a single one; write \[\{"):
        population.export_to_usd_file(populated, tmp_path / "out.usda", 1, attribute_rules=rule)


@pytest.mark.parametrize("name", ["two words", "1st", "a-b"])
def test_a_type_that_usd_cannot_write(populated: Stage, tmp_path: Path, name: str) -> None:
    rule = {"path": "/A", "usd_type_name": name}
    with pytest.raises(OvstageError, match=f"USD takes no type of the name {name!r}, which is that of /A") as caught:
        population.export_to_usd_file(populated, tmp_path / "out.usda", 1, layer_mode=1, prim_rules=[rule])
    assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    assert not (tmp_path / "out.usda").exists()


def test_a_root_that_is_no_path(populated: Stage, tmp_path: Path) -> None:
    for root in ("/A/", "//", "/A//B"):
        with pytest.raises(OvstageError, match=rf"IS_UNDER_PATH\('{root}'\) is about no prim") as caught:
            population.export_typed_hierarchy_to_usd_file(populated, tmp_path / "out.usda", root, 1)
        assert caught.value.code == ErrorCode.INVALID_ARGUMENT
    assert not (tmp_path / "out.usda").exists()


@pytest.mark.parametrize("reload", [1, "yes", None])
def test_reload_is_a_truth_value(stage: Stage, scene: Path, reload: Any) -> None:
    population.open_usd(stage, scene)
    with pytest.raises(TypeError, match=re.escape(f"reload must be True or False, got {reload!r}")):
        population.apply_usd_changes(stage, 2, reload=reload)
