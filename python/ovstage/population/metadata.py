"""Metadata of a stage, a prim or a property as columns. A dictionary becomes one column for each value below it.

Python does not see how USD holds a value: a number without a point is an ``int`` (``int64`` beyond 32 bits), one with a
point a ``double``, a text a ``string``, except in the fields that USD itself declares as tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pxr import Sdf, Usd, UsdGeom, UsdPhysics  # type: ignore # usd-core has no stubs

from ovstage.population.forms import BOOL, DOUBLE, RELATIONSHIP, TOKEN, TOKENS, Form, plain_form, standard_form
from ovstage.population.texts import NO_TEXT, Unfit, readable

__all__ = ["metadata_form", "metadata_values", "stage_values", "units"]

_UNREADABLE = object()  # a value that USD does not hand out

_TOKENS = frozenset(
    {
        "upAxis",
        "kind",
        "interpolation",
        "defaultPrim",
        "colorSpace",
        "typeName",
        "variability",
        "specifier",
        "permission",
    }
)


def units(stage: Usd.Stage) -> Iterator[tuple[str, object]]:
    """What a consumer has to know of any scene, USD's fallbacks where the file says nothing, and what else it says."""
    yield "metersPerUnit", UsdGeom.GetStageMetersPerUnit(stage)
    yield "upAxis", readable(lambda: UsdGeom.GetStageUpAxis(stage), _UNREADABLE)
    yield "kilogramsPerUnit", UsdPhysics.GetStageKilogramsPerUnit(stage)
    yield "timeCodesPerSecond", stage.GetTimeCodesPerSecond()
    for field in ("defaultPrim", "endTimeCode", "framesPerSecond", "startTimeCode"):
        if stage.HasAuthoredMetadata(field):
            yield field, _handed_out(stage, field)


def stage_values(stage: Usd.Stage, path: str) -> Iterator[tuple[str, object]]:
    """The values at and below a metadata path of a stage; fallbacks count."""
    known = dict(units(stage))
    yield from [(path, known[path])] if path in known else metadata_values(stage, path)


def metadata_values(thing: Usd.Object | Usd.Stage, path: str) -> Iterator[tuple[str, object]]:
    """The values at and below a metadata path; nothing where it leads nowhere."""
    field, _, keys = path.partition(":")
    value = (
        readable(lambda: thing.GetMetadataByDictKey(field, keys), _UNREADABLE) if keys else _handed_out(thing, field)
    )
    if value is None:
        return
    for found, below in _flattened(path, value):
        # Schemas put their own documentation into dictionaries; that is not about this prim.
        if found == path or "\0" in found or thing.HasAuthoredMetadataDictKey(field, found.partition(":")[2]):
            yield found, _UNREADABLE if below is None else below


def _handed_out(thing: Usd.Object | Usd.Stage, field: str) -> object:
    """The value of a field. USD hands out nothing at all of a dictionary if one of its texts is no UTF-8."""
    value = readable(lambda: thing.GetMetadata(field), _UNREADABLE)
    return _UNREADABLE if value is None and thing.HasAuthoredMetadata(field) else value


def _flattened(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The values below a value, in the order in which they are written; however deep the dictionaries are."""
    pending = [(path, value)]
    while pending:
        found, below = pending.pop()
        if isinstance(below, Mapping):
            pending += [(f"{found}:{key}", each) for key, each in reversed(list(below.items()))]
        else:
            yield found, below


def metadata_form(path: str, value: Any) -> tuple[Form, object] | None:
    """The form of a value and the value in it; None where no column can hold it; ``Unfit`` for what is no text."""
    if value is _UNREADABLE:
        raise Unfit(NO_TEXT)
    if isinstance(value, str):
        return (TOKEN if path in _TOKENS else _STRING), value
    if isinstance(value, bool):
        return BOOL, value
    if isinstance(value, int):
        return (_INT if -(2**31) <= value < 2**31 else _INT64), value
    if isinstance(value, float):
        return DOUBLE, value
    if isinstance(value, Sdf.TokenListOp):
        return TOKENS, tuple(value.GetAppliedItems())
    if isinstance(value, Sdf.PathListOp):
        return RELATIONSHIP, list(map(str, value.GetAppliedItems()))
    if isinstance(value, (Sdf.Specifier, Sdf.Variability, Sdf.Permission)):
        return TOKEN, value.displayName.lower()
    form = plain_form(type(value))
    return (form, value) if form else None


_INT, _INT64, _STRING = map(
    standard_form, (Sdf.ValueTypeNames.Int, Sdf.ValueTypeNames.Int64, Sdf.ValueTypeNames.String)
)
