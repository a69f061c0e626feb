"""Write a subtree of a stage by what its types and schemas declare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovstage import guard
from ovstage.population.export.operation import ExportOperation
from ovstage.population.export.report import ExportReport
from ovstage.population.export.rules import (
    ExportOptions,
    ExportProjection,
    LayerMode,
    MetadataKind,
    NameMatch,
    RuleFlag,
    SourceApiSchemaPolicy,
    TransformPolicy,
    UnknownMetadataPolicy,
)
from ovstage.population.predicates import PrimPredicate, PropertyPredicate

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["export_typed_hierarchy_to_usd_file", "export_typed_hierarchy_to_usd_file_async"]

_UNITS = ("metersPerUnit", "upAxis", "kilogramsPerUnit", "timeCodesPerSecond")


def export_typed_hierarchy_to_usd_file(
    stage: Stage,
    identifier: str | os.PathLike[str],
    root_path: str,
    ordinal: int,
    *,
    prim_predicate: PrimPredicate | None = None,
    property_predicate: PropertyPredicate | None = None,
    include_custom_namespaces: Sequence[str] | None = None,
    transform_policy: TransformPolicy | int = TransformPolicy.USD_XFORM_OP,
    unknown_metadata_policy: UnknownMetadataPolicy | int = UnknownMetadataPolicy.DROP,
) -> ExportReport:
    """Define the prims at and below ``root_path`` with their types, recorded schemas, and what these declare.

    Custom attributes are left out, but for those in ``include_custom_namespaces``, a list of prefixes such as
    ``["simulation"]``. The units of the stage go along, with the root ``/`` the default prim too. ``prim_predicate``
    restricts the subtree further. ``property_predicate``, ``transform_policy`` and ``unknown_metadata_policy`` mean
    what they mean to ``export_to_usd_file``.
    """
    from ovstage import population

    judged = _typed_options(
        root_path,
        prim_predicate=prim_predicate,
        property_predicate=property_predicate,
        include_custom_namespaces=include_custom_namespaces,
        transform_policy=transform_policy,
        unknown_metadata_policy=unknown_metadata_policy,
    )
    done: ExportReport = population.export_to_usd_file(stage, identifier, ordinal, **judged)
    return done


def export_typed_hierarchy_to_usd_file_async(
    stage: Stage,
    identifier: str | os.PathLike[str],
    root_path: str,
    ordinal: int,
    *,
    prim_predicate: PrimPredicate | None = None,
    property_predicate: PropertyPredicate | None = None,
    include_custom_namespaces: Sequence[str] | None = None,
    transform_policy: TransformPolicy | int = TransformPolicy.USD_XFORM_OP,
    unknown_metadata_policy: UnknownMetadataPolicy | int = UnknownMetadataPolicy.DROP,
) -> ExportOperation:
    """``export_typed_hierarchy_to_usd_file`` on a thread of its own."""
    from ovstage import population

    judged = _typed_options(
        root_path,
        prim_predicate=prim_predicate,
        property_predicate=property_predicate,
        include_custom_namespaces=include_custom_namespaces,
        transform_policy=transform_policy,
        unknown_metadata_policy=unknown_metadata_policy,
    )
    started: ExportOperation = population.export_to_usd_file_async(stage, identifier, ordinal, **judged)
    return started


def _typed_options(
    root_path: str,
    *,
    prim_predicate: PrimPredicate | None,
    property_predicate: PropertyPredicate | None,
    include_custom_namespaces: Sequence[str] | None,
    transform_policy: TransformPolicy | int,
    unknown_metadata_policy: UnknownMetadataPolicy | int,
) -> ExportOptions:
    if not guard.string(root_path, "root_path").startswith("/"):
        raise ValueError(f"root_path must be absolute, got {root_path!r}")
    below = PrimPredicate.is_under_path(root_path)
    return {
        "layer_mode": LayerMode.DEF,
        "source_api_schema_policy": SourceApiSchemaPolicy.APPLY_RECORDED,
        "projection": ExportProjection.SCHEMA_DECLARED,
        "transform_policy": transform_policy,
        "unknown_metadata_policy": unknown_metadata_policy,
        "prim_predicate": below if prim_predicate is None else PrimPredicate.and_(below, prim_predicate),
        "property_predicate": property_predicate,
        "attribute_rules": [
            {
                "source_attribute_name": f"{space}:*",
                "source_attribute_name_match": NameMatch.GLOB,
                "flags": RuleFlag.INFER_CUSTOM_TYPE,
            }
            for space in _namespaces(include_custom_namespaces)
        ],
        "metadata_rules": [
            {"source_metadata_name": name, "metadata_kind": MetadataKind.LAYER_STANDARD}
            for name in (*_UNITS, *(["defaultPrim"] if root_path == "/" else []))
        ],
    }


def _namespaces(given: Sequence[str] | None) -> list[str]:
    spaces = (
        []
        if given is None
        else guard.entries(given, "include_custom_namespaces", "a list of namespaces", ordered=False)
    )
    for at, space in enumerate(spaces):
        name = f"include_custom_namespaces[{at}]"
        parts = guard.string(space, name).split(":")
        if not all(part.isidentifier() for part in parts):
            raise ValueError(f"{name} must be identifiers joined by ':', got {space!r}")
        if parts[0] in ("omni", "usd"):
            raise ValueError(f"{name} is {space!r}, a namespace of the stage's own")
    return spaces
