"""Read a composed scene into columns: one traversal, every authored value asked for once.

Every call into USD costs microseconds, so whatever many prims share is asked once: the columns that every prim feeds,
and what a combination of schemas and authored names means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pxr import Sdf, Tf, Usd  # type: ignore # usd-core has no stubs

from ovstage.population import bindings
from ovstage.population.columns import Column, Scene
from ovstage.population.forms import CONNECTION, RELATIONSHIP, TOKEN, TOKENS
from ovstage.population.metadata import INFIX, metadata_form, metadata_values, stage_values, units
from ovstage.population.schemas import Declarations, Declared, chosen_by_schema, form_for
from ovstage.population.transforms import Transforms

if TYPE_CHECKING:
    from ovstage.population.scope import Scope, Want

__all__ = ["PROTOTYPE", "UNTYPED", "gather"]

UNTYPED = "__ovstage_population_untyped__"
"""Type name given to a ``def`` without a type, so that such a prim can still be found by type."""

PROTOTYPE = "usd-prototype"
"""The column that says of an instance root which prototype it shows: a relationship with one target."""

_COMPUTED = frozenset({"omni:xform", "omni:resetXformStack", "omni:fabric:localMatrix", "omni:fabric:worldMatrix"})
"""What every transform is published as; a scene that authors such names itself is not asked."""

_OTHER_KIND = "it is a relationship where the schema declares an attribute, or the other way round"

_REPORT_EVERY = 256  # prims between two progress calls

Step = Callable[[int, int, str], None]


def gather(stage: Usd.Stage, time: Usd.TimeCode, scope: Scope, step: Step) -> Scene:
    """Visit every prim once. Instances are entered: their contents are ordinary rows with values of their own."""
    prims = list(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies())) if scope.takes_prims else []
    wants = scope.wants(prims)
    reader = Reader(stage, time, scope)
    for done, (prim, want) in enumerate(zip(prims, wants, strict=True)):
        if done % _REPORT_EVERY == 0:
            step(done, len(prims), "reading prims")
        if want is not None:
            reader.read(prim, want)
    reader.finish()
    step(max(len(prims), 1), max(len(prims), 1), "reading prims")
    return reader.scene


class Reader:
    """Takes the prims of one scene, parents before children, into columns."""

    def __init__(self, stage: Usd.Stage, time: Usd.TimeCode, scope: Scope) -> None:
        self.scene = Scene()
        self._time = time
        self._declarations = Declarations(self.scene)
        self._plans: dict[tuple[int, tuple[str, ...], int], _Plan] = {}
        self._made: list[_Plan] = []
        self._connected = _Connected()
        self._transforms = Transforms(time)
        self._bound: list[tuple[int, Usd.Prim]] = []
        self._instances: list[tuple[int, str]] = []
        self._rows: dict[str, int] = {}
        self._undeclared_columns: dict[tuple[str, Any], Column] = {}
        self._has_instances = bool(stage.GetPrototypes())
        self._type = self.scene.column("usd-prim-type", TOKEN)
        self._schemas = self.scene.column("usd-schemas", TOKENS)
        if scope.empty:
            return
        self._rows["/"] = root = self.scene.new_row("/")
        for name, value in dict(units(stage)).items() if scope.takes_prims else ():
            self._add_metadata(root, "/", "", name, value)
        for path in scope.stage_metadata:
            for name, value in stage_values(stage, path):
                self._add_metadata(root, "/", "", name, value)

    def read(self, prim: Usd.Prim, want: Want) -> None:
        """Add one prim: type, schemas, attributes, relationships, connections, transform, metadata."""
        path = str(prim.GetPath())
        row = self._rows[path] = self.scene.new_row(path)
        info = prim.GetPrimTypeInfo()
        kind = info.GetTypeName()
        declared = self._declarations.of(prim, kind, tuple(info.GetAppliedAPISchemas()))
        if self._has_instances and prim.IsInstance():
            self._instances.append((row, str(prim.GetPrototype().GetPath())))
            kind = "XformInstance" if kind == "Xform" else kind
        self._type.add(row, kind or UNTYPED)
        if declared.applied:
            self._schemas.add(row, declared.applied)
        for name in declared.unknown:
            reason = f"applies {name}, which is not registered: only its authored values are published"
            self.scene.skip(path, "", reason)
        names = prim.GetAuthoredPropertyNames()
        plan = self._plan(prim, declared, tuple(names), want)
        if plan.wanted:
            self._read_authored(row, path, prim, plan)
            plan.rows.append(row)
        for name in plan.computed:
            self.scene.skip(path, name, "this is the name of a column that population computes")
        if declared.is_xformable:
            self._transforms.add(row, prim, plan.has_order)
        if want.bindings and declared.is_bound:
            self._bound.append((row, prim))
        if want.prim_metadata or want.property_metadata:
            self._read_metadata(row, path, prim, want)

    def finish(self) -> None:
        """Add what follows from all prims together."""
        for plan in self._made:
            for found, value in plan.fallbacks:
                found.share(plan.rows, value)
        self.scene.settle()
        bindings.publish_bindings(self.scene, self._bound)
        column = self.scene.column(PROTOTYPE, RELATIONSHIP)
        for row, prototype in self._instances:
            column.add(row, [prototype])
            if prototype not in self._rows:
                self._rows[prototype] = self.scene.new_row(prototype)
                self._type.add(self._rows[prototype], UNTYPED)
        parents = [self._rows.get(path.rpartition("/")[0] or "/", -1) for path in self.scene.paths]
        if parents:
            parents[0] = -1
        self._transforms.publish(self.scene, parents)

    def _plan(self, prim: Usd.Prim, declared: Declared, names: tuple[str, ...], want: Want) -> _Plan:
        if not want.plain:
            self._made.append(_Plan(declared, names, lambda name: want.takes(prim, name)))
            return self._made[-1]
        key = (id(declared), names, id(want))
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = _Plan(declared, names, lambda name: want.takes(prim, name))
            if want.bindings and declared.is_bound:
                found.leave(bindings.NAME)
            self._made.append(found)
        return found

    def _read_authored(self, row: int, path: str, prim: Usd.Prim, plan: _Plan) -> None:
        time, column_of, attribute = self._time, self.scene.column, Usd.Attribute
        connected = self._connected.below(path, prim)
        for (name, column, wanted), found in zip(plan.authored, prim.GetAuthoredProperties(), strict=True):
            if not wanted:
                continue
            try:
                if type(found) is not attribute:
                    targets = found.GetTargets()
                    if targets or found.HasAuthoredTargets():
                        column_of(name, RELATIONSHIP).add(row, [str(target) for target in targets])
                    continue
                value = found.Get(time)
                if value is not None:
                    if column is None:
                        column = self._undeclared(path, prim, found, name)
                    if column is not None:
                        column.rows.append(row)
                        column.values.append(value)
                elif isinstance(found.GetPropertyStack(time)[0], Sdf.RelationshipSpec):
                    self.scene.skip(path, name, _OTHER_KIND)
                if connected and found.HasAuthoredConnections():
                    column_of(name + ".connect", CONNECTION).add(row, found.GetConnections())
            except Tf.ErrorException:
                self.scene.skip(path, name, _OTHER_KIND)

    def _undeclared(self, path: str, prim: Usd.Prim, found: Usd.Attribute, name: str) -> Column | None:
        """The column of an attribute that no schema declares: only the attribute itself knows its type."""
        type_name = found.GetTypeName()
        key = (name, type_name)
        column = self._undeclared_columns.get(key)
        if column is None:
            form = form_for(prim, name, type_name)
            if form is None:
                self.scene.skip(path, name, f"USD type {type_name} has no representation")
                return None
            column = self.scene.column(name, form)
            if not chosen_by_schema(name):
                self._undeclared_columns[key] = column
        return column

    def _read_metadata(self, row: int, path: str, prim: Usd.Prim, want: Want) -> None:
        for asked in dict.fromkeys(want.prim_metadata):
            for name, value in metadata_values(prim, asked):
                self._add_metadata(row, path, "", name, value)
        found: dict[tuple[str, str], object] = {}
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
        column = self.scene.column(prefix + INFIX + name, form)
        if not column.rows or column.rows[-1] != row:  # asked for twice is published once
            column.add(row, value)


class _Plan:
    """What the prims with the same schemas, the same authored names and the same wishes have in common."""

    __slots__ = ("authored", "computed", "fallbacks", "has_order", "rows", "wanted")

    def __init__(self, declared: Declared, names: tuple[str, ...], wanted: Callable[[str], bool]) -> None:
        columns, authored = declared.columns, set(names)
        self.authored = [(name, columns.get(name), name not in _COMPUTED and wanted(name)) for name in names]
        self.computed = [name for name in names if name in _COMPUTED and wanted(name)]
        self.rows: list[int] = []  # the prims that have the fallbacks
        self.fallbacks = [
            (columns[name], value)
            for name, value in declared.fallbacks.items()
            if name not in authored and wanted(name)
        ]
        self.has_order = "xformOpOrder" in authored
        self.wanted = bool(self.fallbacks) or any(take for _, _, take in self.authored)

    def leave(self, name: str) -> None:
        """Do not read one authored property: its column is computed."""
        self.authored = [(each, column, take and each != name) for each, column, take in self.authored]


class _Connected:
    """Which subtrees have connections at all: asking every attribute would cost as much as reading it."""

    def __init__(self) -> None:
        self._quiet: str | None = None

    def below(self, path: str, prim: Usd.Prim) -> bool:
        """Whether ``prim`` or something below it has a connection. To be asked in the order of traversal."""
        if self._quiet is not None and path.startswith(self._quiet):
            return False
        self._quiet = None
        try:
            if prim.FindAllAttributeConnectionPaths(Usd.TraverseInstanceProxies()):
                return True
        except Tf.ErrorException:  # USD stumbles over one of the attributes: they are asked one by one
            return True
        self._quiet = path + "/"
        return False
