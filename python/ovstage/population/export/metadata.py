"""Write metadata columns into prims and into the layer itself."""

from __future__ import annotations

from typing import Any

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.complaints import Complaint
from ovstage.population.export.assets import LOOSE, leads_astray
from ovstage.population.export.draft import Draft, placed
from ovstage.population.export.holdings import Prim, Rows
from ovstage.population.export.rules import ExportProjection, MetadataKind, MetadataRule, RuleFlag
from ovstage.population.export.types import inferred, usd_values
from ovstage.population.reserved import METADATA

__all__ = ["author_metadata"]

_SCHEMAS = f"{METADATA}apiSchemas"  # are applied
_DICTIONARIES = {"customData", "assetInfo", "customLayerData"}


def author_metadata(draft: Draft) -> None:
    """Write what metadata rules name. Layer metadata comes from the prim ``/`` unless a rule gives a path."""
    layer, held, report = draft.layer, draft.held, draft.report
    for rule in draft.options.metadata_rules:
        source = rule.source_metadata_name.removeprefix(METADATA)
        on_layer = rule.metadata_kind in (MetadataKind.LAYER_CUSTOM_DATA, MetadataKind.LAYER_STANDARD)
        written = examined = 0
        for rows in held.rows(METADATA + source):
            values = _values(draft, rows)
            for at, row in enumerate(rows.prims):
                prim = held.by_row(row)
                if prim is None or not (
                    _of_layer(prim, rule) if on_layer else row in draft.prims and rule.covers(prim.path)
                ):
                    continue
                examined += 1
                name = (rule.destination_metadata_name or source).removeprefix(METADATA)
                spec = layer.pseudoRoot if on_layer else draft.spec(prim)
                value = None if values is None else values[at]
                if value is not None and _author(spec, layer, rule.metadata_kind, name, value):
                    written += 1
                    if leads_astray(value, draft.folder):
                        report.warn(rows.name, [prim.path], LOOSE)
                else:
                    report.leave_out(rows.name, [prim.path], f"USD takes no such value as {name!r}")
        report["metadata_examined"] += examined
        report["metadata_exported"] += written
        report["metadata_unsupported"] += examined - written
        if not examined:
            report["metadata_skipped"] += 1
        if rule.has(RuleFlag.REQUIRED) and not written:
            raise OvstageError(ErrorCode.NOT_FOUND, f"the required metadata rule for {source!r} wrote nothing")
    if draft.options.projection == ExportProjection.SCHEMA_DECLARED:
        _name_others(draft)


def _name_others(draft: Draft) -> None:
    """Name the metadata that a typed export leaves out, since no rule names it."""
    named = {METADATA + rule.source_metadata_name.removeprefix(METADATA) for rule in draft.options.metadata_rules}
    for column in draft.selected.names:
        if column.startswith(METADATA) and column not in named | {_SCHEMAS}:
            for rows in draft.selected.rows(column):
                paths = [prim.path for _, prim in draft.chosen(rows)]
                draft.report.leave_out(column, paths, "name it with a metadata rule")


def _of_layer(prim: Prim, rule: MetadataRule) -> bool:
    return rule.covers(prim.path) if rule.path else prim.path == "/"


def _values(draft: Draft, rows: Rows) -> list[Any] | None:
    """Metadata as USD values. Numbers of 64 bits without a USD type are hardly ever meant as numbers here: they are
    taken for texts where the dictionary knows them."""
    kind = inferred(rows)
    if not rows.type_name and kind in (Sdf.ValueTypeNames.UInt64, Sdf.ValueTypeNames.UInt64Array):
        kind = Sdf.ValueTypeNames.StringArray if rows.is_array else Sdf.ValueTypeNames.String
        try:
            return usd_values(rows, kind, draft.held.texts, draft.anchored)
        except Exception:  # not a token id after all
            kind = inferred(rows)
    return usd_values(rows, kind, draft.held.texts, draft.anchored) if kind else None


def _author(spec: Any, layer: Sdf.Layer, kind: MetadataKind, name: str, value: Any) -> int:
    """Write one value; 0 when USD has no such field or another type for it."""
    field, _, key = name.partition(":")
    try:
        if kind == MetadataKind.REFERENCES:
            spec.referenceList.prependedItems.append(Sdf.Reference(getattr(value, "path", value)))
        elif kind == MetadataKind.LAYER_CUSTOM_DATA:
            layer.customLayerData = placed(layer.customLayerData, name.removeprefix("customLayerData:"), value)
        elif key and field in _DICTIONARIES:
            spec.SetInfo(field, placed(spec.GetInfo(field), key, value))
        else:
            spec.SetInfo(field, value)
    except (Complaint, TypeError, ValueError, AttributeError):
        return 0
    return 1
