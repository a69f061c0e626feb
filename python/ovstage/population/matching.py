"""Predicates against the prims of a USD stage.

A predicate compiles to a function once; names that a schema declares are looked up then, not prim by prim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pxr import Usd, UsdGeom  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.predicates import Desc, PrimPredicate, PropertyPredicate
from ovstage.population.texts import applied_schemas, is_prim_path, readable, type_name

__all__ = ["PrimTest", "PropertyTest", "check", "prim_test", "property_test"]

PrimTest = Callable[[Usd.Prim], bool]
PropertyTest = Callable[[Usd.Prim, str], bool]

MOST_LEVELS, MOST_NODES = 64, 4096


def check(desc: Desc) -> None:
    """Refuse what a description says in a form that could not be meant, before anything is opened."""
    for selector in desc.selectors:
        nodes = _check_graph(selector.prim_predicate) + _check_graph(selector.property_predicate)
        if nodes > MOST_NODES:
            raise OvstageError(
                ErrorCode.NOT_SUPPORTED, f"a selector has {nodes} predicates, but at most {MOST_NODES} are followed"
            )
        for path in (*selector.prim_metadata_paths, *selector.property_metadata_paths):
            _check_metadata_path(path)
    for path in desc.stage_metadata_paths:
        _check_metadata_path(path)


def _check_graph(predicate: Any, level: int = 1) -> int:
    """The number of nodes."""
    if level > MOST_LEVELS:
        raise OvstageError(
            ErrorCode.NOT_SUPPORTED, f"predicates are nested more than {MOST_LEVELS} deep; say it with fewer levels"
        )
    if predicate.kind.name in ("HAS_PATH", "IS_UNDER_PATH"):
        for path in predicate.strings:
            if not is_prim_path(path):
                raise OvstageError(
                    ErrorCode.INVALID_ARGUMENT,
                    f"{predicate!r}: {path!r} is not the path of a prim; pass '/' or an absolute path like '/World/A'",
                )
    if predicate.kind.name == "HAS_METADATA":
        for path in predicate.strings:
            _check_metadata_path(path)
    below = [*predicate.subpredicates, *([predicate.nested] if predicate.nested else [])]
    return 1 + sum(_check_graph(part, level + 1) for part in below)


def _check_metadata_path(path: str) -> None:
    if "" in path.split(":"):
        raise OvstageError(
            ErrorCode.INVALID_ARGUMENT,
            f"metadata path {path!r} has an empty component: it is a field, then keys, joined by single colons",
        )


# --- prims ------------------------------------------------------------------------------------------------------------


def prim_test(predicate: PrimPredicate) -> PrimTest:
    """A function that says whether a prim satisfies ``predicate``."""
    name, strings = predicate.kind.name, frozenset(predicate.strings)
    parts = [prim_test(part) for part in predicate.subpredicates]
    spaces = tuple(f"{text}:" for text in strings)
    if name == "HAS_PROPERTY":
        assert predicate.nested is not None
        nested = property_test(predicate.nested)
        return lambda prim: any(nested(prim, found) for found in property_names(prim))
    return {
        "NONE": lambda prim: False,
        "ALL": lambda prim: True,
        "AND": lambda prim: all(part(prim) for part in parts),
        "OR": lambda prim: any(part(prim) for part in parts),
        "NOT": lambda prim: not parts[0](prim),
        "HAS_PARENT": lambda prim: any(parts[0](parent) for parent in _ancestors(prim)[:1]),
        "HAS_ANCESTOR": lambda prim: any(parts[0](parent) for parent in _ancestors(prim)),
        "HAS_TYPE": lambda prim: type_name(prim) in strings,
        "IS_A_TYPE": lambda prim: any(prim.IsA(text) for text in strings),
        "HAS_SCHEMA": lambda prim: type_name(prim) in strings or not strings.isdisjoint(applied_schemas(prim)),
        "HAS_APPLIED_SCHEMA": lambda prim: not strings.isdisjoint(applied_schemas(prim)),
        "HAS_APPLIED_SCHEMA_IN_NAMESPACE": lambda prim: any(
            f"{name}:".startswith(spaces) for name in applied_schemas(prim)
        ),
        "HAS_PATH": lambda prim: not prim.IsInstanceProxy() and str(prim.GetPath()) in strings,
        "IS_UNDER_PATH": lambda prim: not prim.IsInstanceProxy() and _is_under(str(prim.GetPath()), strings),
        "HAS_KIND": lambda prim: readable(Usd.ModelAPI(prim).GetKind, None) in strings,
        "HAS_PURPOSE": lambda prim: (
            prim.IsA("Imageable") and readable(UsdGeom.Imageable(prim).ComputePurpose, None) in strings
        ),
        "HAS_METADATA": lambda prim: any(_has_metadata(prim, path) for path in strings),
    }[name]


def property_names(prim: Usd.Prim) -> list[str]:
    """What is authored, and what a schema declares with a fallback."""
    definition = prim.GetPrimDefinition()
    authored: list[str] = prim.GetAuthoredPropertyNames()
    declared = (name for name in definition.GetPropertyNames() if name not in authored)
    return authored + [name for name in declared if definition.GetAttributeFallbackValue(name) is not None]


def _has_metadata(thing: Usd.Object, path: str) -> bool:
    """Whether a metadata path is authored on a prim or a property."""
    field, _, keys = path.partition(":")
    if keys:
        return bool(thing.HasAuthoredMetadataDictKey(field, keys))
    return bool(thing.HasAuthoredMetadata(field))


def _ancestors(prim: Usd.Prim) -> list[Usd.Prim]:
    """From the parent upwards, without the pseudo-root."""
    found = []
    parent = prim.GetParent()
    while parent and not parent.IsPseudoRoot():
        found.append(parent)
        parent = parent.GetParent()
    return found


def _is_under(path: str, roots: frozenset[str]) -> bool:
    while path:
        if path in roots:
            return True
        path = path.rpartition("/")[0]
    return "/" in roots


# --- properties -------------------------------------------------------------------------------------------------------


def property_test(predicate: PropertyPredicate) -> PropertyTest:
    """A function that says whether a property of a prim, given by name, satisfies ``predicate``."""
    strings = frozenset(predicate.strings)
    parts = [property_test(part) for part in predicate.subpredicates]
    declared = _declared_names(strings) if predicate.kind.name == "DECLARED_BY_SCHEMA" else re.compile("(?!)")
    inside = tuple(text + ":" for text in strings)
    return {
        "NONE": lambda prim, name: False,
        "ALL": lambda prim, name: True,
        "AND": lambda prim, name: all(part(prim, name) for part in parts),
        "OR": lambda prim, name: any(part(prim, name) for part in parts),
        "NOT": lambda prim, name: not parts[0](prim, name),
        "DECLARED_BY_SCHEMA": lambda prim, name: declared.fullmatch(name) is not None,
        "HAS_NAME": lambda prim, name: name in strings,
        "IN_NAMESPACE": lambda prim, name: name.startswith(inside),
        "HAS_METADATA": lambda prim, name: any(_has_metadata(prim.GetProperty(name), path) for path in strings),
        "IS_ATTRIBUTE": lambda prim, name: isinstance(prim.GetProperty(name), Usd.Attribute),
        "IS_RELATIONSHIP": lambda prim, name: isinstance(prim.GetProperty(name), Usd.Relationship),
        "IS_CUSTOM": lambda prim, name: prim.GetProperty(name).IsCustom(),
        "IS_AUTHORED": lambda prim, name: prim.GetProperty(name).IsAuthored(),
    }[predicate.kind.name]


def _declared_names(schemas: frozenset[str]) -> re.Pattern[str]:
    """What the schemas declare. A schema that is applied several times declares its names for every instance."""
    registry = Usd.SchemaRegistry()
    names: list[str] = []
    for schema in schemas:
        family, instance = registry.GetTypeNameAndInstance(schema)
        definition = (
            registry.FindConcretePrimDefinition(family)
            or registry.FindAbstractPrimDefinition(family)
            or registry.FindAppliedAPIPrimDefinition(family)
        )
        for name in definition.GetPropertyNames() if definition else ():
            wanted = re.escape(instance) if instance else r"[^:]+(?::[^:]+)*"
            names.append(re.escape(name).replace("__INSTANCE_NAME__", wanted))
    return re.compile("|".join(names) or "(?!)")
