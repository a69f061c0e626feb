"""Load a USD scene into a stage, and find the bodies in it."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

import numpy as np
from bodies import Bodies
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ovstage import OrdinalRange, OvstageError, PathDictionary, PopulationDomain, Query, Stage
from ovstage.population import Report, open_usd

SHIPPED = "ant_multi.usda"
LOADED = 1  # the ordinal of the scene as it was loaded; ticks follow


class SceneError(Exception):
    """A scene that cannot be used; the text says why, in one line."""


@dataclass(frozen=True)
class Scene:
    """A populated stage and what the loop needs to know about it."""

    stage: Stage
    report: Report
    bodies: Bodies
    meters_per_unit: float
    up_axis: str


def shipped_scene() -> str:
    """The path of the default scene inside the installed newton package, which is not imported for it."""
    try:
        files = importlib.metadata.files("newton") or []
    except importlib.metadata.PackageNotFoundError:
        raise SceneError(
            f"the default scene {SHIPPED} comes with the package newton, which is not installed: "
            "pip install --no-deps newton, or pass --scene FILE"
        ) from None
    for file in files:
        if file.name == SHIPPED:
            return str(file.locate())
    raise SceneError(f"the installed newton package has no {SHIPPED}: pass --scene FILE")


def load(path: str, console: Console) -> Scene:
    """Populate a new stage from the file, seal it, and read back what is to be moved."""
    stage = Stage("scene_loop")
    try:
        report = populate(stage, path, console)
        stage.advance_write_floor(LOADED).wait()
        return survey(stage, report)
    except OvstageError as error:
        stage.destroy()
        raise SceneError(error.message) from None
    except BaseException:
        stage.destroy()
        raise


def populate(stage: Stage, path: str, console: Console) -> Report:
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        tasks = {}

        def progress(done: int, total: int, label: str) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label)
            bars.update(tasks[label], completed=done, total=total)

        return open_usd(stage, path, LOADED, domains=PopulationDomain.ALL, progress=progress)


def survey(stage: Stage, report: Report) -> Scene:
    """Rigid bodies carry ``physics:rigidBodyEnabled``; in a scene without physics everything with a transform moves."""
    with (
        PathDictionary(stage) as dictionary,
        dictionary.create_path_list_from_strings(report.paths) as prims,
        stage.query_from_path_list(prims) as everything,
    ):

        def column(name: str) -> dict[str, np.ndarray]:
            return read_column(stage, dictionary, everything, name)

        local, world = column("omni:xform"), column("omni:fabric:worldMatrix")
        resets = column("omni:resetXformStack")
        paths = [path for path in column("physics:rigidBodyEnabled") if path in local] or list(local)
        units = float(column("usd-metadata:metersPerUnit")["/"])
        up_axis = dictionary.token_to_string(int(column("usd-metadata:upAxis")["/"]))
    paths = [path for path in paths if np.linalg.det(world[path].reshape(4, 4)) != 0]  # what is flat cannot be turned
    if not paths:
        raise SceneError(f"nothing to move in {report.path}: no prim in it has a transform")
    bodies = Bodies(paths, local, world, {path for path in paths if resets[path]})
    return Scene(stage, report, bodies, units, up_axis)


def read_column(stage: Stage, dictionary: PathDictionary, query: Query, name: str) -> dict[str, np.ndarray]:
    """The value of one attribute by prim path. The arrays are views of the column and keep its memory alive."""
    values = {}
    with stage.read_attributes(query, [dictionary.intern_token(name)], OrdinalRange.latest(LOADED)) as read:
        for group in read.groups():
            with group:
                paths = dictionary.get_path_strings(group.prim_list)
                rows = np.from_dlpack(group.dlpack(0))
                for prim, row in zip(group.prim_indices(), group.data_rows(), strict=True):
                    values[paths[prim]] = rows[row]
    return values
