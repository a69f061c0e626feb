"""Read a composed scene into columns: one traversal, every authored value asked for once.

Every call into USD costs microseconds, so whatever many prims share is asked once: the columns that every prim feeds,
and what a combination of schemas and authored names means.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pxr import Sdf, Tf, Usd  # type: ignore # usd-core has no stubs

from ovstage.population import bindings
from ovstage.population.columns import Column, Scene
from ovstage.population.forms import CONNECTION, RELATIONSHIP, TOKEN, TOKENS, only_forms
from ovstage.population.metadata import INFIX, metadata_form, metadata_values, stage_values, units
from ovstage.population.schemas import Declarations, Declared, form_for
from ovstage.population.scope import BARE
from ovstage.population.transforms import LOCAL, RESET, WORLD, publish_transforms

if TYPE_CHECKING:
    from ovstage.population.scope import Scope, Want

__all__ = ["PROTOTYPE", "UNTYPED", "gather"]

UNTYPED = "__ovstage_population_untyped__"
"""Type name given to a ``def`` without a type, so that such a prim can still be found by type."""

PROTOTYPE = "usd-prototype"
"""The column that says of an instance root which prototype it shows: a relationship with one target."""

_COMPUTED = frozenset({LOCAL, RESET, WORLD, "omni:fabric:localMatrix"})
"""What every transform is published as; a scene that authors such names itself is not asked."""

_OTHER_KIND = "it is a relationship where the schema declares an attribute, or the other way round"

_REPORT_EVERY = 256  # prims between two progress calls
_PACK_EVERY = 4096  # prims between two conversions to numbers
_PACK_LEAST = 1024  # values that are worth one

# Asked of the class: asked of an object, USD first looks whether it is still alive, which takes longer than most of
# these calls. They look again themselves.
_path = Usd.Prim.GetPath
_is_instance = Usd.Prim.IsInstance
_type_info = Usd.Prim.GetPrimTypeInfo
_type_name = Usd.PrimTypeInfo.GetTypeName
_authored_schemas = Usd.PrimTypeInfo.GetAppliedAPISchemas
_authored_names = Usd.Prim.GetAuthoredPropertyNames
_authored_properties = Usd.Prim.GetAuthoredProperties
_value = Usd.Attribute.Get
_value_type = Usd.Attribute.GetTypeName
_targets = Usd.Relationship.GetTargets
_is_connected = Usd.Attribute.HasAuthoredConnections
_varies = Usd.Attribute.ValueMightBeTimeVarying
_has_metadata = Usd.Prim.HasMetadata

Step = Callable[[int, int, str], None]


def gather(stage: Usd.Stage, time: Usd.TimeCode, scope: Scope, step: Step, only: Sequence[str] | None = None) -> Scene:
    """Visit every prim once, or those at the paths ``only``, which were found by an earlier visit, in its order.

    Instances are entered: their contents are ordinary rows with values of their own.
    """
    wants: Sequence[Want | None]
    if only is not None:
        prims = [stage.GetPrimAtPath(path) for path in only]
        wants = [want or BARE for want in scope.wants(prims)]  # they have rows, so something below is wanted
    else:
        prims = list(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies())) if scope.takes_prims else []
        wants = scope.wants(prims)
    reader = Reader(stage, time, scope)
    for done, (prim, want) in enumerate(zip(prims, wants, strict=True)):
        if done % _REPORT_EVERY == 0:
            step(done, len(prims), "reading prims")
        if done % _PACK_EVERY == 0:
            reader.scene.pack(_PACK_LEAST)
        if want is not None:
            reader.read(prim, want)
    reader.finish()
    step(max(len(prims), 1), max(len(prims), 1), "reading prims")
    return reader.scene


class Reader:
    """Takes the prims of one scene, parents before children, into columns."""

    def __init__(self, stage: Usd.Stage, time: Usd.TimeCode, scope: Scope) -> None:
        self.scene = Scene()
        self._stage = stage
        self._only_forms = only_forms()
        self._time = time
        self._is_timed = not time.IsDefault()
        self._has_instances = bool(stage.GetPrototypes())
        self._declarations = Declarations(self.scene)
        self._plans: list[_Plan] = []
        self._shared_plans: dict[tuple[Declared, tuple[str, ...], Want, bool], _Plan] = {}
        self._types: defaultdict[str, list[int]] = defaultdict(list)  # the prims of each
        self._clipped: dict[str, bool] = {}
        self._bound: list[tuple[int, Usd.Prim]] = []
        self._instances: list[tuple[int, str]] = []
        if scope.empty:
            return
        root = self.scene.new_row("/")
        found = dict(units(stage)) if scope.takes_prims else {}
        for path in scope.stage_metadata:
            found.update(stage_values(stage, path))
        for name, value in found.items():
            self._add_metadata(root, "/", "", name, value)

    def read(self, prim: Usd.Prim, want: Want) -> None:
        """Add one prim: type, schemas, attributes, relationships, connections, transform, metadata."""
        path = _path(prim).pathString
        row = self.scene.new_row(path)
        info = _type_info(prim)
        kind = _type_name(info)
        declared = self._declarations.of(prim, kind, tuple(_authored_schemas(info)))
        declared.rows.append(row)
        if self._has_instances and _is_instance(prim):
            self._instances.append((row, str(prim.GetPrototype().GetPath())))
            kind = "XformInstance" if kind == "Xform" else kind
        self._types[kind].append(row)
        for name in declared.unknown:
            reason = f"applies {name}, which is not registered: only its authored values are published"
            self.scene.skip(path, "", reason)
        is_clipped = self._is_timed and self._is_clipped(prim, path)
        plan = self._plan(prim, declared, tuple(_authored_names(prim)), want, is_clipped)
        plan.rows.append(row)
        properties = _authored_properties(prim) if plan.wanted or self._is_timed else []
        if plan.wanted:
            self._read_authored(row, path, prim, plan, properties)
        for column in plan.clipped:
            value = _value(prim.GetAttribute(column.name), self._time)
            if value is not None:
                column.add(row, value)
        for name in plan.computed:
            self.scene.skip(path, name, "this is the name of a column that population computes")
        if is_clipped or (self._is_timed and any(map(_might_vary, properties))):
            self.scene.varying.append(path)
        if want.bindings and declared.is_bound:
            self._bound.append((row, prim))
        if want.prim_metadata or want.property_metadata:
            self._read_metadata(row, path, prim, want)

    def finish(self) -> None:
        """Add what follows from all prims together."""
        scene = self.scene
        self._add_prototypes()
        kinds, schemas = scene.column("usd-prim-type", TOKEN), scene.column("usd-schemas", TOKENS)
        for kind, rows in self._types.items():
            kinds.share(rows, kind or UNTYPED)
        for declared in self._declarations:
            if declared.applied:
                schemas.share(declared.rows, declared.applied)
        for plan in self._plans:
            for column, value in plan.fallbacks:
                column.share(plan.rows, value)
        bindings.publish_bindings(scene, self._bound)
        scene.settle()
        movable = [plan for plan in self._plans if plan.is_xformable]
        moved = [plan for plan in movable if plan.has_order]
        publish_transforms(scene, self._stage, self._time, _rows(movable), _rows(moved))

    def _add_prototypes(self) -> None:
        """Every prototype gets a row, unless an instance inside of another one has shown it to be there."""
        if not self._instances:
            return
        known = set(self.scene.paths)
        column = self.scene.column(PROTOTYPE, RELATIONSHIP)
        for row, prototype in self._instances:
            column.add(row, [prototype])
            if prototype not in known:
                known.add(prototype)
                self._types[UNTYPED].append(self.scene.new_row(prototype))

    def _plan(self, prim: Usd.Prim, declared: Declared, names: tuple[str, ...], want: Want, is_clipped: bool) -> _Plan:
        key = (declared, names, want, is_clipped)
        found = self._shared_plans.get(key)
        if found is None:
            found = _Plan(declared, names, lambda name: want.takes(prim, name), is_clipped)
            if want.bindings and declared.is_bound:
                found.leave(bindings.NAME)
            self._plans.append(found)
            if want.plain:
                self._shared_plans[key] = found
        return found

    def _read_authored(self, row: int, path: str, prim: Usd.Prim, plan: _Plan, properties: list[Usd.Property]) -> None:
        time, attribute, only = self._time, Usd.Attribute, self._only_forms
        for slot, found in zip(plan.authored, properties, strict=True):
            if not slot.wanted:
                continue
            try:
                if type(found) is not attribute:
                    targets = _targets(found)
                    if targets or found.HasAuthoredTargets():
                        self.scene.column(slot.name, RELATIONSHIP).add(row, [target.pathString for target in targets])
                    continue
                value = _value(found, time)
                if value is not None:
                    kind = type(value)
                    if not slot.is_declared and kind is not slot.value_class:
                        type_name = None if kind in only else _value_type(found)
                        if type_name is None or type_name != slot.type_name:
                            self._assign(slot, path, prim, type_name, kind)
                    column = slot.column
                    if column is not None:
                        column.rows.append(row)
                        column.values.append(value)
                elif isinstance(found.GetPropertyStack(time)[0], Sdf.RelationshipSpec):
                    self.scene.skip(path, slot.name, _OTHER_KIND)
                if _is_connected(found):
                    self.scene.column(slot.name + ".connect", CONNECTION).add(row, found.GetConnections())
            except Tf.ErrorException:
                self.scene.skip(path, slot.name, _OTHER_KIND)

    def _is_clipped(self, prim: Usd.Prim, path: str) -> bool:
        """Whether value clips at the prim or above it may have values for it."""
        found = self._clipped.get(path)
        if found is None:
            above = path.rpartition("/")[0]
            found = bool(_has_metadata(prim, "clips"))
            if above and not found:
                inherited = self._clipped.get(above)
                found = self._is_clipped(prim.GetParent(), above) if inherited is None else inherited
            self._clipped[path] = found
        return found

    def _assign(self, slot: _Slot, path: str, prim: Usd.Prim, type_name: Sdf.ValueTypeName | None, kind: type) -> None:
        """Give an attribute that no schema declares its column, by its type, or by the class of its value alone."""
        form = self._only_forms[kind] if type_name is None else form_for(prim, slot.name, type_name)
        if form is None:
            self.scene.skip(path, slot.name, f"USD type {type_name} has no representation")
            slot.type_name = slot.value_class = slot.column = None  # the next one is to be named too
        else:
            slot.type_name, slot.value_class = type_name, None if type_name else kind
            slot.column = self.scene.column(slot.name, form)

    def _read_metadata(self, row: int, path: str, prim: Usd.Prim, want: Want) -> None:
        found: dict[tuple[str, str], object] = {}  # asked for twice is published once
        for asked in want.prim_metadata:
            for key, value in metadata_values(prim, asked):
                found["", key] = value
        for test, asked_paths in want.property_metadata:
            for name in prim.GetPropertyNames():
                if test(prim, name):
                    for asked in asked_paths:
                        for key, value in metadata_values(prim.GetProperty(name), asked):
                            found[name + ":", key] = value
        for (prefix, key), value in found.items():
            self._add_metadata(row, path, prefix, key, value)

    def _add_metadata(self, row: int, path: str, prefix: str, name: str, value: object) -> None:
        stored = metadata_form(name, value)
        if stored is None:
            self.scene.skip(path, prefix + INFIX + name, f"a {type(value).__name__} has no representation")
            return
        form, value = stored
        self.scene.column(prefix + INFIX + name, form).add(row, value)


def _might_vary(found: Usd.Property) -> bool:
    return type(found) is Usd.Attribute and _varies(found)


class _Slot:
    """One authored property of the prims of a plan, and the column for its values."""

    __slots__ = ("column", "is_declared", "name", "type_name", "value_class", "wanted")

    def __init__(self, name: str, column: Column | None, wanted: bool) -> None:
        self.name = name
        self.column = column
        self.is_declared = column is not None
        self.wanted = wanted
        # What ``column`` is for, where no schema says it: a type, which takes as long to ask for as the value, or a
        # class of values that only one type has.
        self.type_name: Sdf.ValueTypeName | None = None
        self.value_class: type | None = None


class _Plan:
    """What the prims with the same schemas, the same authored names and the same wishes have in common."""

    __slots__ = ("authored", "clipped", "computed", "fallbacks", "has_order", "is_xformable", "rows", "wanted")

    def __init__(
        self, declared: Declared, names: tuple[str, ...], wanted: Callable[[str], bool], is_clipped: bool
    ) -> None:
        columns, authored = declared.columns, set(names)
        self.authored = [_Slot(name, columns.get(name), name not in _COMPUTED and wanted(name)) for name in names]
        self.computed = [name for name in names if name in _COMPUTED and wanted(name)]
        self.rows: list[int] = []  # the prims

        def is_silent(name: str) -> bool:
            return name not in authored and name not in _COMPUTED and wanted(name)

        # Clips may have values for what no layer of the scene authors; USD hands out the fallback where they do not.
        self.clipped = [column for name, column in columns.items() if is_clipped and is_silent(name)]
        self.fallbacks = [
            (columns[name], value) for name, value in declared.fallbacks.items() if not is_clipped and is_silent(name)
        ]
        self.is_xformable = declared.is_xformable
        self.has_order = "xformOpOrder" in authored
        self.wanted = bool(self.fallbacks) or any(slot.wanted for slot in self.authored)

    def leave(self, name: str) -> None:
        """Do not read one authored property: its column is computed."""
        for slot in self.authored:
            slot.wanted = slot.wanted and slot.name != name


def _rows(plans: list[_Plan]) -> list[int]:
    return sorted(row for plan in plans for row in plan.rows)
