"""From a column's element type and role to a USD value type, and from its bytes to USD values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic

if TYPE_CHECKING:
    from ovstage.population.export.holdings import Rows

__all__ = ["inferred", "usd_values"]

Texts = Callable[[Sequence[int]], list[str]]
Anchor = Callable[[str, str], str]
"""From an asset path as it was authored, and the file that it led to, to the path to write."""

_NUMBERS = {
    "bool": "bool",
    "uint8": "uchar",
    "int32": "int",
    "int64": "int64",
    "uint32": "uint",
    "uint64": "uint64",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}
_SUFFIX = {"float16": "h", "float32": "f", "float64": "d"}
_ROLES = {
    AttributeSemantic.POINT: ("point", (3,)),
    AttributeSemantic.VECTOR: ("vector", (3,)),
    AttributeSemantic.NORMAL: ("normal", (3,)),
    AttributeSemantic.COLOR: ("color", (3, 4)),
    AttributeSemantic.TEXTURE_COORDINATE: ("texCoord", (2, 3)),
}
_IDS = {
    (AttributeSemantic.TOKEN_ID, 1): "token",
    (AttributeSemantic.PATH_EXPRESSION_STRING, 1): "pathExpression",
    (AttributeSemantic.ASSET_PATH_ID, 2): "asset",
}
_EDGES = (AttributeSemantic.RELATIONSHIP_PATH_ID, AttributeSemantic.CONNECTION_PATH_ID)
_MATRICES = {4: "matrix2d", 9: "matrix3d", 16: "matrix4d"}
_TEXT = {"TfToken", "std::string", "SdfPathExpression", "SdfAssetPath"}


def inferred(rows: Rows) -> Sdf.ValueTypeName:
    """The USD type of a column: the one that is recorded beside it, as population does, if its values are of that type;
    else what bytes and role suggest. One that is false where there is none."""
    named = Sdf.ValueTypeNames.Find(rows.type_name) if rows.type_name else None
    if named and _holds(named, rows):
        return named
    if _is_bytes(rows):
        return Sdf.ValueTypeNames.String
    element, lanes = rows.schema
    name = _scalar(element, lanes, rows.semantic)
    return Sdf.ValueTypeNames.Find(f"{name}[]" if rows.is_array and name else name)


def _scalar(element: str, lanes: int, role: AttributeSemantic) -> str:
    if element == "uint64" and (role, lanes) in _IDS:
        return _IDS[role, lanes]
    if element in _SUFFIX:
        if role == AttributeSemantic.QUATERNION and lanes == 4:
            return f"quat{_SUFFIX[element]}"
        if role in _ROLES and lanes in _ROLES[role][1]:
            return f"{_ROLES[role][0]}{lanes}{_SUFFIX[element]}"
    if element == "float64":
        if role == AttributeSemantic.MATRIX:
            return _MATRICES.get(lanes, "")
        if role == AttributeSemantic.FRAME and lanes == 16:
            return "frame4d"
        if role == AttributeSemantic.TIME_CODE and lanes == 1:
            return "timecode"
    number = "" if role in _EDGES else _NUMBERS.get(element, "")
    if lanes == 1 or not number:
        return number
    return f"{number}{lanes}" if lanes <= 4 and number in ("int", "half", "float", "double") else ""


def usd_values(rows: Rows, kind: Sdf.ValueTypeName, texts: Texts, anchor: Anchor) -> list[Any] | None:
    """The values of a column as that USD type, one per prim; ``None`` when they cannot be had without loss.

    A single value is ``None`` where it is bytes that are no UTF-8.
    """
    packed = kind.arrayType.type.pythonClass
    if not _holds(kind, rows):
        return None
    if _is_extent(kind, rows):
        return [packed.FromBuffer(extent) for extent in rows.fixed().astype(np.float32).reshape(-1, 2, 3)]
    if _is_bytes(rows):
        return [_decoded(bytes(array)) for array in rows.arrays()]
    if _is_text(kind):
        return _text_values(rows, kind, texts, anchor)
    element = _layout(kind)[0]
    if not kind.isArray:
        return list(packed.FromBuffer(_shaped(rows.fixed(), element, kind)))
    return [packed.FromBuffer(_shaped(array, element, kind)) for array in rows.arrays()]


def _holds(kind: Sdf.ValueTypeName, rows: Rows) -> bool:
    """Whether a USD type can hold the values of a column without loss."""
    element, lanes = _layout(kind)
    if not element:
        return False
    if _is_bytes(rows):
        return kind in (Sdf.ValueTypeNames.String, Sdf.ValueTypeNames.Token)
    if _is_extent(kind, rows):
        return True
    if rows.type_name in ("string", "string[]") and not _is_text(kind):
        return False
    fits = rows.schema[1] == lanes and np.can_cast(rows.schema[0], element, "safe")
    return rows.is_array == kind.isArray and rows.semantic not in _EDGES and fits


def _is_extent(kind: Sdf.ValueTypeName, rows: Rows) -> bool:
    return not rows.is_array and kind == Sdf.ValueTypeNames.Float3Array and rows.schema == ("float64", 6)


def _is_text(kind: Sdf.ValueTypeName) -> bool:
    return kind.scalarType.cppTypeName in _TEXT


def _is_bytes(rows: Rows) -> bool:
    """Whether each prim has a text as bytes, which is how clients write texts; population stores ids."""
    return rows.is_array and rows.semantic == AttributeSemantic.STRING and rows.schema == ("uint8", 1)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _layout(kind: Sdf.ValueTypeName) -> tuple[str, int]:
    """The element type and lanes with which population stores a USD type."""
    scalar = kind.scalarType
    if scalar.cppTypeName in _TEXT:
        return "uint64", 2 if scalar == Sdf.ValueTypeNames.Asset else 1
    try:
        sample = np.asarray(kind.arrayType.type.pythonClass([scalar.defaultValue]))
    except TypeError:
        return "", 0
    return str(sample.dtype), sample.size


def _shaped(values: np.ndarray[Any, Any], element: str, kind: Sdf.ValueTypeName) -> np.ndarray[Any, Any]:
    """Rows of lanes in the shape in which USD takes them: matrices by rows, single numbers without an axis."""
    values = np.ascontiguousarray(values, element)
    lanes = values.shape[1]
    name = str(kind.scalarType)
    if name.startswith(("matrix", "frame")):
        side = int(lanes**0.5)
        return values.reshape(-1, side, side)
    return values.reshape(-1) if lanes == 1 else values


def _text_values(rows: Rows, kind: Sdf.ValueTypeName, texts: Texts, anchor: Anchor) -> list[Any]:
    scalar = kind.scalarType
    make: Callable[[str], Any] = Sdf.PathExpression if scalar.cppTypeName == "SdfPathExpression" else str

    def made(values: np.ndarray[Any, Any]) -> list[Any]:
        if scalar == Sdf.ValueTypeNames.Asset:
            authored, resolved = texts(values[:, 0].tolist()), texts(values[:, 1].tolist())
            return [Sdf.AssetPath(anchor(*pair)) for pair in zip(authored, resolved, strict=True)]
        return [make(text) for text in texts(values[:, 0].tolist())]

    if not kind.isArray:
        return made(rows.fixed())
    packed = kind.type.pythonClass
    return [packed(made(array)) for array in rows.arrays()]
