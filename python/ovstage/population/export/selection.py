"""Which prims and properties of a stage an export is about: predicates judged by what the stage itself holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pxr import Usd  # type: ignore # usd-core has no stubs

from ovstage.errors import ErrorCode, OvstageError

if TYPE_CHECKING:
    from ovstage.population.export.holdings import Prim

__all__ = ["definition", "is_bare", "is_schema", "is_type", "leaves_open", "prim_test", "property_test"]

_PATH = re.compile(r"/|(/[^/]+)+")  # more than USD takes: a stage may have such prims, and an export leave them out
_INSTANCE = re.escape("__INSTANCE_NAME__")


def prim_test(predicate: Any) -> Callable[[Prim], bool]:
    """A predicate of prims as a function; ``None`` selects all. A kind that needs the USD source is NOT_SUPPORTED."""
    if predicate is None:
        return lambda prim: True
    kind, strings = predicate.kind.name, predicate.strings
    if kind in _COMBINED:
        return _combined(kind, [prim_test(each) for each in predicate.subpredicates])
    if kind == "HAS_TYPE":
        return lambda prim: prim.type in strings
    if kind == "IS_A_TYPE":
        wanted = [Usd.SchemaRegistry.GetTypeFromSchemaTypeName(name) for name in strings]
        return lambda prim: any(each and _is_a(prim.usd_type, each) for each in wanted)
    if kind == "HAS_SCHEMA":
        return lambda prim: prim.type in strings or not set(strings).isdisjoint(prim.schemas)
    if kind == "HAS_APPLIED_SCHEMA":
        return lambda prim: not set(strings).isdisjoint(prim.schemas)
    if kind == "HAS_APPLIED_SCHEMA_IN_NAMESPACE":
        return lambda prim: any(_in_namespace(schema, name, itself=True) for schema in prim.schemas for name in strings)
    if kind in ("HAS_PATH", "IS_UNDER_PATH"):
        _require_paths(kind, strings)
    if kind == "HAS_PATH":
        return lambda prim: prim.path in strings
    if kind == "IS_UNDER_PATH":
        roots = tuple(path.rstrip("/") + "/" for path in strings)
        return lambda prim: prim.path in strings or prim.path.startswith(roots)
    raise _refusal("prim", kind)


def _require_paths(kind: str, paths: Iterable[str]) -> None:
    for path in paths:
        if not _PATH.fullmatch(path):
            raise OvstageError(
                ErrorCode.INVALID_ARGUMENT,
                f"PrimPredicate.{kind}({path!r}) is about no prim; pass '/' or an absolute path like '/World/A'",
            )


def property_test(predicate: Any) -> Callable[[str, bool], bool]:
    """A predicate of properties as a function of a name and of whether it is a relationship."""
    if predicate is None:
        return lambda name, relationship: True
    kind, strings = predicate.kind.name, predicate.strings
    if kind in _COMBINED:
        return _combined(kind, [property_test(each) for each in predicate.subpredicates])
    if kind == "DECLARED_BY_SCHEMA":
        patterns = [pattern for name in strings for pattern in _declared_patterns(name)]
        return lambda name, relationship: any(pattern.fullmatch(name) for pattern in patterns)
    if kind == "HAS_NAME":
        return lambda name, relationship: name in strings
    if kind == "IN_NAMESPACE":
        return lambda name, relationship: any(_in_namespace(name, each, itself=False) for each in strings)
    if kind == "IS_ATTRIBUTE":
        return lambda name, relationship: not relationship
    if kind == "IS_RELATIONSHIP":
        return lambda name, relationship: relationship
    raise _refusal("property", kind)


@lru_cache(maxsize=4096)
def definition(type_name: str, schemas: tuple[str, ...]) -> Usd.PrimDefinition:
    """What a prim of that type with those schemas declares. Names that USD does not know declare nothing."""
    registry = Usd.SchemaRegistry()
    known = [name for name in schemas if is_schema(name)]
    if known:
        return registry.BuildComposedPrimDefinition(type_name if is_type(type_name) else "", known)
    return registry.FindConcretePrimDefinition(type_name) or registry.GetEmptyPrimDefinition()


def leaves_open(type_name: str, name: str) -> bool:
    """Whether prims of that type have an attribute of that name without declaring it.

    Nodes of shading networks name their inputs and outputs as they like.
    """
    if not name.startswith(("inputs:", "outputs:")):
        return False
    nodes = map(Usd.SchemaRegistry.GetTypeFromSchemaTypeName, ("Shader", "NodeGraph"))
    return any(_is_a(type_name, node) for node in nodes)


def is_bare(prim: Prim) -> bool:
    """Whether a prim has neither type nor schemas: nothing declares what it has, so a typed export writes all of it."""
    return not prim.usd_type and not prim.schemas


def is_type(name: str) -> bool:
    """Whether USD knows that prim type."""
    return Usd.SchemaRegistry().FindConcretePrimDefinition(name) is not None


def is_schema(name: str) -> bool:
    """Whether USD knows that applied schema; an instance name may follow a colon."""
    registry = Usd.SchemaRegistry()
    base, instance = registry.GetTypeNameAndInstance(name)
    several: bool = registry.IsMultipleApplyAPISchema(base)
    return bool(registry.IsAppliedAPISchema(base)) and several == bool(instance)


_COMBINED = ("NONE", "ALL", "AND", "OR", "NOT")


def _combined(kind: str, tests: list[Callable[..., bool]]) -> Callable[..., bool]:
    return {
        "NONE": lambda *what: False,
        "ALL": lambda *what: True,
        "AND": lambda *what: all(test(*what) for test in tests),
        "OR": lambda *what: any(test(*what) for test in tests),
        "NOT": lambda *what: not tests[0](*what),
    }[kind]


def _is_a(type_name: str, wanted: Any) -> bool:
    found = Usd.SchemaRegistry.GetTypeFromSchemaTypeName(type_name)
    return bool(found) and found.IsA(wanted)


def _in_namespace(name: str, space: str, itself: bool) -> bool:
    return name.startswith(f"{space}:") or (itself and name == space)


def _declared_patterns(schema: str) -> list[re.Pattern[str]]:
    """The properties of a schema. Those of a schema that is applied under names of its own match any such name."""
    registry = Usd.SchemaRegistry()
    found = (
        registry.FindConcretePrimDefinition(schema)
        or registry.FindAbstractPrimDefinition(schema)
        or registry.FindAppliedAPIPrimDefinition(schema)
        or (registry.BuildComposedPrimDefinition("", [schema]) if is_schema(schema) else None)
    )
    names = found.GetPropertyNames() if found else []
    return [re.compile(re.escape(name).replace(_INSTANCE, "[^:]+(?::[^:]+)*")) for name in names]


def _refusal(what: str, kind: str) -> OvstageError:
    return OvstageError(
        ErrorCode.NOT_SUPPORTED,
        f"the {what} predicate {kind} asks the USD source, which an export does not have: select by type, schema, "
        f"path or name",
    )
