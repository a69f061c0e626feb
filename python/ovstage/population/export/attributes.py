"""Write columns as attributes, and local matrices as transforms."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode
from ovstage.population.export.draft import Draft, failure
from ovstage.population.export.holdings import Prim, Rows
from ovstage.population.export.rules import (
    AttributeRule,
    ExportProjection,
    LayerMode,
    NameMatch,
    RuleFlag,
    TransformPolicy,
)
from ovstage.population.export.selection import definition, leaves_open
from ovstage.population.export.transforms import author_matrix, author_operations
from ovstage.population.export.types import inferred, usd_values

__all__ = ["author_attributes"]

_XFORM = "omni:xform"
_RESETS = "omni:resetXformStack"
_DERIVED = "omni:fabric:"
_METADATA = "usd-metadata:"
_CONNECT = ".connect"
_EDGES = (AttributeSemantic.RELATIONSHIP_PATH_ID, AttributeSemantic.CONNECTION_PATH_ID)
_IDENTITY = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def author_attributes(draft: Draft) -> None:
    """Write attributes by rules: transforms first, whose operations must not be contradicted, and patterns last."""
    for rule in sorted(draft.options.attribute_rules, key=_rank):
        written = sum(_column(draft, rows, rule) for name in _named(draft, rule) for rows in draft.selected.rows(name))
        if rule.has(RuleFlag.REQUIRED) and not written:
            raise failure(
                ErrorCode.NOT_FOUND,
                f"the required attribute rule for {rule.source_attribute_name!r} matched no value of a selected prim",
            )
    if draft.options.projection == ExportProjection.SCHEMA_DECLARED:
        _declared_attributes(draft)


def _rank(rule: AttributeRule) -> tuple[bool, bool]:
    return rule.source_attribute_name != _XFORM, rule.source_attribute_name_match == NameMatch.GLOB


@dataclass(frozen=True)
class Target:
    """Where the values of a column go: one destination name and type, for some of its prims."""

    name: str
    type: str
    """The name of a USD value type; empty when there is none for the column."""
    uniform: bool = False
    custom: bool = False


def _named(draft: Draft, rule: AttributeRule) -> list[str]:
    """The columns that a rule means. A pattern never means what is derived or written in other ways."""
    pattern = rule.source_attribute_name
    if rule.source_attribute_name_match == NameMatch.GLOB:
        return [name for name in draft.selected.names if not _reserved(name) and fnmatchcase(name, pattern)]
    if pattern.startswith(_DERIVED) and not rule.has(RuleFlag.DERIVED_ALLOWED):
        return []
    return [pattern]


def _column(draft: Draft, rows: Rows, rule: AttributeRule) -> int:
    """Write the values of a column for the prims that a rule means; returns how many."""
    if not draft.wanted_property(rows.name, False) or rows.semantic in _EDGES:
        return 0
    places = [
        (at, draft.prims[row])
        for at, row in enumerate(rows.prims)
        if row in draft.prims and _meant(draft.prims[row], rule)
    ]
    name = rule.destination_attribute_name or rows.name
    if name == _XFORM:
        return _transforms(draft, rows, places, required=rule.has(RuleFlag.REQUIRED))
    if rows.name in (_RESETS, "xformOpOrder") or rows.name.startswith("xformOp:"):
        places = [(at, prim) for at, prim in places if prim.path not in draft.transformed]
    return _values(draft, rows, places, rule, name)


def _declared_attributes(draft: Draft) -> None:
    """Write what the type and the recorded schemas of a prim declare, unless a rule has written it."""
    for rows in draft.selected.rows(_XFORM):
        places = [(at, draft.prims[row]) for at, row in enumerate(rows.prims) if row in draft.prims]
        _transforms(draft, rows, [(at, prim) for at, prim in places if _is_xformable(prim)], identities=False)
    silent = AttributeRule(flags=RuleFlag.INFER_CUSTOM_TYPE)  # for names that a type leaves open
    spelled_out = {path for path, name in draft.written if name.startswith("xformOp:")}
    for name in list(draft.selected.names):
        if _reserved(name) or not draft.wanted_property(name, False):
            continue
        for rows in draft.selected.rows(name):
            places = []
            for at, row in enumerate(rows.prims):
                prim = draft.prims.get(row)
                if prim is None:
                    continue
                if name == "xformOpOrder" and (prim.path in draft.transformed or prim.path not in spelled_out):
                    continue  # its operations are others, or not there at all
                declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
                if declared or leaves_open(prim.usd_type, name):
                    places.append((at, prim))
            _values(draft, rows, places, silent, name)


def _values(draft: Draft, rows: Rows, places: list[tuple[int, Prim]], rule: AttributeRule, name: str) -> int:
    """Write the values at ``places`` of a column, unless there is one already; returns how many.

    Prims may declare different types for it.
    """
    places = [(at, prim) for at, prim in places if (prim.path, name) not in draft.written]
    draft.report["attributes_examined"] += len(places)
    if not places:
        return 0
    targets: dict[Target, list[tuple[int, Prim]]] = {}
    for at, prim in places:
        targets.setdefault(_target(draft, rows, prim, rule, name), []).append((at, prim))
    written = 0
    for target, group in targets.items():
        kind = Sdf.ValueTypeNames.Find(target.type)
        values = usd_values(rows, kind, draft.held.texts) if kind else None
        if values is None:
            _unsupported(draft, rows, len(group), target, rule)
            continue
        for at, prim in group:
            _write(draft, prim, target, kind, values[at])
        written += len(group)
    draft.report["attributes_exported"] += written
    draft.report["prims_exported"] += written
    return written


def _target(draft: Draft, rows: Rows, prim: Prim, rule: AttributeRule, name: str) -> Target:
    """The type to write: the rule's, the schema's, that of what is in the layer already, the one inferred."""
    if not Sdf.Path.IsValidNamespacedIdentifier(name):
        return Target(name, "")
    declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
    own = bool(declared) or leaves_open(prim.usd_type, name)
    custom = draft.options.layer_mode == LayerMode.DEF and not own
    uniform = bool(declared) and declared.GetVariability() == Sdf.VariabilityUniform
    if rule.usd_type_name:
        return Target(name, rule.usd_type_name, uniform, custom)
    if declared:
        return Target(name, str(declared.GetTypeName()), uniform)
    existing = draft.attribute(prim, name)
    if existing:
        return Target(name, str(existing.typeName))
    if not rule.has(RuleFlag.INFER_CUSTOM_TYPE):
        return Target(name, "")
    kind = str(inferred(rows))
    if kind:
        draft.inferred.add((name, kind))
    return Target(name, kind, custom=custom)


def _write(draft: Draft, prim: Prim, target: Target, kind: Sdf.ValueTypeName, value: Any) -> None:
    spec = draft.spec(prim)
    attribute = spec.attributes.get(target.name)
    if attribute is not None and attribute.typeName != kind:
        spec.RemoveProperty(attribute)
        attribute = None
    if attribute is None:
        variability = Sdf.VariabilityUniform if target.uniform else Sdf.VariabilityVarying
        attribute = Sdf.AttributeSpec(spec, target.name, kind, variability, target.custom)
    attribute.default = value
    draft.written.add((prim.path, target.name))


def _unsupported(draft: Draft, rows: Rows, count: int, target: Target, rule: AttributeRule) -> None:
    """Count what has no USD form, or fail where a rule insists on it."""
    draft.report["attributes_unsupported"] += count
    if rule.has(RuleFlag.REQUIRED):
        element, lanes = rows.schema
        stored = f"{'arrays of ' if rows.is_array else ''}{element}{f'x{lanes}' if lanes > 1 else ''}"
        as_what = f"as {target.type!r}" if target.type else "without a type: give usd_type_name or INFER_CUSTOM_TYPE"
        raise failure(
            ErrorCode.OP_FAILED, f"the required attribute {rows.name!r}, {stored}, cannot be written {as_what}"
        )


# --- transforms ---


def _transforms(
    draft: Draft, rows: Rows, places: list[tuple[int, Prim]], required: bool = False, identities: bool = True
) -> int:
    """Write local matrices by the policy; returns how many. ``identities=False`` leaves out those that do nothing."""
    policy = draft.options.transform_policy
    if rows.schema != ("float64", 16) or rows.is_array:
        raise failure(ErrorCode.OP_FAILED, f"{_XFORM} holds {rows.schema}, a transform is one 4x4 of float64")
    draft.report["attributes_examined"] += len(places)
    draft.report["transforms_examined"] += len(places)
    if policy == TransformPolicy.NONE:
        draft.report["attributes_skipped"] += len(places)
        return 0
    resets = _resets(draft)
    matrices = rows.fixed()
    written = 0
    for at, prim in places:
        matrix, reset = matrices[at].tolist(), prim.row in resets
        if prim.path in draft.transformed or (not identities and not reset and matrix == _IDENTITY):
            draft.report["attributes_skipped"] += 1
            continue
        if policy == TransformPolicy.USD_MATRIX_OP:
            author_matrix(draft.spec(prim), matrix, reset)
        elif not author_operations(draft.spec(prim), matrix, reset):
            draft.report["attributes_unsupported"] += 1
            if required:
                raise failure(
                    ErrorCode.OP_FAILED,
                    f"the transform of {prim.path} has a shear, a zero scale or a projection: no translate, orient "
                    f"and scale make it; use the transform policy USD_MATRIX_OP",
                )
            continue
        draft.transformed.add(prim.path)
        written += 1
    for counter in ("attributes_exported", "transforms_exported", "prims_exported"):
        draft.report[counter] += written
    return written


def _resets(draft: Draft) -> set[int]:
    """The prims whose transform starts over from the world."""
    found: set[int] = set()
    for rows in draft.held.rows(_RESETS):
        found.update(row for row, value in zip(rows.prims, rows.fixed()[:, 0].tolist(), strict=True) if value)
    return found


# --- which columns, which prims ---


def _reserved(name: str) -> bool:
    """Whether a column is derived, or written in a way of its own, so that patterns pass over it."""
    return (
        name in (_XFORM, _RESETS, "usd-prim-type", "usd-schemas")
        or name.startswith((_DERIVED, _METADATA))
        or f":{_METADATA}" in name
        or name.endswith(_CONNECT)
    )


def _meant(prim: Prim, rule: AttributeRule) -> bool:
    schema = rule.required_schema_name
    return rule.covers(prim.path) and (not schema or schema in (prim.type, prim.usd_type) or schema in prim.schemas)


def _is_xformable(prim: Prim) -> bool:
    return bool(definition(prim.usd_type, ()).GetAttributeDefinition("xformOpOrder"))
