"""Write local matrices as the transforms of prims."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode
from ovstage.population.export.draft import Draft, failure
from ovstage.population.export.holdings import Prim, Rows
from ovstage.population.export.rules import AttributeRule, TransformPolicy
from ovstage.population.export.selection import definition
from ovstage.population.export.types import inferred, usd_values
from ovstage.population.export.xform_ops import author_matrix, author_operations, same_matrix
from ovstage.population.reserved import LOCAL, RESET

__all__ = ["author_transforms", "passed_over", "with_transform"]

_ORDER = "xformOpOrder"
_SHEARED = "has a shear or a projection: no translate, orient and scale make it; use the transform policy USD_MATRIX_OP"
_IDENTITY = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def author_transforms(
    draft: Draft, rows: Rows, chosen: list[tuple[int, Prim]], required: bool = False, identities: bool = True
) -> int:
    """Write local matrices by the policy; returns how many. ``identities=False`` leaves out those that do nothing."""
    policy = draft.options.transform_policy
    if rows.schema != ("float64", 16) or rows.is_array:
        raise failure(ErrorCode.OP_FAILED, f"{LOCAL} holds {rows.schema}, a transform is one 4x4 of float64")
    draft.report["attributes_examined"] += len(chosen)
    draft.report["transforms_examined"] += len(chosen)
    if policy == TransformPolicy.NONE:
        draft.report["attributes_skipped"] += len(chosen)
        return 0
    resets = _resets(draft)
    matrices = rows.fixed()
    spelled_out = _spelled_out(draft, chosen, matrices, resets) if policy == TransformPolicy.USD_XFORM_OP else set()
    draft.report["transforms_exported"] += len(spelled_out)
    draft.written.update((path, LOCAL) for path in spelled_out)
    written = 0
    for at, prim in chosen:
        matrix, reset = matrices[at].tolist(), prim.row in resets
        idle = not identities and not reset and matrix == _IDENTITY
        if idle or prim.path in spelled_out or prim.path in draft.transformed:
            draft.report["attributes_skipped"] += 1
            continue
        if policy == TransformPolicy.USD_MATRIX_OP:
            author_matrix(draft.spec(prim), matrix, reset)
        elif not author_operations(draft.spec(prim), matrix, reset):
            draft.report["attributes_unsupported"] += 1
            if required:
                raise failure(ErrorCode.OP_FAILED, f"the transform of {prim.path} {_SHEARED}")
            draft.report.leave_out(LOCAL, [prim.path], _SHEARED)
            continue
        draft.transformed.add(prim.path)
        draft.written.add((prim.path, LOCAL))
        if not prim.usd_type:
            draft.types[prim.path] = "Xform"  # USD moves nothing that has no type
        written += 1
    for counter in ("attributes_exported", "transforms_exported", "prims_exported"):
        draft.report[counter] += written
    return written


def _resets(draft: Draft) -> set[int]:
    """The prims whose transform starts over from the world."""
    found: set[int] = set()
    for rows in draft.held.rows(RESET):
        found.update(row for row, value in zip(rows.prims, rows.fixed()[:, 0].tolist(), strict=True) if value)
    return found


# --- operations that the stage has in columns of their own ---


def _spelled_out(
    draft: Draft, chosen: list[tuple[int, Prim]], matrices: np.ndarray[Any, Any], resets: set[int]
) -> set[str]:
    """The paths of prims whose own operations other rules write, and whose matrix these operations make.

    They are written as they are. Those of the other prims belong to an earlier matrix, and give way to the matrix.
    """
    if not any(rule.keeps(_ORDER) for rule in draft.options.attribute_rules):
        return set()
    columns = _Columns(draft)
    layer = Sdf.Layer.CreateAnonymous("operations.usda")
    found = []
    for at, prim in chosen:
        operations = _operations(draft, columns, prim)
        if operations:
            spec = Sdf.CreatePrimInLayer(layer, f"/P{at}")
            spec.specifier, spec.typeName = Sdf.SpecifierDef, "Xform"
            for name, (kind, value) in operations.items():
                Sdf.AttributeSpec(spec, name, kind).default = value
            found.append((at, prim))
    stage = Usd.Stage.Open(layer)
    return {
        prim.path
        for at, prim in found
        if same_matrix(UsdGeom.Xformable(stage.GetPrimAtPath(f"/P{at}")), matrices[at], prim.row in resets)
    }


class _Columns(dict[str, dict[int, tuple[Sdf.ValueTypeName, Any]]]):
    """Columns by name: a type and a value for the row of each prim that has one."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __missing__(self, name: str) -> dict[int, tuple[Sdf.ValueTypeName, Any]]:
        found = self.setdefault(name, {})
        for rows in self._draft.selected.rows(name):
            kind = inferred(rows)
            values = usd_values(rows, kind, self._draft.held.texts, self._draft.anchored) if kind else None
            if values is not None:
                found.update({row: (kind, value) for row, value in zip(rows.prims, values, strict=True)})
        return found


def _operations(draft: Draft, columns: _Columns, prim: Prim) -> dict[str, tuple[Sdf.ValueTypeName, Any]]:
    """The order of a prim's operations and the operations, by name; nothing unless rules write them all."""
    _, order = columns[_ORDER].get(prim.row, (None, ()))
    names = [name.removeprefix("!invert!") for name in order if name != "!resetXformStack!"]
    rules = [rule for rule in draft.options.attribute_rules if rule.means(prim)]
    for name in (_ORDER, *names):
        if prim.row not in columns[name] or not any(rule.keeps(name) for rule in rules):
            return {}
    return {name: columns[name][prim.row] for name in (_ORDER, *names)} if names else {}


# --- which prims ---


def with_transform(draft: Draft, chosen: list[tuple[int, Prim]]) -> list[tuple[int, Prim]]:
    """Those of the prims that USD lets have a transform, or that have no type yet."""
    able, unable = [], []
    for at, prim in chosen:
        if not prim.usd_type or definition(prim.usd_type, ()).GetAttributeDefinition(_ORDER):
            able.append((at, prim))
        else:
            unable.append(prim.path)
    draft.report.leave_out(LOCAL, unable, "the type of the prim has no transform in USD")
    return able


def passed_over(draft: Draft, rule: AttributeRule) -> None:
    """Name the matrices that a pattern seems to mean, where the operations that it wrote do not make them."""
    for rows in draft.selected.rows(LOCAL):
        chosen = draft.chosen(rows)
        chosen = [(at, prim) for at, prim in chosen if rule.means(prim)]
        same = _spelled_out(draft, chosen, rows.fixed(), _resets(draft))
        paths = [prim.path for _, prim in chosen if prim.path not in same]
        draft.report.leave_out(LOCAL, paths, "a pattern does not mean local matrices: add the rule 'omni:xform'")
