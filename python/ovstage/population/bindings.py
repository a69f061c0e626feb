"""The material that holds for physics on each collider, body and deformable, inherited from above.

USD falls back to the render material where none is bound for physics; only a material that carries physics is
published.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pxr import Tf, Usd, UsdShade  # type: ignore # usd-core has no stubs

from ovstage.population.forms import RELATIONSHIP

if TYPE_CHECKING:
    from ovstage.population.columns import Scene

__all__ = ["NAME", "is_bound", "publish_bindings"]

NAME = "material:binding:physics"

_BOUND = re.compile(r"(CollisionAPI|RigidBodyAPI|Deformable\w*)$")
_PHYSICAL = re.compile(r"(Physics|Newton)MaterialAPI|\w*Deformable\w*MaterialAPI")


def is_bound(schemas: tuple[str, ...]) -> bool:
    """Whether prims with these schemas are made of something."""
    return any(_BOUND.search(name) for name in schemas)


def publish_bindings(scene: Scene, bound: list[tuple[int, Usd.Prim]]) -> None:
    """Add the column of effective physics materials for the prims of ``bound``, given with their rows."""
    if not bound:
        return
    materials = list(map(UsdShade.Material.GetPrim, _materials([prim for _, prim in bound])))
    physical = {material: [str(material.GetPath())] for material in set(materials) if _carries_physics(material)}
    column = scene.column(NAME, RELATIONSHIP)
    for (row, prim), material in zip(bound, materials, strict=True):
        if material in physical:
            column.add(row, physical[material])
        elif Usd.Prim.HasRelationship(prim, NAME):
            scene.skip(row, NAME, "it binds no material that carries physics")


def _materials(prims: list[Usd.Prim]) -> list[UsdShade.Material]:
    """The material that is bound to each prim; none where a binding is no relationship, which USD refuses to follow."""
    try:
        return list(UsdShade.MaterialBindingAPI.ComputeBoundMaterials(prims, "physics")[0])
    except Tf.ErrorException:
        return [UsdShade.Material()] if len(prims) == 1 else [found for prim in prims for found in _materials([prim])]


def _carries_physics(prim: Usd.Prim) -> bool:
    if not prim:
        return False
    names = (*prim.GetAppliedSchemas(), *prim.GetPrimTypeInfo().GetAppliedAPISchemas())
    return any(_PHYSICAL.fullmatch(name) for name in names)
