"""Write columns as attributes, and local matrices as transforms."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode
from ovstage.population.export.assets import LOOSE, leads_astray
from ovstage.population.export.draft import Draft, failure
from ovstage.population.export.holdings import Prim, Rows
from ovstage.population.export.rules import (
    AttributeRule,
    ExportProjection,
    LayerMode,
    NameMatch,
    RuleFlag,
)
from ovstage.population.export.selection import definition, is_bare, leaves_open
from ovstage.population.export.transforms import author_transforms, passed_over, with_transform
from ovstage.population.export.types import inferred, usd_values
from ovstage.population.reserved import LOCAL, METADATA, PROTOTYPE, RESET, SCHEMAS, TYPE

__all__ = ["author_attributes"]

_DERIVED = "omni:fabric:"
_CONNECT = ".connect"
_EDGES = (AttributeSemantic.RELATIONSHIP_PATH_ID, AttributeSemantic.CONNECTION_PATH_ID)
_UNDECLARED = "no type or schema of the prim declares it: name its namespace, or it with an attribute rule"


def author_attributes(draft: Draft) -> None:
    """Write attributes by rules: transforms first, whose operations must not be contradicted, and patterns last."""
    for rule in sorted(draft.options.attribute_rules, key=_rank):
        names = _named(draft, rule)
        written = sum(_column(draft, rows, rule) for name in names for rows in draft.selected.rows(name))
        if rule.source_attribute_name_match == NameMatch.GLOB:
            _pass_over_connections(draft, rule)
        if LOCAL not in names and fnmatchcase(LOCAL, rule.source_attribute_name):
            passed_over(draft, rule)
        if rule.has(RuleFlag.REQUIRED) and not written:
            raise failure(
                ErrorCode.NOT_FOUND,
                f"the required attribute rule for {rule.source_attribute_name!r} matched no value of a selected prim",
            )
    if draft.options.projection == ExportProjection.SCHEMA_DECLARED:
        _declared_attributes(draft)


def _rank(rule: AttributeRule) -> tuple[bool, bool]:
    return rule.source_attribute_name != LOCAL, rule.source_attribute_name_match == NameMatch.GLOB


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


def _pass_over_connections(draft: Draft, rule: AttributeRule) -> None:
    """Name the connections of the attributes that a pattern means, which it does not write."""
    for name in draft.selected.names:
        source = name.removesuffix(_CONNECT)
        if source == name or not fnmatchcase(source, rule.source_attribute_name):
            continue
        if draft.wanted_property(source, False):
            for rows in draft.selected.rows(name):
                paths = [prim.path for _, prim in draft.chosen(rows) if rule.means(prim)]
                draft.report.leave_out(name, paths, "a pattern does not mean connections: name it with a property rule")


def _column(draft: Draft, rows: Rows, rule: AttributeRule) -> int:
    """Write the values of a column for the prims that a rule means; returns how many."""
    if not draft.wanted_property(rows.name, False):
        return 0
    chosen = [(at, prim) for at, prim in draft.chosen(rows) if rule.means(prim)]
    if rows.semantic in _EDGES:
        _left_out(draft, rows, chosen, "paths are no value: name it with a property rule")
        return 0
    name = rule.destination_attribute_name or rows.name
    if name == LOCAL:
        return author_transforms(draft, rows, chosen, required=rule.has(RuleFlag.REQUIRED))
    if rows.name in (RESET, "xformOpOrder") or rows.name.startswith("xformOp:"):
        chosen = [(at, prim) for at, prim in chosen if prim.path not in draft.transformed]
    return _values(draft, rows, chosen, rule, name)


def _declared_attributes(draft: Draft) -> None:
    """Write what the type and the recorded schemas of a prim declare, unless a rule has written it."""
    for rows in draft.selected.rows(LOCAL):
        chosen = draft.chosen(rows)
        author_transforms(draft, rows, with_transform(draft, chosen), identities=False)
    silent = AttributeRule(flags=RuleFlag.INFER_CUSTOM_TYPE)  # for names that a type leaves open
    spelled_out = {path for path, name in draft.written if name.startswith("xformOp:")}
    spelled_out |= {prim.path for prim in draft.prims.values() if is_bare(prim)}  # below
    for name in list(draft.selected.names):
        if _reserved(name) or not draft.wanted_property(name, False):
            continue
        for rows in draft.selected.rows(name):
            if rows.semantic in _EDGES:
                continue  # edges name them
            declared: list[tuple[int, Prim]] = []
            others: list[tuple[int, Prim]] = []
            for at, prim in draft.chosen(rows):
                if name == "xformOpOrder" and (prim.path in draft.transformed or prim.path not in spelled_out):
                    continue  # its operations are others, or not there at all
                if _declares(prim, name):
                    declared.append((at, prim))
                elif not name.startswith("xformOp:"):  # those of omni:xform say the same
                    others.append((at, prim))
            _values(draft, rows, declared, silent, name)
            _left_out(draft, rows, others, _UNDECLARED)


def _values(draft: Draft, rows: Rows, chosen: list[tuple[int, Prim]], rule: AttributeRule, name: str) -> int:
    """Write the values at ``chosen`` of a column, unless there is one already; returns how many.

    Prims may declare different types for it.
    """
    chosen = [(at, prim) for at, prim in chosen if (prim.path, name) not in draft.written]
    draft.report["attributes_examined"] += len(chosen)
    if not chosen:
        return 0
    targets: dict[Target, list[tuple[int, Prim]]] = {}
    for at, prim in chosen:
        targets.setdefault(_target(draft, rows, prim, rule, name), []).append((at, prim))
    written = 0
    for target, group in targets.items():
        kind = Sdf.ValueTypeNames.Find(target.type)
        values = usd_values(rows, kind, draft.held.texts, draft.anchored) if kind else None
        if values is None:
            _unsupported(draft, rows, group, target, rule)
            continue
        unreadable = [(at, prim) for at, prim in group if values[at] is None]
        draft.report["attributes_unsupported"] += len(unreadable)
        _left_out(draft, rows, unreadable, "the bytes of the text are no UTF-8")
        for at, prim in group:
            if values[at] is not None:
                _write(draft, prim, target, kind, values[at])
        written += len(group) - len(unreadable)
        if kind.scalarType == Sdf.ValueTypeNames.Asset:
            astray = [prim.path for at, prim in group if leads_astray(values[at], draft.folder)]
            draft.report.warn(name, astray, LOOSE)
    draft.report["attributes_exported"] += written
    draft.report["prims_exported"] += written
    return written


def _target(draft: Draft, rows: Rows, prim: Prim, rule: AttributeRule, name: str) -> Target:
    """The type to write: the first that is told by the rule, the schema, the layer, or the values themselves."""
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


def _unsupported(draft: Draft, rows: Rows, chosen: list[tuple[int, Prim]], target: Target, rule: AttributeRule) -> None:
    """Count what has no USD form, or fail where a rule insists on it."""
    draft.report["attributes_unsupported"] += len(chosen)
    element, lanes = rows.schema
    stored = f"{'arrays of ' if rows.is_array else ''}{element}{f'x{lanes}' if lanes > 1 else ''}"
    as_what = f"as {target.type!r}" if target.type else "without a type: give usd_type_name or INFER_CUSTOM_TYPE"
    if rule.has(RuleFlag.REQUIRED):
        raise failure(
            ErrorCode.OP_FAILED, f"the required attribute {rows.name!r}, {stored}, cannot be written {as_what}"
        )
    _left_out(draft, rows, chosen, f"{stored} cannot be written {as_what}")


def _left_out(draft: Draft, rows: Rows, chosen: list[tuple[int, Prim]], reason: str) -> None:
    draft.report.leave_out(rows.name, [prim.path for _, prim in chosen], reason)


# --- which columns, which prims ---


def _reserved(name: str) -> bool:
    """Whether a column is derived, or written in a way of its own, so that patterns pass over it."""
    return (
        name in (LOCAL, RESET, TYPE, SCHEMAS, PROTOTYPE)
        or name.startswith((_DERIVED, METADATA))
        or f":{METADATA}" in name
        or name.endswith(_CONNECT)
    )


def _declares(prim: Prim, name: str) -> bool:
    """Whether a typed export writes an attribute: one that the prim's type and schemas declare or leave open, and all
    of a prim without a type."""
    if is_bare(prim):
        return True
    declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
    return bool(declared) or leaves_open(prim.usd_type, name)
