"""How a USD value lies in a column: element type, lanes, one value or an array per prim, role.

A form turns the values of one column into numbers at once. USD packs a list of its own scalars into a Vt array at
native speed, and a numeric Vt array shows its memory to NumPy: matrices row by row, quaternions as i, j, k, real, which
is the layout that the stage wants. The memory is copied, since it may be a mapped file that a program writes next.
Texts and paths become numbers of ``Names``, which are interned when all are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from pxr import Gf, Sdf, Vt  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic
from ovstage.population.conversion import converted
from ovstage.population.names import Names, Numbers
from ovstage.population.ragged import Array, Flags, Values, offsets_of
from ovstage.population.texts import NO_TEXT, Unfit

__all__ = [
    "BOOL",
    "CONNECTION",
    "DOUBLE",
    "EXTENT",
    "MATRIX",
    "RELATIONSHIP",
    "TOKEN",
    "TOKENS",
    "Fitted",
    "Form",
    "form_of",
    "only_forms",
    "plain_form",
    "standard_form",
]


@dataclass(frozen=True)
class Form:
    """One way to lie in a column. ``type_name`` is what USD calls the type."""

    type_name: str
    is_array: bool
    lanes: int
    semantic: AttributeSemantic
    kinds: tuple[str, ...]
    """For each lane that holds a number of ``Names``, of which kind it is; empty for plain numbers."""
    accepts: tuple[type, ...]
    """What USD hands out for one value of the type."""
    elements: Callable[[Sequence[Any], Names], Array]
    """Scalars to an array of shape ``(n,)`` or ``(n, ...)``."""
    is_buffer: bool = False
    """Whether a Vt array of the type has a buffer that NumPy can see."""
    family: str = ""
    """What its values are whatever their precision: only within a family, one becomes another."""
    dtype: np.dtype[Any] | None = None
    """Of plain numbers."""

    def __hash__(self) -> int:
        return hash((self.type_name, self.lanes))  # a form is looked up often, and these tell nearly all of them apart

    def holds(self, value: object) -> bool:
        """Whether it holds a value as it is."""
        try:
            self.pack([value], Names())
        except (TypeError, ValueError, OverflowError):
            return False
        return isinstance(value, self.accepts)

    def fitted(self, values: Sequence[Any], names: Names) -> Fitted:
        """Values of one class, which USD may hand out for another type than this: as numbers of this type.

        Raises ``Unfit`` where none of them can be held, and, like ``pack``, where one is to blame.
        """
        source = self._source(values)
        packed = source.pack(values, names)
        if source is self or self.kinds:
            fine = np.zeros(len(values), bool)
            return Fitted(packed, fine, fine)
        assert self.dtype is not None
        result = converted(packed.numbers, self.dtype)
        return Fitted(Values(result.numbers, packed.offsets), packed.any(result.lost), packed.any(result.rounded))

    def _source(self, values: Sequence[Any]) -> Form:
        """The form of this family that holds values of one class as they are."""
        kind = type(values[0])
        if kind is int:
            source = form_of(Sdf.ValueTypeNames.UInt64 if max(values) >= 2**63 else Sdf.ValueTypeNames.Int64)
        elif kind in self.accepts and kind is not float:
            return self
        else:
            source = plain_form(kind)
        if source is None or (source.family, source.is_array, source.lanes) != (self.family, self.is_array, self.lanes):
            raise Unfit(f"its value is a {kind.__name__}, not a {self.type_name}")
        return source

    def complaint(self, value: object, error: Exception | None = None) -> str:
        """Why a value is left out, in words."""
        if isinstance(error, Unfit):
            return str(error)
        if isinstance(error, UnicodeDecodeError):
            return NO_TEXT
        numbers = self.type_name if self.lanes == 1 or self.is_array else f"{self.lanes} numbers of {self.type_name}"
        return f"its value {_shown(value)} does not fit {numbers}"

    def pack(self, values: Sequence[Any], names: Names) -> Values:
        """The values of a column as numbers; texts and paths as those that ``names`` gives them."""
        if not self.is_array:
            return Values(self.elements(values, names).reshape(len(values), self.lanes))
        if self.is_buffer:
            return Values.of_arrays([np.asarray(value).reshape(-1, self.lanes) for value in values])
        flat = self.elements([item for items in (_unpacked(values) if self.kinds else values) for item in items], names)
        return Values(flat.reshape(-1, self.lanes), offsets_of([len(value) for value in values]))


def _unpacked(values: Iterable[Any]) -> Iterator[Sequence[Any]]:
    """The items of each array of texts or paths. To take one apart costs many times what it costs to see that it equals
    an earlier one, and neighbours often have the same."""
    known: dict[int, tuple[Any, list[Any]]] = {}  # by length, the latest
    for value in values:
        latest, items = known.get(len(value), (None, []))
        if type(value) is not type(latest) or value != latest:
            items = list(value)
            known[len(value)] = value, items
        yield items


class Fitted(NamedTuple):
    """Values as numbers of a type that may not be theirs."""

    packed: Values
    lost: Flags
    """Those that cannot be said in it."""
    rounded: Flags
    """Those that cannot be said exactly."""


@cache
def form_of(type_name: Sdf.ValueTypeName) -> Form | None:
    """The form of a USD type; None for the types that have no values (opaque, group) or are not known."""
    scalar = type_name.scalarType
    held = scalar.cppTypeName
    elements: Callable[[Sequence[Any], Names], Array]
    accepts: tuple[type, ...]
    kinds: tuple[str, ...] = ()
    is_buffer = False
    family = held
    dtype: np.dtype[Any] | None = None
    semantic = _ROLES.get(scalar.role) or _SEMANTICS.get(str(scalar), AttributeSemantic.NONE)
    if held in ("TfToken", "std::string"):
        elements, kinds, accepts, family = _texts, ("token",), (str,), "text"
    elif held == "SdfAssetPath":
        elements, kinds, accepts = _assets, ("token", "token"), (Sdf.AssetPath,)
    elif held == "SdfPathExpression":
        elements, kinds, accepts = _expressions, ("token",), (Sdf.PathExpression,)
    elif held in ("GfTimeCode", "SdfTimeCode", "GfDuration"):
        elements, accepts = _times, (scalar.type.pythonClass or type(scalar.defaultValue),)
        family, dtype = "number", np.dtype(np.float64)
    elif scalar.arrayType and held != "SdfOpaqueValue":
        array = scalar.arrayType.type.pythonClass
        is_buffer, dtype = True, np.asarray(array(1)).dtype
        elements = partial(_floats, dtype) if held in _FLOATS else partial(_numbers, array)
        accepts = _PLAIN.get(held) or (scalar.type.pythonClass,)
        family = "number" if held in _PLAIN else held.rstrip("hfdi")
    else:
        return None
    if type_name.isArray:
        accepts = (type_name.type.pythonClass, tuple)
    lanes = len(kinds) or _lanes(scalar.defaultValue)
    return Form(str(type_name), type_name.isArray, lanes, semantic, kinds, accepts, elements, is_buffer, family, dtype)


def plain_form(kind: type) -> Form | None:
    """The form of the values of a class that USD hands out; the one without a role where several types share it."""
    forms = _forms_by_class().get(kind)
    return forms[0] if forms else None


@cache
def only_forms() -> dict[type, Form]:
    """The forms of the classes that no two types share, such as those of quaternions and of arrays of numbers."""
    return {kind: forms[0] for kind, forms in _forms_by_class().items() if len(forms) == 1}


@cache
def _forms_by_class() -> dict[type, list[Form]]:
    """All forms of each class, those without a role first."""
    found: dict[type, list[Form]] = {}
    names = Sdf.ValueTypeNames
    types = [found for found in (getattr(names, name) for name in dir(names)) if isinstance(found, Sdf.ValueTypeName)]
    for type_name in sorted(types, key=lambda each: bool(each.role)):
        form = form_of(type_name)
        if form and form not in found.setdefault(form.accepts[0], []):
            found[form.accepts[0]].append(form)
    return found


def _shown(value: object) -> str:
    """A value in short; ``repr`` would print what texts in it are not."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _lanes(value: object) -> int:
    if isinstance(value, (Gf.Quath, Gf.Quatf, Gf.Quatd)):
        return 4
    dimension = getattr(value, "dimension", 1)
    return int(np.prod(dimension))


_ROLES = {
    "Point": AttributeSemantic.POINT,
    "Vector": AttributeSemantic.VECTOR,
    "Normal": AttributeSemantic.NORMAL,
    "Color": AttributeSemantic.COLOR,
    "TextureCoordinate": AttributeSemantic.TEXTURE_COORDINATE,
    "Frame": AttributeSemantic.FRAME,
}
_SEMANTICS = {
    **dict.fromkeys(("quath", "quatf", "quatd"), AttributeSemantic.QUATERNION),
    **dict.fromkeys(("matrix2d", "matrix3d", "matrix4d"), AttributeSemantic.MATRIX),
    "timecode": AttributeSemantic.TIME_CODE,
    "token": AttributeSemantic.TOKEN_ID,
    "asset": AttributeSemantic.ASSET_PATH_ID,
    "pathExpression": AttributeSemantic.PATH_EXPRESSION_STRING,
}
_FLOATS = ("GfHalf", "float", "double")
_PLAIN: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    **dict.fromkeys(("unsigned char", "int", "unsigned int", "int64_t", "uint64_t"), (int,)),
    **dict.fromkeys(_FLOATS, (float,)),
}


# --- scalars to numbers ---------------------------------------------------------------------------------------------


def _numbers(array: type, values: Sequence[Any], _: Names) -> Array:
    return np.asarray(array(values))


def _floats(dtype: np.dtype[Any], values: Sequence[Any], _: Names) -> Array:
    """Python has one class for floats of every precision: refuses those that are of a higher one."""
    numbers = np.array(values, np.float64)
    result = converted(numbers, dtype)
    if (result.lost | result.rounded).any():
        raise ValueError("not all are of this precision")
    return result.numbers


def _times(values: Sequence[Any], _: Names) -> Array:
    return np.fromiter((value.GetValue() for value in values), np.float64, len(values))


def _numbered(numbers: Numbers, texts: Iterable[str], count: int) -> Array:
    return np.fromiter(map(numbers.__getitem__, texts), np.int64, count)


def _texts(values: Sequence[Any], names: Names) -> Array:
    return _numbered(names.tokens, values, len(values))


def _expressions(values: Sequence[Any], names: Names) -> Array:
    return _numbered(names.tokens, (value.GetText() for value in values), len(values))


def _assets(values: Sequence[Any], names: Names) -> Array:
    halves = (half for value in values for half in (value.authoredPath or value.path, value.resolvedPath))
    return _numbered(names.tokens, halves, 2 * len(values))


def _targets(values: Sequence[Any], names: Names) -> Array:
    return _numbered(names.paths, values, len(values))


def _sources(values: Sequence[Any], names: Names) -> Array:
    pairs = np.empty((len(values), 2), np.int64)
    pairs[:, 0] = _numbered(names.paths, (value.GetPrimPath().pathString for value in values), len(values))
    pairs[:, 1] = _numbered(names.tokens, (value.name for value in values), len(values))
    return pairs


def _box(values: Sequence[Any], _: Names) -> Array:
    corners = np.array([np.asarray(value) for value in values], np.float64)
    return corners.reshape(-1, 2, 3)  # refuses a box that is not two corners


# --- forms that are asked for by name -------------------------------------------------------------------------------


def standard_form(type_name: Sdf.ValueTypeName) -> Form:
    """The form of a type that has one."""
    form = form_of(type_name)
    assert form is not None
    return form


BOOL = standard_form(Sdf.ValueTypeNames.Bool)
DOUBLE = standard_form(Sdf.ValueTypeNames.Double)
MATRIX = standard_form(Sdf.ValueTypeNames.Matrix4d)
TOKEN = standard_form(Sdf.ValueTypeNames.Token)
TOKENS = standard_form(Sdf.ValueTypeNames.TokenArray)
RELATIONSHIP = Form("relationship", True, 1, AttributeSemantic.RELATIONSHIP_PATH_ID, ("path",), (list, tuple), _targets)
"""Targets as authored, in order, as texts. A target that is a property is interned whole."""
CONNECTION = Form(
    "connection", True, 2, AttributeSemantic.CONNECTION_PATH_ID, ("path", "token"), (list, tuple), _sources
)
"""The prim and the name of the property that an attribute is connected to."""
EXTENT = Form("float3[]", False, 6, AttributeSemantic.NONE, (), (Vt.Vec3fArray, Vt.Vec3dArray, Vt.Vec3hArray), _box)
"""The two corners of an ``extent``, of which every boundable prim has one."""
