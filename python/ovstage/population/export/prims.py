"""Write the prims themselves, and their types."""

from __future__ import annotations

from functools import reduce

from pxr import Sdf  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode
from ovstage.population.export.draft import Draft, failure, placed
from ovstage.population.export.holdings import Prim
from ovstage.population.export.rules import ExportProjection, LayerMode, PrimRule, RuleFlag
from ovstage.population.export.selection import is_type

__all__ = ["author_default_prim", "author_prims"]


def author_prims(draft: Draft) -> None:
    """Write the prims themselves: those of rules, all selected ones of a typed export, and their types."""
    own: dict[str, str] = {}
    for rule in draft.options.prim_rules:
        covered = [prim for prim in draft.prims.values() if rule.covers(prim.path)]
        if rule.has(RuleFlag.REQUIRED) and not covered:
            raise failure(ErrorCode.NOT_FOUND, f"the required prim rule for {rule.path!r} matched no selected prim")
        for prim in covered:
            own[prim.path] = _typed(draft, prim, rule)
    if draft.options.projection == ExportProjection.SCHEMA_DECLARED:
        for prim in draft.prims.values():
            own.setdefault(prim.path, prim.usd_type)
    for path in own:
        draft.spec(draft.by_path[path])
    draft.report["prims_exported"] += len(own)
    if draft.options.layer_mode == LayerMode.DEF:
        for path in list(draft.touched):
            _define(draft, path, own)


def author_default_prim(draft: Draft) -> None:
    """Let a typed export of a subtree say what a reference to it means, unless the layer says so already."""
    options = draft.options
    if options.projection != ExportProjection.SCHEMA_DECLARED or options.layer_mode != LayerMode.DEF:
        return
    paths = [Sdf.Path(prim.path) for prim in draft.prims.values()]
    if not paths or draft.layer.HasDefaultPrim():
        return
    root = reduce(Sdf.Path.GetCommonPrefix, paths)
    if root in paths:
        draft.layer.defaultPrim = str(root).removeprefix("/")


def _typed(draft: Draft, prim: Prim, rule: PrimRule) -> str:
    """The type that a rule gives a prim; one that USD lacks may go into its custom data instead."""
    name = rule.usd_type_name or prim.usd_type
    if name and not is_type(name) and rule.unknown_type_metadata_key:
        spec = draft.spec(prim)
        spec.SetInfo("customData", placed(spec.GetInfo("customData"), rule.unknown_type_metadata_key, name))
        return ""
    return name


def _define(draft: Draft, path: str, types: dict[str, str]) -> None:
    """Define a prim, and above it whatever is not defined yet: an over above it would hide it."""
    for each in Sdf.Path(path).GetPrefixes():
        spec = draft.layer.GetPrimAtPath(each)
        if spec.specifier != Sdf.SpecifierDef:
            known = draft.by_path.get(str(each))
            spec.specifier = Sdf.SpecifierDef
            name = types.get(str(each)) or draft.types.get(str(each)) or (known.usd_type if known else "")
            if name and not Sdf.Path.IsValidIdentifier(name):
                raise failure(
                    ErrorCode.INVALID_ARGUMENT,
                    f"USD takes no type of the name {name!r}, which is that of {each}: give another one with a prim "
                    "rule",
                )
            if name:
                spec.typeName = name
