"""What an export shall write: its options, judged once, before anything is read or written.

The rules may be given as dicts whose keys are the field names of the classes below; missing keys take the defaults,
unknown ones are ignored. Everything here is plain data and needs no USD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from fnmatch import fnmatchcase
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, get_type_hints

from ovstage import guard
from ovstage.errors import ErrorCode, OvstageError
from ovstage.population.predicates import PrimPredicate, PropertyPredicate

if TYPE_CHECKING:
    from ovstage.population.export.holdings import Prim

__all__ = [
    "ApiSchemaRule",
    "AttributeRule",
    "ExportDestinationMode",
    "ExportOptions",
    "ExportProjection",
    "LayerMode",
    "MetadataKind",
    "MetadataRule",
    "NameMatch",
    "Options",
    "PathMatch",
    "PrimRule",
    "PropertyKind",
    "PropertyRule",
    "RuleFlag",
    "Selection",
    "SourceApiSchemaPolicy",
    "TransformPolicy",
    "UnknownMetadataPolicy",
    "options",
    "takes_options",
]

MOST_RULES = 4096
"""How many rules of one kind an export takes."""


class ExportDestinationMode(IntEnum):
    """What a destination starts with: nothing, or the layer that is stored under its identifier."""

    EMPTY = 0
    OPEN_EXISTING = 1


class SourceApiSchemaPolicy(IntEnum):
    """Which applied schemas are written: those that rules name, or also those that the stage records for a prim."""

    EXPLICIT_ONLY = 0
    APPLY_RECORDED = 1


class ExportProjection(IntEnum):
    """Which properties are written: those that rules name, or also those that a prim's schemas declare."""

    EXPLICIT_RULES = 0
    SCHEMA_DECLARED = 1


class Selection(IntEnum):
    """Which values are written: all that the predicates select, or of these what changed since an ordinal."""

    EXPLICIT_PREDICATE = 0
    CHANGED_PROPERTIES_SINCE_ORDINAL = 1


class LayerMode(IntEnum):
    """Whether prims are written as overs of a scene elsewhere, or defined with their types."""

    OVER = 0
    DEF = 1


class TransformPolicy(IntEnum):
    """How a local matrix is written: as translate, orient and scale where that is exact, not at all, as a matrix."""

    USD_XFORM_OP = 0
    NONE = 1
    USD_MATRIX_OP = 2


class UnknownMetadataPolicy(IntEnum):
    """What happens to an applied schema that USD does not know: left out, kept in customData, or a failure."""

    DROP = 0
    PRESERVE = 1
    FAIL = 2


class PathMatch(IntEnum):
    """Whether a rule's path means one prim, or that prim and everything below it."""

    EXACT = 0
    PREFIX = 1


class NameMatch(IntEnum):
    """Whether a rule's name means one attribute, or all that match it as a pattern with ``*``, ``?`` and ``[...]``."""

    EXACT = 0
    GLOB = 1


class PropertyKind(IntEnum):
    """What a column of paths becomes. There is no default on purpose."""

    RELATIONSHIP = 1
    CONNECTION = 2
    MATERIAL_BINDING = 3


class MetadataKind(IntEnum):
    """Where metadata goes: a prim's field, the layer's custom data, a prim's references, a field of the layer."""

    PRIM = 0
    LAYER_CUSTOM_DATA = 1
    REFERENCES = 2
    LAYER_STANDARD = 3


class RuleFlag(IntEnum):
    """What a rule may and must do; flags are added up.

    ``INFER_CUSTOM_TYPE``: a column whose USD type nothing declares gets the type that its dtype and role suggest.
    ``REQUIRED``: the export fails when the rule writes nothing or a value cannot be written, instead of counting.
    ``DERIVED_ALLOWED``: columns that are computed (world matrices) may be named as sources.
    ``EXPORT_DEFAULT_VALUE``: values are written as default opinions, which they always are.
    """

    NONE = 0
    EXPORT_DEFAULT_VALUE = 1
    DERIVED_ALLOWED = 2
    INFER_CUSTOM_TYPE = 8
    REQUIRED = 16


@dataclass(frozen=True)
class Rule:
    """What all rules share: the prims they are about (an empty path: all selected ones) and their flags."""

    path: str = ""
    path_match: PathMatch = PathMatch.EXACT
    flags: int = 0

    def covers(self, path: str) -> bool:
        """Whether the rule is about that prim."""
        if not self.path or path == self.path:
            return True
        root = self.path.rstrip("/") + "/"
        return self.path_match == PathMatch.PREFIX and path.startswith(root)

    def has(self, flag: RuleFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & flag)


@dataclass(frozen=True)
class AttributeRule(Rule):
    """Write an attribute, under another name or as another type if wanted."""

    source_attribute_name: str = ""
    source_attribute_name_match: NameMatch = NameMatch.EXACT
    destination_attribute_name: str = ""
    usd_type_name: str = ""
    required_schema_name: str = ""

    def means(self, prim: Prim) -> bool:
        """Whether the rule is about that prim, its type and its schemas included."""
        schema = self.required_schema_name
        return self.covers(prim.path) and (not schema or schema in (prim.type, prim.usd_type) or schema in prim.schemas)

    def keeps(self, name: str) -> bool:
        """Whether the rule writes that column, under its own name."""
        pattern = self.source_attribute_name
        as_pattern = self.source_attribute_name_match == NameMatch.GLOB
        named = fnmatchcase(name, pattern) if as_pattern else name == pattern
        return named and self.destination_attribute_name in ("", name)


@dataclass(frozen=True)
class PrimRule(Rule):
    """Write the prims themselves, with a type in DEF mode."""

    usd_type_name: str = ""
    unknown_type_metadata_key: str = ""


@dataclass(frozen=True)
class ApiSchemaRule(Rule):
    """Apply a schema; the instance name belongs to schemas that are applied several times."""

    schema_name: str = ""
    instance_name: str = ""


@dataclass(frozen=True)
class PropertyRule(Rule):
    """Write a column of paths as a relationship or as connections."""

    source_property_name: str = ""
    destination_property_name: str = ""
    usd_type_name: str = ""
    property_kind: PropertyKind = PropertyKind.RELATIONSHIP


@dataclass(frozen=True)
class MetadataRule(Rule):
    """Write a metadata column; its name may be given with or without ``usd-metadata:``."""

    source_metadata_name: str = ""
    destination_metadata_name: str = ""
    metadata_kind: MetadataKind = MetadataKind.PRIM


@dataclass(frozen=True)
class Options:
    """A whole export. Predicates of ``None`` select everything."""

    ordinal: int = 0
    since_ordinal: int = 0
    selection: Selection = Selection.EXPLICIT_PREDICATE
    layer_mode: LayerMode = LayerMode.OVER
    transform_policy: TransformPolicy = TransformPolicy.USD_XFORM_OP
    unknown_metadata_policy: UnknownMetadataPolicy = UnknownMetadataPolicy.DROP
    source_api_schema_policy: SourceApiSchemaPolicy = SourceApiSchemaPolicy.EXPLICIT_ONLY
    projection: ExportProjection = ExportProjection.EXPLICIT_RULES
    prim_predicate: Any = None
    property_predicate: Any = None
    prim_rules: tuple[PrimRule, ...] = field(default=())
    api_schema_rules: tuple[ApiSchemaRule, ...] = field(default=())
    attribute_rules: tuple[AttributeRule, ...] = field(default=())
    property_rules: tuple[PropertyRule, ...] = field(default=())
    metadata_rules: tuple[MetadataRule, ...] = field(default=())


class ExportOptions(TypedDict, total=False):
    """The same as keywords, as a caller may give them."""

    since_ordinal: int
    selection: Selection | int
    layer_mode: LayerMode | int
    transform_policy: TransformPolicy | int
    unknown_metadata_policy: UnknownMetadataPolicy | int
    source_api_schema_policy: SourceApiSchemaPolicy | int
    projection: ExportProjection | int
    prim_predicate: PrimPredicate | None
    property_predicate: PropertyPredicate | None
    prim_rules: Iterable[PrimRule | Mapping[str, Any]] | None
    api_schema_rules: Iterable[ApiSchemaRule | Mapping[str, Any]] | None
    attribute_rules: Iterable[AttributeRule | Mapping[str, Any] | str] | None
    property_rules: Iterable[PropertyRule | Mapping[str, Any]] | None
    metadata_rules: Iterable[MetadataRule | Mapping[str, Any]] | None


Kind = TypeVar("Kind", bound=Rule)
Function = TypeVar("Function", bound=Callable[..., Any])

_TABLES = {
    "prim_rules": PrimRule,
    "api_schema_rules": ApiSchemaRule,
    "attribute_rules": AttributeRule,
    "property_rules": PropertyRule,
    "metadata_rules": MetadataRule,
}


def takes_options(call: Function) -> Function:
    """Let the signature of a call show the options that its ``**options`` stands for, with their defaults."""
    shown = signature(call)
    own = [each for each in shown.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    defaults = Options()
    accepted = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(defaults, name), annotation=kind.__forward_arg__)
        for name, kind in ExportOptions.__annotations__.items()
    ]
    call.__signature__ = shown.replace(parameters=[*own, *accepted])  # type: ignore[attr-defined]
    return call


def options(ordinal: object, given: Mapping[str, Any]) -> Options:
    """The options of a call. A number that no enum knows is a ``ValueError``, as is a property rule without a kind."""
    hints = get_type_hints(Options)
    judged: dict[str, Any] = {"ordinal": guard.ordinal(ordinal)}
    for name, value in given.items():
        if name not in hints or name == "ordinal":
            known = ", ".join(sorted(set(hints) - {"ordinal"}))
            raise TypeError(f"an export has no option {name!r}; it has {known}")
        if name in _TABLES:
            judged[name] = _rules(_TABLES[name], value, name)
        elif name == "since_ordinal":
            judged[name] = guard.ordinal(value, name)
        elif name.endswith("_predicate"):
            judged[name] = _predicate(value, name)
        else:
            judged[name] = guard.member(value, hints[name], name)
    made = Options(**judged)
    if made.selection == Selection.CHANGED_PROPERTIES_SINCE_ORDINAL and made.since_ordinal > made.ordinal:
        raise ValueError(f"since_ordinal {made.since_ordinal} lies behind ordinal {made.ordinal}")
    return made


def _predicate(value: object, name: str) -> object:
    kind = PrimPredicate if name == "prim_predicate" else PropertyPredicate
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__} or None, got {value!r}")
    return value


def _rules(kind: type[Kind], given: Iterable[Any] | None, name: str) -> tuple[Kind, ...]:
    if isinstance(given, Mapping):
        raise TypeError(f"{name} must be a list of rules, got a single one; write [{given!r}]")
    items = [] if given is None else guard.entries(given, name, "a list of rules")
    if len(items) > MOST_RULES:
        raise OvstageError(ErrorCode.INVALID_ARGUMENT, f"{name} has {len(items)} rules, the most is {MOST_RULES}")
    return tuple(_rule(kind, item, f"{name}[{at}]") for at, item in enumerate(items))


def _rule(kind: type[Kind], item: Any, name: str) -> Kind:
    if isinstance(item, kind):
        return item
    if isinstance(item, str) and kind is AttributeRule:
        item = {"source_attribute_name": item}
    if not isinstance(item, Mapping):
        item = {}
    if kind is PropertyRule and "property_kind" not in item:
        raise ValueError(f"{name} needs a property_kind: {', '.join(member.name for member in PropertyKind)}")
    hints = get_type_hints(kind)
    if item.get("path") and not guard.string(item["path"], f"{name}['path']").startswith("/"):
        text = f"{name}['path'] must be '/' or the absolute path of a prim, got {item['path']!r}"
        raise OvstageError(ErrorCode.INVALID_ARGUMENT, text)
    judged = {
        entry.name: _field(hints[entry.name], item[entry.name], f"{name}[{entry.name!r}]")
        for entry in fields(kind)
        if item.get(entry.name) is not None
    }
    return kind(**judged)


def _field(kind: type, value: object, name: str) -> Any:
    if kind is str:
        return guard.string(value, name)
    if kind is int:
        flags = guard.uint64(value, name)
        if flags >> 32:
            raise ValueError(f"{name} must fit in uint32, got {flags}")
        return flags
    return guard.member(value, kind, name)
