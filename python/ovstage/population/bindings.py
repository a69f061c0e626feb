"""The material that holds for physics on each collider, body and deformable, inherited from above.

USD falls back to the render material where none is bound for physics; only a material that carries physics is
published.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pxr import Usd, UsdShade  # type: ignore # usd-core has no stubs

from ovstage.population.complaints import Complaint
from ovstage.population.forms import RELATIONSHIP
from ovstage.population.texts import applied_schemas

if TYPE_CHECKING:
    from ovstage.population.columns import Scene

__all__ = ["NAME", "is_bound", "publish_bindings"]

NAME = "material:binding:physics"

_BOUND = re.compile(r"(CollisionAPI|RigidBodyAPI|Deformable\w*)$")
_PHYSICAL = re.compile(r"(Physics|Newton)MaterialAPI|\w*Deformable\w*MaterialAPI")


def is_bound(schemas: tuple[str, ...]) -> bool:
    """Whether prims with these schemas are made of something."""
    return any(_BOUND.search(name) for name in schemas)


def publish_bindings(scene: Scene, bound: list[tuple[int, Usd.Prim, bool]]) -> None:
    """Add the column of effective physics materials. Of each prim in ``bound``: row, prim, whether it has a property of
    that name."""
    if not bound:
        return
    materials = _materials([prim for _, prim, _ in bound])
    known: dict[Usd.Prim, list[str]] = {}  # the path of a material; none if it carries no physics
    column = scene.column(NAME, RELATIONSHIP)
    for (row, prim, is_named), material in zip(bound, materials, strict=True):
        targets = []
        if material:
            carrier = material.GetPrim()
            if carrier not in known:
                known[carrier] = [str(carrier.GetPath())] if _carries_physics(carrier) else []
            targets = known[carrier]
        if targets:
            column.add(row, targets)
        elif is_named and prim.HasRelationship(NAME):
            scene.skip((row,), NAME, "it binds no material that carries physics")


def _materials(prims: list[Usd.Prim]) -> list[UsdShade.Material]:
    """The material that is bound to each prim; none where a binding is no relationship, which USD refuses to follow."""
    try:
        return list(UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims, "physics")[0])
    except Complaint:
        return [UsdShade.Material()] if len(prims) == 1 else [found for prim in prims for found in _materials([prim])]


def _carries_physics(prim: Usd.Prim) -> bool:
    return any(_PHYSICAL.fullmatch(name) for name in applied_schemas(prim))
