"""Write columns of paths as relationships, material bindings and connections."""

from __future__ import annotations

import re
from typing import NamedTuple

from pxr import Sdf, Sdr  # type: ignore # usd-core has no stubs

from ovstage.enums import AttributeSemantic
from ovstage.errors import ErrorCode
from ovstage.population.complaints import Complaint
from ovstage.population.export.draft import Draft, failure
from ovstage.population.export.holdings import Prim, Rows
from ovstage.population.export.rules import ExportProjection, PropertyKind, PropertyRule, RuleFlag
from ovstage.population.export.schemas import apply
from ovstage.population.export.selection import definition, is_bare, leaves_open
from ovstage.population.reserved import PROTOTYPE

__all__ = ["author_edges"]

_CONNECT = ".connect"
_BINDING = "material:binding"
_NO_TYPE = "nothing tells the type of the attribute to connect: give usd_type_name"
_UNDECLARED = "no type or schema of the prim declares it: name it with a property rule"
# What a material offers to one renderer; UsdShadeMaterial makes it a token, like those to all renderers.
_TERMINAL = re.compile(r"outputs:.+:(surface|displacement|volume)")


def author_edges(draft: Draft) -> None:
    """Write columns of paths by rules, and those that schemas declare."""
    for rule in draft.options.property_rules:
        name = rule.source_property_name
        if rule.property_kind == PropertyKind.MATERIAL_BINDING and name != _BINDING:
            raise failure(ErrorCode.INVALID_ARGUMENT, f"MATERIAL_BINDING writes {_BINDING!r} only, not {name!r}")
        if rule.property_kind == PropertyKind.CONNECTION and not name.endswith(_CONNECT):
            name += _CONNECT
        written = sum(_edges(draft, rows, rule) for rows in draft.selected.rows(name))
        if rule.has(RuleFlag.REQUIRED) and not written:
            raise failure(ErrorCode.NOT_FOUND, f"the required property rule for {name!r} matched no selected prim")
    if draft.options.projection == ExportProjection.SCHEMA_DECLARED:
        for name in list(draft.selected.names):
            for rows in draft.selected.rows(name):
                if rows.semantic == AttributeSemantic.RELATIONSHIP_PATH_ID and name != PROTOTYPE:
                    _edges(draft, rows, None)
        _declared_connections(draft)


def _edges(draft: Draft, rows: Rows, rule: PropertyRule | None) -> int:
    """Write one column of paths; without a rule where it is declared. Returns for how many prims."""
    connection = rule is not None and rule.property_kind == PropertyKind.CONNECTION
    name = rows.name.removesuffix(_CONNECT) if connection else rows.name
    if not draft.wanted_property(name, not connection):
        return 0
    role = AttributeSemantic.CONNECTION_PATH_ID if connection else AttributeSemantic.RELATIONSHIP_PATH_ID
    chosen = draft.chosen(rows)
    if rule is None:
        declared = [(at, prim) for at, prim in chosen if _declares_relationship(draft, prim, name)]
        others = {prim.path for _, prim in chosen} - {prim.path for _, prim in declared}
        draft.report.leave_out(rows.name, sorted(others), _UNDECLARED)
        chosen = declared
    else:
        chosen = [(at, prim) for at, prim in chosen if rule.covers(prim.path)]
        name = rule.destination_property_name or name
    draft.report["property_edges_examined"] += len(chosen)
    if rows.semantic != role or not rows.is_array:
        draft.report["property_edges_unsupported"] += len(chosen)
        kind = "connection" if connection else "relationship"
        draft.report.leave_out(rows.name, [prim.path for _, prim in chosen], f"holds no paths of a {kind}")
        return 0
    targets = _targets(draft, rows, connection)
    written = 0
    for at, prim in chosen:
        if rule is not None and connection:
            connected = _connect(draft, prim, name, rule.usd_type_name, targets[at])
            written += connected
            if not connected:
                draft.report.leave_out(rows.name, [prim.path], _NO_TYPE)
        else:
            written += _relate(draft, prim, name, targets[at])
            if rule is not None and rule.property_kind == PropertyKind.MATERIAL_BINDING:
                apply(draft, prim, ["MaterialBindingAPI"])
    draft.report["property_edges_exported"] += written
    draft.report["property_edges_skipped"] += len(chosen) - written
    return written


def _declares_relationship(draft: Draft, prim: Prim, name: str) -> bool:
    declared = definition(prim.usd_type, prim.schemas).GetRelationshipDefinition(name)
    if is_bare(prim):
        declared = Sdf.Path.IsValidNamespacedIdentifier(name)
    elif not declared:  # the schema of bindings leaves its names open
        declared = "MaterialBindingAPI" in prim.schemas and (name == _BINDING or name.startswith(f"{_BINDING}:"))
    return bool(declared) and (prim.path, name) not in draft.written


def _targets(draft: Draft, rows: Rows, connection: bool) -> list[list[str]]:
    arrays = rows.arrays()
    if not connection:
        return [draft.held.path_texts(array[:, 0].tolist()) for array in arrays]
    return [
        [
            f"{path}.{name}" if name else path
            for path, name in zip(
                draft.held.path_texts(array[:, 0].tolist()), draft.held.texts(array[:, 1].tolist()), strict=True
            )
        ]
        for array in arrays
    ]


def _relate(draft: Draft, prim: Prim, name: str, targets: list[str]) -> int:
    spec = draft.spec(prim)
    relationship = spec.relationships.get(name) or Sdf.RelationshipSpec(spec, name, False)
    draft.written.add((prim.path, name))
    relationship.targetPathList.ClearEditsAndMakeExplicit()
    relationship.targetPathList.explicitItems = [Sdf.Path(target) for target in targets]
    return 1


def _connect(draft: Draft, prim: Prim, name: str, type_name: str, targets: list[str]) -> int:
    """Connect an attribute whose type a rule, a schema or the layer knows."""
    existing = draft.attribute(prim, name)
    if existing is None:
        declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
        kind = Sdf.ValueTypeNames.Find(type_name) if type_name else declared.GetTypeName() if declared else None
        if not kind:
            return 0
        variability = declared.GetVariability() if declared else Sdf.VariabilityVarying
        existing = Sdf.AttributeSpec(draft.spec(prim), name, kind, variability)
    draft.written.add((prim.path, name + _CONNECT))
    existing.connectionPathList.ClearEditsAndMakeExplicit()
    existing.connectionPathList.explicitItems = [Sdf.Path(target) for target in targets]
    return 1


# --- connections of a typed export ---


class _Link(NamedTuple):
    """An attribute and what it is connected to."""

    prim: Prim
    name: str
    targets: list[str]

    @property
    def ends(self) -> list[str]:
        return [f"{self.prim.path}.{self.name}", *self.targets]


def _declared_connections(draft: Draft) -> None:
    """Write the connections of what schemas declare or leave open and of what rules wrote, unless a rule has."""
    links = [link for name in list(draft.selected.names) if name.endswith(_CONNECT) for link in _links(draft, name)]
    types = _types(draft, links)
    written = 0
    for link in links:
        connected = _connect(draft, link.prim, link.name, types.get(link.ends[0], ""), link.targets)
        written += connected
        if not connected:
            draft.report.leave_out(link.name + _CONNECT, [link.prim.path], _NO_TYPE)
        for target in link.targets:
            _reach(draft, target, types.get(target, ""))
    draft.report["property_edges_examined"] += len(links)
    draft.report["property_edges_exported"] += written
    draft.report["property_edges_skipped"] += len(links) - written


def _links(draft: Draft, column: str) -> list[_Link]:
    name = column.removesuffix(_CONNECT)
    if not draft.wanted_property(name, False):
        return []
    found = []
    for rows in draft.selected.rows(column):
        if rows.semantic != AttributeSemantic.CONNECTION_PATH_ID or not rows.is_array:
            continue
        chosen, others = [], []
        for at, prim in draft.chosen(rows):
            if (prim.path, column) in draft.written:
                continue
            if _connectable(draft, prim, name):
                chosen.append((at, prim))
            else:
                others.append(prim.path)
        draft.report.leave_out(column, others, _UNDECLARED)
        targets = _targets(draft, rows, True) if chosen else []
        found += [_Link(prim, name, targets[at]) for at, prim in chosen]
    return found


def _connectable(draft: Draft, prim: Prim, name: str) -> bool:
    declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
    open_to_all = is_bare(prim) or leaves_open(prim.usd_type, name)
    return bool(declared) or open_to_all or (prim.path, name) in draft.written


def _types(draft: Draft, links: list[_Link]) -> dict[str, str]:
    """The types of the ends of links. What has no value tells no type, and gets that of an end it is connected to."""
    ends = {end for link in links for end in link.ends}
    types = {end: kind for end in ends if (kind := _own_type(draft, end))}
    known = -1
    while known < len(types):
        known = len(types)
        for link in links:
            kind = next((types[end] for end in link.ends if end in types), "")
            if kind:
                types.update((end, kind) for end in link.ends if end not in types)
    return types


def _own_type(draft: Draft, end: str) -> str:
    path, _, name = end.partition(".")
    prim = draft.by_path.get(path)
    if prim is None or not name:
        return ""
    existing = draft.attribute(prim, name)
    declared = definition(prim.usd_type, prim.schemas).GetAttributeDefinition(name)
    if not existing and not declared and prim.usd_type == "Material" and _TERMINAL.fullmatch(name):
        return "token"
    if existing or declared:
        return str(existing.typeName if existing else declared.GetTypeName())
    return _registered_type(draft, prim, name) if prim.usd_type == "Shader" else ""


def _registered_type(draft: Draft, prim: Prim, name: str) -> str:
    """What USD's registry of shaders says of an input or an output of a shader, if it knows it."""
    identifier = draft.attribute(prim, "info:id")
    direction, _, plain = name.partition(":")
    if identifier is None or direction not in ("inputs", "outputs"):
        return ""
    try:
        node = Sdr.Registry().GetShaderNodeByIdentifier(str(identifier.default))
    except Complaint:  # some builds of usd-core come without the files that describe shaders
        return ""
    ask = {"inputs": "GetShaderInput", "outputs": "GetShaderOutput"}[direction]
    found = getattr(node, ask)(plain) if node else None
    return str(found.GetTypeAsSdfType().GetSdfType()) if found else ""


def _reach(draft: Draft, target: str, type_name: str) -> None:
    """Write an attribute without a value where a connection leads to one: USD follows none to what is not there."""
    path, _, name = target.partition(".")
    prim = draft.by_path.get(path)
    if prim is None or prim.row not in draft.prims or not leaves_open(prim.usd_type, name):
        return
    kind = Sdf.ValueTypeNames.Find(type_name)
    if kind and draft.attribute(prim, name) is None:
        Sdf.AttributeSpec(draft.spec(prim), name, kind, Sdf.VariabilityVarying)
