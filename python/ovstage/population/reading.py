"""Read a composed scene into columns: one traversal, every authored value asked for once.

Every call into USD costs microseconds, so whatever many prims share is asked once: the columns that every prim feeds,
and what a combination of schemas and authored names means. What cannot be shared is asked of hundreds of prims in a row
before the next question, which takes less time than many questions to one prim after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from pxr import Sdf, Usd  # type: ignore # usd-core has no stubs

from ovstage.population import bindings
from ovstage.population.authored import UNRESOLVED, Authored, Slot, depends_on_layer
from ovstage.population.columns import Scene
from ovstage.population.forms import RELATIONSHIP, TOKEN, TOKENS
from ovstage.population.metadata import metadata_form, metadata_values, stage_values, units
from ovstage.population.reserved import LOCAL, METADATA, PROTOTYPE, RESET, SCHEMAS, TYPE, UNTYPED, WORLD
from ovstage.population.schemas import Declarations, Declared
from ovstage.population.scope import BARE
from ovstage.population.texts import NO_TEXT, Unfit, checked, readable
from ovstage.population.transforms import publish_transforms

if TYPE_CHECKING:
    from ovstage.population.scope import Scope, Want

__all__ = ["gather"]

_COMPUTED = frozenset({LOCAL, RESET, WORLD, "omni:fabric:localMatrix"})
"""What population computes for every transform. Properties of these names are left out."""

_TOGETHER = 1024  # prims that are read together, between two progress calls
_PACK_LEAST = 4096  # values of a column that are worth a conversion to numbers

# Asked of the class: asked of an object, USD first looks whether it is still alive, which takes longer than most of
# these calls. They look again themselves.
_path = Usd.Prim.GetPath
_is_instance = Usd.Prim.IsInstance
_type_info = Usd.Prim.GetPrimTypeInfo
_type_name = Usd.PrimTypeInfo.GetTypeName
_authored_schemas = Usd.PrimTypeInfo.GetAppliedAPISchemas
_authored_properties = Usd.Prim.GetAuthoredProperties
_name = Usd.Property.GetName
_value = Usd.Attribute.Get
_varies = Usd.Attribute.ValueMightBeTimeVarying
_has_metadata = Usd.Prim.HasMetadata

Step = Callable[[int, int, str], None]
_Look = tuple[str, tuple[str, ...], tuple[str, ...], "Want", bool, int | None]
"""What prims that are read together have in common: type, schemas, authored names, what is wanted, and whether clips
may have values for them. The last entry is None, or a number of its own for a prim of which more than names decides
what is wanted: such a prim is read alone."""


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
    visited = [(prim, want) for prim, want in zip(prims, wants, strict=True) if want is not None]
    reader = Reader(stage, time, scope)
    for done in range(0, len(visited), _TOGETHER):
        step(done, len(visited), "reading prims")
        reader.read(*zip(*visited[done : done + _TOGETHER], strict=True))
        reader.scene.pack(_PACK_LEAST)
    reader.finish()
    step(max(len(visited), 1), max(len(visited), 1), "reading prims")
    return reader.scene


def _all(ask: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    """The answers of all before anything else is asked."""
    return list(map(ask, things))


class Reader:
    """Takes the prims of one scene, parents before children, into columns."""

    def __init__(self, stage: Usd.Stage, time: Usd.TimeCode, scope: Scope) -> None:
        self.scene = Scene()
        self._stage = stage
        self._authored = Authored(self.scene, time)
        self._time = time
        self._is_timed = not time.IsDefault()
        self._has_instances = bool(stage.GetPrototypes())
        self._declarations = Declarations(self.scene)
        self._plans: list[_Plan] = []
        self._shared_plans: dict[tuple[Declared, tuple[str, ...], Want, bool], _Plan] = {}
        self._types: defaultdict[str, list[int]] = defaultdict(list)  # the prims of each
        self._clipped: dict[str, bool] = {}
        self._bound: list[tuple[int, Usd.Prim, bool]] = []
        self._instances: list[tuple[int, str]] = []
        if scope.empty:
            return
        root = self.scene.new_row("/")
        found = dict(units(stage)) if scope.takes_prims else {}
        for path in scope.stage_metadata:
            found.update(stage_values(stage, path))
        for name, value in found.items():
            self._add_metadata(root, "", name, value)

    def read(self, prims: Sequence[Usd.Prim], wants: Sequence[Want]) -> None:
        """Add the next prims, those that look alike together."""
        first = len(self.scene.paths)
        paths, infos = _all(str, _all(_path, prims)), _all(_type_info, prims)
        self.scene.paths += paths
        clipped = list(map(self._is_clipped, prims, paths)) if self._is_timed else [False] * len(prims)
        kinds, schemas = self._kinds(first, prims, infos)
        properties = _all(_authored_properties, prims)
        names = iter(_all(_name, chain.from_iterable(properties)))
        alike: defaultdict[_Look, list[int]] = defaultdict(list)
        for at, (kind, applied, found) in enumerate(zip(kinds, schemas, properties, strict=True)):
            alone = None if wants[at].plain else at
            alike[kind, applied, tuple(islice(names, len(found))), wants[at], clipped[at], alone].append(at)
        for (kind, applied, authored, want, is_clipped, _), group in alike.items():
            members = [prims[at] for at in group]
            declared = self._declarations.of(members[0], kind, applied)
            plan = self._plan(members[0], declared, authored, want, is_clipped)
            rows = [first + at for at in group]
            self._add(rows, members, kind, plan, want)
            unread = list(chain.from_iterable([properties[at] for at in group]))
            if self._is_timed:
                self._note_varying(rows, is_clipped, [properties[at] for at in group])
            for at, slot in enumerate(plan.authored):
                if slot.wanted:
                    self._authored.read(slot, rows, unread[at :: len(authored)])

    def _kinds(
        self, first: int, prims: Sequence[Usd.Prim], infos: Sequence[Usd.PrimTypeInfo]
    ) -> tuple[list[str], list[tuple[str, ...]]]:
        """The type of each prim, and the schemas that are applied to it. A type counts as none if its name is no
        text. Of schemas with such a name only those count that the registry knows."""
        try:
            return _all(_type_name, infos), _all(tuple, _all(_authored_schemas, infos))
        except UnicodeDecodeError:
            pass
        kinds, schemas = [], []
        for row, (prim, info) in enumerate(zip(prims, infos, strict=True), first):
            kind, applied = readable(partial(_type_name, info), None), readable(partial(_authored_schemas, info), None)
            if kind is None:
                self.scene.skip((row,), "", f"the name of its type is left out: {NO_TEXT}")
            if applied is None:
                self.scene.skip((row,), "", f"the name of a schema that it applies is left out: {NO_TEXT}")
            kinds.append(kind or "")
            schemas.append(tuple(prim.GetAppliedSchemas() if applied is None else applied))
        return kinds, schemas

    def _add(self, rows: list[int], prims: list[Usd.Prim], kind: str, plan: _Plan, want: Want) -> None:
        """Add what is not authored by the prims, or by few: type, schemas, instances, clips, bindings, metadata."""
        declared = plan.declared
        declared.rows += rows
        plan.rows += rows
        if self._has_instances:
            self._add_instances(rows, prims, kind)
        else:
            self._types[kind] += rows
        for name in declared.unknown:
            reason = f"applies {name}, which is not registered: only its authored values are published"
            self.scene.skip(rows, "", reason)
        for name in plan.computed:
            self.scene.skip(rows, name, "this is the name of a column that population computes")
        for column in plan.clipped:
            for row, prim in zip(rows, prims, strict=True):
                value = _value(prim.GetAttribute(column.name), self._time)
                if value is not None:
                    column.add(row, value)
        if want.bindings and declared.is_bound:
            self._bound.extend(zip(rows, prims, repeat(plan.is_bound)))
        if want.prim_metadata or want.property_metadata:
            for row, prim in zip(rows, prims, strict=True):
                self._read_metadata(row, prim, want)

    def _add_instances(self, rows: list[int], prims: list[Usd.Prim], kind: str) -> None:
        """Add the types of prims some of which may be instances."""
        for row, prim in zip(rows, prims, strict=True):
            is_instance = _is_instance(prim)
            if is_instance:
                self._instances.append((row, str(prim.GetPrototype().GetPath())))
            self._types["XformInstance" if is_instance and kind == "Xform" else kind].append(row)

    def _note_varying(self, rows: list[int], is_clipped: bool, properties: list[list[Usd.Property]]) -> None:
        for row, found in zip(rows, properties, strict=True):
            if is_clipped or any(map(_might_vary, found)):
                self.scene.varying.append(self.scene.paths[row])

    def finish(self) -> None:
        """Add what follows from all prims together."""
        scene = self.scene
        self._add_prototypes()
        kinds, schemas = scene.column(TYPE, TOKEN), scene.column(SCHEMAS, TOKENS)
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

    def _is_clipped(self, prim: Usd.Prim, path: str) -> bool:
        """Whether value clips at the prim or above it may have values for it."""
        passed, found = [], self._clipped.get(path)
        while found is None:
            passed.append(path)
            if _has_metadata(prim, "clips"):
                found = True
            elif path := path.rpartition("/")[0]:
                prim, found = prim.GetParent(), self._clipped.get(path)
            else:
                found = False
        self._clipped.update(dict.fromkeys(passed, found))
        return found

    def _read_metadata(self, row: int, prim: Usd.Prim, want: Want) -> None:
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
            self._add_metadata(row, prefix, key, value)

    def _add_metadata(self, row: int, prefix: str, name: str, value: object) -> None:
        try:
            stored = metadata_form(name, value)
            column = checked(prefix + METADATA + name)
        except (UnicodeDecodeError, Unfit) as error:
            self.scene.skip(
                (row,), prefix + METADATA + name, NO_TEXT if isinstance(error, UnicodeDecodeError) else str(error)
            )
            return
        if stored is None:
            self.scene.skip((row,), column, f"a {type(value).__name__} has no representation")
            return
        form, value = stored
        self.scene.column(column, form).add(row, value)
        assets = [value] if isinstance(value, Sdf.AssetPath) else value if isinstance(value, Sdf.AssetPathArray) else []
        if any(map(depends_on_layer, assets)):
            self.scene.skip((row,), column, UNRESOLVED)


def _might_vary(found: Usd.Property) -> bool:
    return type(found) is Usd.Attribute and _varies(found)


class _Plan:
    """What the prims with the same schemas, the same authored names and the same wishes have in common."""

    __slots__ = (
        "authored",
        "clipped",
        "computed",
        "declared",
        "fallbacks",
        "has_order",
        "is_bound",
        "is_xformable",
        "rows",
    )

    def __init__(
        self, declared: Declared, names: tuple[str, ...], wanted: Callable[[str], bool], is_clipped: bool
    ) -> None:
        columns, authored = declared.columns, set(names)
        self.declared = declared
        self.authored = [Slot(name, columns.get(name), name not in _COMPUTED and wanted(name)) for name in names]
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
        self.is_bound = bindings.NAME in authored

    def leave(self, name: str) -> None:
        """Do not read one authored property: its column is computed."""
        for slot in self.authored:
            slot.wanted = slot.wanted and slot.name != name


def _rows(plans: list[_Plan]) -> list[int]:
    return sorted(row for plan in plans for row in plan.rows)
