"""What prims have authored: their values, connections and targets.

The prims of a plan have the same properties, which are read property by property: to put one question to many prims
takes less than to put many questions to one, and what is to be done with the answers is decided once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any

from pxr import Sdf, Usd  # type: ignore # usd-core has no stubs

from ovstage.population.complaints import Complaint, reason
from ovstage.population.forms import CONNECTION, RELATIONSHIP, only_forms
from ovstage.population.origin import is_relative
from ovstage.population.schemas import form_for
from ovstage.population.texts import NO_TEXT, readable

if TYPE_CHECKING:
    from ovstage.population.columns import Column, Scene

__all__ = ["UNRESOLVED", "Authored", "Slot", "depends_on_layer"]

UNRESOLVED = "its path is not resolved; it is published as written"
_OTHER_KIND = "it is a relationship where the schema declares an attribute, or the other way round"

_ASSETS = (Sdf.AssetPath, Sdf.AssetPathArray)
_TILES = re.compile(r"<U[A-Z0-9]+>")  # <UDIM>, <UVTILE0>: USD leaves it to renderers to resolve them

_value = Usd.Attribute.Get
_value_type = Usd.Attribute.GetTypeName
_is_connected = Usd.Attribute.HasAuthoredConnections
_targets = Usd.Relationship.GetTargets


class Slot:
    """One authored property of the prims of a plan."""

    __slots__ = ("columns", "declared", "name", "wanted")

    def __init__(self, name: str, declared: Column | None, wanted: bool) -> None:
        self.name = name
        self.declared = declared
        """Where its values go; None where no schema says it."""
        self.columns: dict[type | Sdf.ValueTypeName, Column | None] = {}
        """Where values go otherwise, by what they are; None for types that no column can hold."""
        self.wanted = wanted


class Authored:
    """Takes properties of prims into the columns of one scene."""

    def __init__(self, scene: Scene, time: Usd.TimeCode) -> None:
        self._scene = scene
        self._time = time
        self._only_forms = only_forms()

    def read(self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Property]) -> None:
        """Read one property of the prims in ``rows``: of all at once, if it is of one kind and USD refuses none.

        The steps below ask before they add: one that USD ends has added nothing.
        """
        kinds = set(map(type, found))
        if len(kinds) == 1:
            try:
                (self._read_values if Usd.Attribute in kinds else self._read_targets)(slot, rows, found)
                return
            except (Complaint, UnicodeDecodeError) as error:
                if len(found) == 1:
                    self._skip(slot, rows[0], _refusal(found[0], error))
                    return
        for row, each in zip(rows, found, strict=True):
            self.read(slot, (row,), (each,))

    def _read_targets(self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Relationship]) -> None:
        targets = list(map(_targets, found))
        has_some = [bool(some) or each.HasAuthoredTargets() for some, each in zip(targets, found, strict=True)]
        column = self._scene.column(slot.name, RELATIONSHIP)
        for row, some in compress(zip(rows, targets, strict=True), has_some):
            column.add(row, [target.pathString for target in some])

    def _read_values(self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Attribute]) -> None:
        values = list(map(_value, found, repeat(self._time)))
        connected = list(map(_is_connected, found))
        kinds = set(map(type, values))
        if not kinds.isdisjoint(_ASSETS):
            self._name_unresolved(slot, rows, found, values)
        if type(None) in kinds:
            self._explain(slot, rows, found, values)
            has_value = [value is not None for value in values]
            rows_of_values, attributes = list(compress(rows, has_value)), list(compress(found, has_value))
            self._add(slot, rows_of_values, attributes, list(compress(values, has_value)))
        else:
            self._add(slot, rows, found, values)
        for row, each in compress(zip(rows, found, strict=True), connected):
            self._read_connections(slot, row, each)

    def _explain(self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Attribute], values: Sequence[Any]) -> None:
        """An attribute may be authored without a value; or a relationship hides it; or its value is no text."""
        for row, each, value in zip(rows, found, values, strict=True):
            if value is None and isinstance(each.GetPropertyStack(self._time)[0], Sdf.RelationshipSpec):
                self._skip(slot, row, _OTHER_KIND)
            elif value is None and self._is_unreadable(each):
                self._skip(slot, row, NO_TEXT)

    def _is_unreadable(self, found: Usd.Attribute) -> bool:
        """Whether there is a value that USD does not hand out: Python is told ``None``, as where there is none."""
        if not found.HasValue():
            return False
        spec = self._opinion(found)
        if spec is None:
            return False
        if times := self._times(spec):
            samples = (readable(partial(spec.layer.QueryTimeSample, spec.path, time), None) for time in times)
            return any(sample is None for sample in samples)
        return readable(partial(getattr, spec, "default"), None) is None

    def _name_unresolved(
        self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Attribute], values: Sequence[Any]
    ) -> None:
        """Name the layer that a path is relative to, where the stage has only what is written: the path stands for
        several files, or one of its variables leads nowhere."""
        for row, each, value in zip(rows, found, values, strict=True):
            if not isinstance(value, _ASSETS):  # prims that look alike may author different types
                continue
            for path in [value] if isinstance(value, Sdf.AssetPath) else value:
                if depends_on_layer(path):
                    spec = self._opinion(each)
                    where = f" to {spec.layer.realPath}" if spec and spec.layer.realPath else ""
                    self._skip(slot, row, f"{UNRESOLVED}, relative{where}")

    def _opinion(self, found: Usd.Attribute) -> Sdf.AttributeSpec | None:
        """What says the value of an attribute in the layers."""
        for spec in found.GetPropertyStack(self._time):
            if self._times(spec) or spec.HasDefaultValue():
                return spec
        return None

    def _times(self, spec: Sdf.AttributeSpec) -> list[float]:
        return [] if self._time.IsDefault() else list(spec.layer.ListTimeSamplesForPath(spec.path))

    def _read_connections(self, slot: Slot, row: int, found: Usd.Attribute) -> None:
        try:
            sources = found.GetConnections()
        except Complaint:
            self._skip(slot, row, _OTHER_KIND)
        else:
            self._scene.column(slot.name + ".connect", CONNECTION).add(row, sources)

    def _add(self, slot: Slot, rows: Sequence[int], found: Sequence[Usd.Attribute], values: Sequence[Any]) -> None:
        """Give values to the column that a schema declares; without one, to the column of their class where only one
        type has it, or of their type, which takes as long to ask for as the value."""
        if slot.declared is not None:
            slot.declared.extend(rows, values)
            return
        only = self._only_forms
        kinds = zip(map(type, values), found, strict=True)
        types = {kind if kind in only else _value_type(each) for kind, each in kinds}
        if len(types) > 1:
            for row, each, value in zip(rows, found, values, strict=True):
                self._add(slot, (row,), (each,), (value,))
        elif types:
            (kind,) = types
            column = slot.columns[kind] if kind in slot.columns else self._column(slot, found[0].GetPrim(), kind)
            if column is not None:
                column.extend(rows, values)
                return
            name = readable(lambda: str(kind), "of a name that is no text")
            self._scene.skip(rows, slot.name, f"USD type {name} has no representation")

    def _column(self, slot: Slot, prim: Usd.Prim, kind: type | Sdf.ValueTypeName) -> Column | None:
        form = self._only_forms.get(kind) or form_for(prim, slot.name, kind)
        slot.columns[kind] = column = None if form is None else self._scene.column(slot.name, form)
        return column

    def _skip(self, slot: Slot, row: int, reason: str) -> None:
        self._scene.skip((row,), slot.name, reason)


def depends_on_layer(path: Sdf.AssetPath) -> bool:
    """Whether a path that USD does not resolve may lead to files, which only the folder of its layer tells."""
    if path.resolvedPath:
        return False
    if path.authoredPath.startswith("`"):
        return True
    return bool(_TILES.search(path.path)) and is_relative(path.path)


def _refusal(found: Usd.Property, error: Complaint | UnicodeDecodeError) -> str:
    """Why USD does not hand out what a property says."""
    if isinstance(error, UnicodeDecodeError):
        return NO_TEXT
    specs = found.GetPropertyStack(Usd.TimeCode.Default())
    if specs and isinstance(found, Usd.Relationship) == isinstance(specs[0], Sdf.RelationshipSpec):
        return "USD does not hand it out: " + reason(error)
    return _OTHER_KIND
