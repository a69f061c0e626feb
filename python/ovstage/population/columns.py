"""Read a composed scene into columns: one traversal, one list of values per (attribute, type)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic

if TYPE_CHECKING:
    from ovstage.population.composition import Composition
    from ovstage.population.usd import Progress

__all__ = ["Column", "Scene", "gather"]

UNTYPED = "__ovstage_population_untyped__"
"""Type name given to a ``def`` without a type, so that such a prim can still be found by type."""

_ROLES = {
    "Point": AttributeSemantic.POINT,
    "Vector": AttributeSemantic.VECTOR,
    "Normal": AttributeSemantic.NORMAL,
    "Color": AttributeSemantic.COLOR,
    "TextureCoordinate": AttributeSemantic.TEXTURE_COORDINATE,
    "Frame": AttributeSemantic.FRAME,
}
_KINDS = {
    "quat": AttributeSemantic.QUATERNION,
    "matrix": AttributeSemantic.MATRIX,
    "timecode": AttributeSemantic.TIME_CODE,
    "token": AttributeSemantic.TOKEN_ID,
}
_REPORT_EVERY = 256  # prims between two progress calls


class Column:
    """One attribute of one type: the prims that carry it, and their values, still as USD hands them out.

    A column whose type the stage cannot hold yet keeps no values and only counts them.
    """

    __slots__ = ("name", "rows", "skipped", "stored", "type", "values")

    def __init__(self, name: str, type_name: Sdf.ValueTypeName) -> None:
        self.name = name
        self.type = type_name
        self.stored = _storable(type_name)
        self.rows: list[int] = []  # indices into Scene.paths, ascending
        self.values: list[Any] = []
        self.skipped = 0

    def add(self, row: int, value: object) -> None:
        """Record the value of one prim."""
        if self.stored:
            self.rows.append(row)
            self.values.append(value)
        else:
            self.skipped += 1

    @property
    def semantic(self) -> AttributeSemantic:
        """The role that the stage stamps on the column."""
        role = _ROLES.get(self.type.role)
        if role is not None:
            return role
        name = str(self.type)
        return next((kind for prefix, kind in _KINDS.items() if name.startswith(prefix)), AttributeSemantic.NONE)

    @property
    def is_text(self) -> bool:
        """Whether the values are strings, which the stage holds as token ids."""
        return self.type.cppTypeName in ("TfToken", "std::string")

    def drop_misfits(self) -> None:
        """Leave out values of another type: USD lets a file author a token where the schema declares a double."""
        try:
            self._packed(self.values)
        except TypeError:
            kept = [(row, value) for row, value in zip(self.rows, self.values, strict=True) if self._fits(value)]
            self.skipped += len(self.rows) - len(kept)
            self.rows = [row for row, _ in kept]
            self.values = [value for _, value in kept]

    def payload(self, tokens: dict[str, int]) -> np.ndarray[Any, Any]:
        """All values as one array, the first axis counting prims; texts as the ids that ``tokens`` gives them."""
        if self.is_text:
            return np.fromiter((tokens[value] for value in self.values), np.uint64, len(self.values))
        if self.type.cppTypeName.endswith("TimeCode"):  # USD lends no memory of these in every version
            return np.fromiter((value.GetValue() for value in self.values), np.float64, len(self.values))
        return np.asarray(self._packed(self.values))

    def _packed(self, values: list[Any]) -> Any:
        """USD packs a list of its own values into a Vt array at native speed, and a numeric Vt array lends its
        memory: quaternions as i, j, k, real and matrices row by row, which is the layout the stage wants."""
        return self.type.arrayType.type.pythonClass(values)

    def _fits(self, value: object) -> bool:
        try:
            self._packed([value])
        except TypeError:
            return False
        return True


class Scene:
    """The prims of a scene in traversal order, and the columns over them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.unsupported: Counter[str] = Counter()  # properties that are no attributes with a value
        self._columns: dict[tuple[str, str], Column] = {}

    @property
    def columns(self) -> list[Column]:
        """Every column that has something to store."""
        return [column for column in self._columns.values() if column.rows]

    @property
    def skipped(self) -> Counter[str]:
        """How many values were left out, by USD type."""
        counts = self.unsupported.copy()
        for column in self._columns.values():
            if column.skipped:
                counts[str(column.type) or "unknown type"] += column.skipped
        return counts

    def new_row(self, path: str) -> int:
        """Give the next prim its row."""
        self.paths.append(path)
        return len(self.paths) - 1

    def column(self, name: str, type_name: Sdf.ValueTypeName) -> Column:
        """The column of that name and type, made when it is asked for first."""
        key = (name, str(type_name))
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = Column(name, type_name)
        return found


class Reader:
    """Takes the prims of one scene, one after the other, into columns.

    Every call into USD costs microseconds, so whatever many prims share is asked once: the columns that every prim
    or every transform feeds, and what a combination of schemas declares.
    """

    def __init__(self, stage: Usd.Stage, time: Usd.TimeCode) -> None:
        self.scene = Scene()
        self._time = time
        self._transforms = UsdGeom.XformCache(time)
        self._declared: dict[tuple[str, tuple[str, ...]], dict[str, tuple[Column, object]]] = {}
        column = self.scene.column
        self._type = column("usd-prim-type", Sdf.ValueTypeNames.Token)
        self._local = column("omni:xform", Sdf.ValueTypeNames.Matrix4d)
        self._resets = column("omni:resetXformStack", Sdf.ValueTypeNames.Bool)
        self._world = column("omni:fabric:worldMatrix", Sdf.ValueTypeNames.Matrix4d)
        # The root prim carries the units of the whole scene, USD's fallbacks where the file says nothing.
        root = self.scene.new_row("/")
        column("usd-metadata:metersPerUnit", Sdf.ValueTypeNames.Double).add(root, UsdGeom.GetStageMetersPerUnit(stage))
        column("usd-metadata:upAxis", Sdf.ValueTypeNames.Token).add(root, UsdGeom.GetStageUpAxis(stage))

    def read(self, prim: Usd.Prim) -> None:
        """Add one prim: its type, its attributes, its transform."""
        row = self.scene.new_row(prim.GetPath().pathString)
        kind = prim.GetTypeName()
        self._type.add(row, kind or UNTYPED)
        declared = self._declarations(prim, kind)
        authored = self._read_authored(row, prim, declared)
        for name, (column, fallback) in declared.items():
            if fallback is not None and name not in authored:
                column.add(row, fallback)
        relationships = len(prim.GetAuthoredRelationships())
        if relationships:
            self.scene.unsupported["relationship"] += relationships
        if prim.IsA(UsdGeom.Xformable):
            local, resets = self._transforms.GetLocalTransformation(prim)
            self._local.add(row, local)
            self._resets.add(row, resets)
            self._world.add(row, self._transforms.GetLocalToWorldTransform(prim))

    def _read_authored(self, row: int, prim: Usd.Prim, declared: dict[str, tuple[Column, object]]) -> set[str]:
        authored = set()
        for attribute in prim.GetAuthoredAttributes():
            name = attribute.GetName()
            authored.add(name)
            value = attribute.Get(self._time)
            if value is not None:
                known = declared.get(name)
                column = known[0] if known else self.scene.column(name, attribute.GetTypeName())
                column.add(row, value)
            if attribute.HasAuthoredConnections():
                self.scene.unsupported["connection"] += 1
        return authored

    def _declarations(self, prim: Usd.Prim, kind: str) -> dict[str, tuple[Column, object]]:
        """Column and fallback of every attribute that the schemas of ``prim`` declare."""
        key = (kind, tuple(prim.GetAppliedSchemas()))
        found = self._declared.get(key)
        if found is None:
            definition = prim.GetPrimDefinition()
            attributes = ((name, definition.GetAttributeDefinition(name)) for name in definition.GetPropertyNames())
            found = self._declared[key] = {
                name: (self.scene.column(name, attribute.GetTypeName()), attribute.GetFallbackValue())
                for name, attribute in attributes
                if attribute
            }
        return found


def gather(composition: Composition, progress: Progress | None) -> Scene:
    """Visit every prim once. Instances are entered: their contents are ordinary rows with values of their own."""
    prims = list(Usd.PrimRange.Stage(composition.stage, Usd.TraverseInstanceProxies()))
    reader = Reader(composition.stage, composition.time)
    for done, prim in enumerate(prims):
        if progress is not None and done % _REPORT_EVERY == 0:
            progress(done, len(prims), "reading prims")
        reader.read(prim)
    for column in reader.scene.columns:
        column.drop_misfits()
    if progress is not None:
        progress(len(prims), len(prims), "reading prims")
    return reader.scene


def _storable(type_name: Sdf.ValueTypeName) -> bool:
    """Scalars, vectors, quaternions, matrices and text; not arrays, assets, path expressions or opaque values."""
    return not type_name.isArray and type_name.cppTypeName not in _UNSTORABLE and bool(type_name.arrayType)


_UNSTORABLE = ("SdfAssetPath", "SdfPathExpression", "SdfOpaqueValue")
