"""Apply schemas: those of rules, and those that the stage records."""

from __future__ import annotations

from pxr import Sdf, Vt  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode
from ovstage.population.export.constants import (
    OVSTAGE_POPULATION_EXPORT_UNKNOWN_APPLIED_API_SCHEMAS_CUSTOM_DATA_KEY as UNKNOWN_SCHEMAS_KEY,
)
from ovstage.population.export.draft import Draft, failure, placed
from ovstage.population.export.holdings import Prim
from ovstage.population.export.rules import RuleFlag, SourceApiSchemaPolicy, UnknownMetadataPolicy
from ovstage.population.export.selection import definition, is_schema

__all__ = ["apply", "author_schemas"]


def author_schemas(draft: Draft) -> None:
    """Apply the schemas that rules name, then those that the stage records."""
    for rule in draft.options.api_schema_rules:
        name = f"{rule.schema_name}:{rule.instance_name}" if rule.instance_name else rule.schema_name
        prims = [prim for prim in draft.prims.values() if rule.covers(prim.path)]
        if rule.has(RuleFlag.REQUIRED) and not prims:
            raise failure(ErrorCode.NOT_FOUND, f"the required schema rule for {name!r} matched no selected prim")
        for prim in prims:
            _apply_known(draft, prim, [name], required=rule.has(RuleFlag.REQUIRED))
    if draft.options.source_api_schema_policy == SourceApiSchemaPolicy.APPLY_RECORDED:
        for prim in draft.prims.values():
            if prim.schemas:
                _apply_known(draft, prim, _essential(prim), required=False)


def _apply_known(draft: Draft, prim: Prim, names: list[str], required: bool) -> None:
    known = [name for name in names if is_schema(name)]
    unknown = [name for name in names if name not in known]
    draft.report["api_schemas_examined"] += len(names)
    if unknown and (required or draft.options.unknown_metadata_policy == UnknownMetadataPolicy.FAIL):
        raise failure(ErrorCode.OP_FAILED, f"{prim.path} has the applied schema {unknown[0]!r}, which USD lacks")
    if known:
        draft.report["api_schemas_applied"] += apply(draft, prim, known)
    if unknown and draft.options.unknown_metadata_policy == UnknownMetadataPolicy.PRESERVE:
        spec = draft.spec(prim)
        spec.SetInfo("customData", placed(spec.GetInfo("customData"), UNKNOWN_SCHEMAS_KEY, Vt.TokenArray(unknown)))
        draft.report["unknown_metadata_preserved"] += len(unknown)
    else:
        draft.report["api_schemas_skipped"] += len(unknown)
        for name in unknown:
            draft.report.leave_out("apiSchemas", [prim.path], f"USD knows no schema {name!r} to apply")


def apply(draft: Draft, prim: Prim, names: list[str]) -> int:
    """Add schemas to those that the layer applies already; returns how many are new."""
    spec = draft.spec(prim)
    there = spec.GetInfo("apiSchemas") if spec.HasInfo("apiSchemas") else Sdf.TokenListOp()
    new = [name for name in names if name not in there.GetAddedOrExplicitItems()]
    if there.isExplicit:
        there = Sdf.TokenListOp.CreateExplicit([*there.explicitItems, *new])
    else:
        there.prependedItems = [*there.prependedItems, *new]
    spec.SetInfo("apiSchemas", there)
    return len(new)


def _essential(prim: Prim) -> list[str]:
    """The recorded schemas without those that the prim's type, or another one of them, brings along."""
    brought = set(definition(prim.usd_type, ()).GetAppliedAPISchemas())
    for name in prim.schemas:
        brought.update(each for each in definition("", (name,)).GetAppliedAPISchemas() if each != name)
    return [name for name in prim.schemas if name not in brought]
