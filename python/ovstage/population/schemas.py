"""Schemas: making more of them known, and what those of a prim declare.

USD reads all schema definitions once, when the first of them is asked for; what is registered later declares nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pxr import Plug, Sdf, Usd  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.bindings import is_bound
from ovstage.population.complaints import refusing
from ovstage.population.forms import EXTENT, Form, form_of

if TYPE_CHECKING:
    from ovstage.population.columns import Column, Scene

__all__ = ["Declarations", "Declared", "form_for", "register"]

_read = False  # whether this package has asked for definitions

_VECTORS = {
    "inputs:color": "LightAPI",
    "inputs:shadow:color": "ShadowAPI",
    "omni:rtx:domeLight:size": "OmniFiniteDomeLightAPI",
    "nerf:crop:minBounds": "OmniNerfVolumeAPI",
    "nerf:crop:maxBounds": "OmniNerfVolumeAPI",
    "nerf:offset": "OmniNerfVolumeAPI",
    "omni:nurec:crop:minBounds": "OmniNuRecVolumeAPI",
    "omni:nurec:crop:maxBounds": "OmniNuRecVolumeAPI",
    "omni:nurec:offset": "OmniNuRecVolumeAPI",
}
"""Colours and offsets that the stage keeps as vectors, and the schema without which they are what USD says."""


def register(paths: Sequence[str]) -> None:
    """Register plugin descriptors, each a ``plugInfo.json`` or a directory that has one. No code is loaded."""
    for path in paths:
        descriptor = os.path.join(path, "plugInfo.json") if os.path.isdir(path) else path
        if not os.access(descriptor, os.R_OK) or os.path.isdir(descriptor):
            raise OvstageError(
                ErrorCode.NOT_FOUND,
                f"register_usd_schemas found no readable plugin descriptor at {path!r}: pass a plugInfo.json or the "
                "directory that has it",
            )
    with refusing("register_usd_schemas: USD refused a descriptor"):
        added = Plug.Registry().RegisterPlugins([os.path.realpath(path) for path in paths])
    if added and _read:
        names = ", ".join(plugin.name for plugin in added)
        raise OvstageError(
            ErrorCode.OP_FAILED,
            f"register_usd_schemas came too late for {names}: the schema definitions were read by an earlier "
            "population, and USD reads them once in a process; register before the first open_usd",
        )


@dataclass(eq=False)
class Declared:
    """What one combination of a type and applied schemas declares."""

    is_xformable: bool
    is_bound: bool
    """Whether such prims are made of a material that matters to physics."""
    applied: tuple[str, ...]
    """Applied schemas that the registry knows, built-in ones included."""
    unknown: tuple[str, ...]
    """Applied names that it does not know: what they would declare is not declared."""
    rows: list[int] = field(default_factory=list)
    """The prims that have it."""
    columns: dict[str, Column] = field(default_factory=dict)
    fallbacks: dict[str, object] = field(default_factory=dict)


class Declarations:
    """Answers for the prims of one scene."""

    def __init__(self, scene: Scene) -> None:
        global _read
        _read = True
        self._scene = scene
        self._found: dict[tuple[str, tuple[str, ...]], Declared] = {}

    def of(self, prim: Usd.Prim, kind: str, authored: tuple[str, ...]) -> Declared:
        """What the schemas of ``prim`` declare, which is of type ``kind`` and applies the schemas ``authored``."""
        key = (kind, authored)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._ask(prim, authored)
        return found

    def __iter__(self) -> Iterator[Declared]:
        return iter(self._found.values())

    def _ask(self, prim: Usd.Prim, authored: tuple[str, ...]) -> Declared:
        applied = tuple(prim.GetAppliedSchemas())
        declared = Declared(
            is_xformable=prim.IsA("Xformable"),
            is_bound=is_bound((*applied, *authored)),
            applied=applied,
            unknown=tuple(name for name in authored if name not in applied),
        )
        definition = prim.GetPrimDefinition()
        for name in definition.GetPropertyNames():
            attribute = definition.GetAttributeDefinition(name)
            form = form_for(prim, name, attribute.GetTypeName()) if attribute else None
            if form is None:
                continue
            declared.columns[name] = self._scene.column(name, form)
            fallback = attribute.GetFallbackValue()
            if fallback is not None and form.holds(fallback):
                declared.fallbacks[name] = fallback
        return declared


def form_for(prim: Usd.Prim, name: str, type_name: Sdf.ValueTypeName) -> Form | None:
    """The form of a property, which a few schemas choose differently from its USD type."""
    if name == "extent" and str(type_name) == "float3[]" and prim.IsA("Imageable"):
        return EXTENT
    form = form_of(type_name)
    if form is None:
        return None
    if name == "normals" and (prim.IsA("Curves") or prim.IsA("Points")):
        return replace(form, semantic=AttributeSemantic.POINT)
    if name in _VECTORS and _VECTORS[name] in prim.GetAppliedSchemas():
        return replace(form, semantic=AttributeSemantic.VECTOR)
    return form
