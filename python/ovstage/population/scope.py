"""Which prims are populated, and which of their properties, by domains and selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pxr import Usd  # type: ignore # usd-core has no stubs

from ovstage.enums import PopulationDomain
from ovstage.population.complaints import Complaint
from ovstage.population.matching import PrimTest, PropertyTest, check, prim_test, property_test
from ovstage.population.predicates import Desc
from ovstage.population.texts import applied_schemas, type_name

__all__ = ["BARE", "Scope", "Want", "is_physics_name", "is_physics_schema"]

_PHYSICS_SCHEMA = re.compile(r"Physics|Physx|Newton|Mjc")
_PHYSICS_NAME = re.compile(r"(?:.*:)?(?:physics|physx\w*|newton|mjc)(?::.*)?|collection:colliders(?::.*)?")


def is_physics_schema(name: str) -> bool:
    """Whether a type or an applied schema is about physics; by name, so that registering schemas changes nothing."""
    return _PHYSICS_SCHEMA.search(name) is not None


def is_physics_name(name: str) -> bool:
    """Whether a property is about physics: ``physics:mass``, ``drive:angular:physics:damping``, ``newton:margin``."""
    return _PHYSICS_NAME.fullmatch(name) is not None


@dataclass(frozen=True, eq=False)
class Want:
    """What is wanted of a prim. Prims that want the same share one object."""

    everything: bool = False
    by_name: Callable[[str], bool] | None = None
    tests: tuple[PropertyTest, ...] = ()
    prim_metadata: tuple[str, ...] = ()
    property_metadata: tuple[tuple[PropertyTest, tuple[str, ...]], ...] = ()
    bindings: bool = False
    """Whether the material that holds for physics is wanted."""

    def takes(self, prim: Usd.Prim, name: str) -> bool:
        """Whether a property is wanted."""
        return (
            self.everything
            or (self.by_name is not None and self.by_name(name))
            or any(test(prim, name) for test in self.tests)
        )

    @property
    def plain(self) -> bool:
        """Whether the answer depends on names alone."""
        return self.everything or not self.tests


BARE = Want()
"""Of a prim that is only there because something below it is wanted."""


@dataclass(frozen=True)
class _Selection:
    prims: PrimTest
    properties: PropertyTest
    prim_metadata: tuple[str, ...]
    property_metadata: tuple[str, ...]


class Scope:
    """The answer for every prim of a scene, from the descriptions of an open."""

    def __init__(self, descs: Iterable[Desc]) -> None:
        descs = tuple(descs)
        for desc in descs:
            check(desc)
        self._domains = 0
        for desc in descs:
            self._domains |= desc.domains
        self._selectors = [selector for desc in descs for selector in desc.selectors]
        self._stage_metadata = tuple(path for desc in descs for path in desc.stage_metadata_paths)
        self._wants: dict[tuple[bool, ...], Want | None] = {}
        self._selections: list[_Selection] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is asked for, not even metadata of the stage."""
        return not (self.takes_prims or self._stage_metadata)

    @property
    def takes_prims(self) -> bool:
        """Whether any prim can be in scope."""
        return bool(self._domains & PopulationDomain.ALL or self._selectors)

    @property
    def is_local(self) -> bool:
        """Whether what is wanted of a prim depends on its type and schemas alone, and not on values anywhere."""
        return not self._selectors

    @property
    def stage_metadata(self) -> tuple[str, ...]:
        """Metadata of the stage that was asked for by path."""
        return self._stage_metadata

    def wants(self, prims: list[Usd.Prim]) -> list[Want | None]:
        """For each prim, in the order of traversal, what is wanted of it; None where it has no row."""
        if self._domains & PopulationDomain.ALL == PopulationDomain.ALL and not self._selectors:
            everything = Want(everything=True, bindings=True)
            return [everything] * len(prims)
        if self._selections is None:  # schemas are asked here, not when a description is made
            self._selections = [
                _Selection(
                    prim_test(selector.prim_predicate),
                    property_test(selector.property_predicate),
                    selector.prim_metadata_paths,
                    selector.property_metadata_paths,
                )
                for selector in self._selectors
            ]
        found = [self._want(prim, self._selections) for prim in prims]
        _add_ancestors(prims, found)
        return found

    def _want(self, prim: Usd.Prim, selections: list[_Selection]) -> Want | None:
        physics = bool(self._domains & PopulationDomain.PHYSICS) and _is_physical(prim)
        rendering = bool(self._domains & PopulationDomain.RENDERING) and not is_physics_schema(type_name(prim))
        key = (physics, rendering, *(selection.prims(prim) for selection in selections))
        if key not in self._wants:
            chosen = [selection for selection, chosen in zip(selections, key[2:], strict=True) if chosen]
            self._wants[key] = _combined(physics, rendering, chosen) if any(key) else None
        return self._wants[key]


def _combined(physics: bool, rendering: bool, chosen: list[_Selection]) -> Want:
    return Want(
        everything=physics,
        by_name=(lambda name: not is_physics_name(name)) if rendering else None,
        tests=tuple(selection.properties for selection in chosen),
        prim_metadata=tuple(path for selection in chosen for path in selection.prim_metadata),
        property_metadata=tuple(
            (selection.properties, selection.property_metadata) for selection in chosen if selection.property_metadata
        ),
        bindings=physics,
    )


def _is_physical(prim: Usd.Prim) -> bool:
    """Physics types, prims that apply a physics schema, the face subsets of such a prim, what makes copies of one."""
    if type_name(prim) == "GeomSubset":
        prim = prim.GetParent()
    if type_name(prim) == "PointInstancer":
        try:
            targets = prim.GetRelationship("prototypes").GetTargets()
        except Complaint:  # it is an attribute in the file
            targets = []
        originals = map(prim.GetStage().GetPrimAtPath, targets)
        copied = (Usd.PrimRange(each, Usd.TraverseInstanceProxies()) for each in originals if each)
        return any(_carries_physics(each) for below in copied for each in below)
    return _carries_physics(prim)


def _carries_physics(prim: Usd.Prim) -> bool:
    return any(map(is_physics_schema, (type_name(prim), *applied_schemas(prim))))


def _add_ancestors(prims: list[Usd.Prim], wants: list[Want | None]) -> None:
    """Every prim above one that is in scope gets a row."""
    paths = [str(prim.GetPath()) for prim in prims]
    needed: set[str] = set()
    for position in range(len(prims) - 1, -1, -1):  # children before parents
        if wants[position] is None and paths[position] in needed:
            wants[position] = BARE
        if wants[position] is not None:
            needed.add(paths[position].rpartition("/")[0])
