"""Plain values that go into calls and come out of them. None of them holds a native resource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, SupportsIndex, TypeAlias

from ovstage import guard
from ovstage.enums import AttributeSemantic, FilterOp, HierarchyComputationModel
from ovstage.layout import FilterStruct, OrdinalRangeStruct, PredicateStruct, String, StringOrToken

__all__ = [
    "Attribute",
    "AttributeMeta",
    "Filter",
    "HierarchyComputationModelDesc",
    "HierarchyItem",
    "HierarchyResult",
    "OrdinalRange",
    "Predicate",
    "QueryResult",
    "StageConfig",
    "WriteDesc",
]


@dataclass
class StageConfig:
    """Settings of a stage. ``None`` leaves a setting to the process.

    ``runtime_default_hierarchy_computation_model`` is shared by the whole process: a stage that asks for another model
    than a live one is refused with ``INVALID_ARGUMENT``.

    ``history_ordinals`` belongs to the stage: values stay readable as of the last so many sealed ordinals, N with
    ``floor - history_ordinals < N <= floor``. 0 and 1 keep the newest sealed values only. What is kept of an
    ordinal is what it changed.

    ``guard_reads`` is for debugging: code that writes to sealed values, as PyTorch and Warp let it do through a view of
    a read, ends the process there, with a sentence and the stacks of ``faulthandler``, which it switches on. Values
    that readers hold are read-only pages. Each buffer takes at least a page and two system calls, none is used
    again, and tensors that are transferred are copied; Linux has some 65,000 mappings per process.

    ``interface`` is the interface level that the stage speaks, ``"0.2"`` or ``"0.3"``: at 0.3 the components of a value
    are axes of the tensors that groups show, ``(N, 3)`` and ``(N, 4, 4)``, at 0.2 they are lanes. Writes are the same.
    Without it the environment variable ``OVSTAGE_INTERFACE`` says, without that it is 0.2.
    """

    runtime_default_hierarchy_computation_model: HierarchyComputationModel | int | None = None
    history_ordinals: int = 0
    guard_reads: bool = False
    interface: str | None = None

    def hierarchy_model(self) -> int | None:
        """The model to ask the process for, judged: ``INVALID`` and numbers that are no model are a ``ValueError``."""
        name = "runtime_default_hierarchy_computation_model"
        if self.runtime_default_hierarchy_computation_model is None:
            return None
        model = guard.member(self.runtime_default_hierarchy_computation_model, HierarchyComputationModel, name)
        if model is HierarchyComputationModel.INVALID:
            raise ValueError(f"{name} must name a model, got INVALID; leave it out for the default")
        return model


@dataclass
class OrdinalRange:
    """Which ordinals a read asks for. Note the order of the fields: the end comes first."""

    end_ordinal: int
    start_ordinal: int | None = None

    @classmethod
    def latest(cls, end_ordinal: int) -> OrdinalRange:
        """The newest sealed value of each key at or below ``end_ordinal``."""
        return cls(guard.uint64(end_ordinal, "end_ordinal"))

    @classmethod
    def between(cls, start_ordinal: int, end_ordinal: int) -> OrdinalRange:
        """The keys that changed at ``start_ordinal`` .. ``end_ordinal``, both included."""
        chosen = cls(guard.ordinal(end_ordinal, "end_ordinal"), guard.ordinal(start_ordinal, "start_ordinal"))
        chosen.bounds()
        return chosen

    def bounds(self) -> tuple[int | None, int]:
        """Start (``None`` for a latest read) and end, judged anew: the fields may have been assigned since."""
        end = guard.ordinal(self.end_ordinal, "end_ordinal")
        if self.start_ordinal is None:
            return None, end
        start = guard.ordinal(self.start_ordinal, "start_ordinal")
        if start > end:
            raise ValueError(f"start_ordinal {start} must not exceed end_ordinal {end}")
        return start, end

    def to_c(self) -> OrdinalRangeStruct:
        """The range as the C interface has it."""
        start, end = self.bounds()
        return OrdinalRangeStruct(start or 0, end, start is not None)


@dataclass
class Predicate:
    """One condition of a filter: an attribute (name or token), how to compare, and the values to compare with.

    ``values`` are strings, or numbers, which are meant as their text: paths for ``usd-path``, ``usd-parent`` and
    ``usd-children``, texts of tokens for attributes that hold tokens, numbers for numeric ones. ``HAS`` takes none,
    ``LT``, ``LE``, ``GT`` and ``GE`` take one, the others at least one, any of which suffices.
    """

    attribute: int | str
    op: FilterOp | int
    values: Sequence[str | float] = ()

    def condition(self) -> tuple[int | str, int, list[str]]:
        """What the extension takes; judged when a query is made of it, since fields can be assigned at any time."""
        guard.unmasked(self.values, "values")
        values = guard.entries(self.values, "values", "a list of strings or numbers", ordered=False)
        texts = [_text(value, f"values[{at}]") for at, value in enumerate(values)]
        return self.attribute, guard.member(self.op, FilterOp, "op"), texts

    def to_c(self) -> PredicateStruct:
        """The condition as the C interface has it."""
        attribute, op, texts = self.condition()
        name = StringOrToken(0, _string(attribute)) if isinstance(attribute, str) else StringOrToken(attribute)
        return PredicateStruct(name, op, (String * len(texts))(*map(_string, texts)), len(texts))


class Filter:
    """The prims for which every one of some conditions holds. A condition is a ``Predicate``, or a ``Filter`` itself.

    ``Filter([a, b])`` means a and b, ``Filter.any_of([a, b])`` a or b, ``Filter.none_of([a])`` not a. A prim without
    the attribute of a predicate does not meet it, and meets its opposite. ``Filter([])`` is met by every prim; the
    other two need a condition.
    """

    def __init__(self, predicates: Iterable[Predicate | Filter]) -> None:
        self.predicates: list[Predicate | Filter] = guard.entries(predicates, "predicates", "a list of Predicates")
        self._match = _ALL

    @classmethod
    def any_of(cls, predicates: Iterable[Predicate | Filter]) -> Self:
        """The prims for which at least one of the conditions holds."""
        return cls._of(_ANY, predicates)

    @classmethod
    def none_of(cls, predicates: Iterable[Predicate | Filter]) -> Self:
        """The prims for which none of the conditions holds."""
        return cls._of(_NONE, predicates)

    @classmethod
    def _of(cls, match: int, predicates: Iterable[Predicate | Filter]) -> Self:
        made = cls(predicates)
        made._match = match
        return made

    def __repr__(self) -> str:
        return f"Filter{_MADE_BY[self._match]}({self.predicates!r})"

    def condition(self, level: int = 0) -> Condition:
        """What the extension takes, judged when a query is made of it."""
        if level == _MOST_LEVELS:
            raise ValueError(f"filters lie more than {_MOST_LEVELS} levels deep in each other")
        return self._match, [_condition(item, at, level) for at, item in enumerate(self.predicates)]

    def to_c(self) -> tuple[FilterStruct, list[object]]:
        """The filter as the C interface has it, and what it points into: keep the list for as long as the structure.

        The structure knows predicates that hold together and nothing else: ``ValueError`` for ``any_of``, ``none_of``
        and filters in filters.
        """
        self.condition()
        plain = [item for item in self.predicates if isinstance(item, Predicate)]
        if self._match != _ALL or len(plain) < len(self.predicates):
            raise ValueError(f"to_c takes a Filter of Predicates that all hold, got {self!r}: give it to Stage.query")
        predicates = (PredicateStruct * len(plain))(*(item.to_c() for item in plain))
        return FilterStruct(predicates, len(plain)), [predicates]


Condition: TypeAlias = "tuple[int, list[Condition | tuple[int | str, int, list[str]]]]"

_ALL, _ANY, _NONE = 1, 2, 3  # as in C
_MADE_BY = {_ALL: "", _ANY: ".any_of", _NONE: ".none_of"}
_MOST_LEVELS = 64


def _condition(item: object, at: int, level: int) -> Condition | tuple[int | str, int, list[str]]:
    if isinstance(item, Filter):
        return item.condition(level + 1)
    if isinstance(item, Predicate):
        return item.condition()
    raise TypeError(f"a Filter holds Predicates and Filters, got {item!r} as predicates[{at}]")


def _string(text: str) -> String:
    encoded = text.encode()
    return String(encoded, len(encoded))


def _text(value: object, name: str) -> str:
    """Anything that is meant as its text, like a path object or a number; not what has none of its own."""
    if value is None or isinstance(value, (bytes, bytearray, list, tuple, set, frozenset, dict)):
        raise TypeError(f"{name} must be a string or a number, got {value!r}")
    return str(value)


class Producer(Protocol):
    """What exports itself by DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Numbers: TypeAlias = "Iterable[SupportsIndex] | Producer"
"""A list or a one-dimensional array of numbers, or of truth values where a mask is meant."""


@dataclass
class WriteDesc:
    """One column of ``Stage.write_attributes``; the fields mean what the arguments of ``write_attribute`` mean.

    It may be kept and written again every tick over memory whose content changes: bytes are taken when a write runs.
    Not so with ``transfer=True``, which gives the memory away.
    """

    attribute: int | str
    tensors: Any
    is_array: bool
    index_map: Numbers | None = None
    mask: Numbers | None = None
    count: int | None = None
    cuda_event: int | None = None
    cuda_stream: int | None = None
    semantic: AttributeSemantic | int = AttributeSemantic.NONE
    transfer: bool = False
    lanes: int | None = None
    type_name: str | None = None


@dataclass
class QueryResult:
    """What a query matched: the tokens of the attributes found, the number of prims, and the query's own handle."""

    attributes: list[int]
    total_prim_count: int
    all_handle: int


@dataclass(frozen=True)
class Attribute:
    """What a stage holds under one name with one type. A name has several where prims have it with several types."""

    name: str
    type_name: str
    """What its values are called where they come from, such as the USD type ``color3f``; empty: it is not known."""
    semantic: AttributeSemantic
    """What the values mean."""
    dtype: str
    """The element type, such as ``float32``."""
    lanes: int
    """How many elements make a value, or an element of its array."""
    is_array: bool
    """Whether each prim has an array of them."""
    prim_count: int
    """How many prims have a value, sealed or not."""
    write_floor: int
    """The newest sealed ordinal."""
    last_ordinal: int = field(default=0, compare=False)
    """The ordinal of the newest write or delete, sealed or not; 0 where a table says it."""
    bytes: int = field(default=0, compare=False)
    """Memory of the values, with buffers that are kept for the next write; 0 where a table says it."""


class _MetaFields(Protocol):
    @property
    def attribute_write_floor_ordinal(self) -> SupportsIndex: ...
    @property
    def layout_generation(self) -> SupportsIndex: ...


class AttributeMeta:
    """State of a column in the snapshot that a group was served from.

    ``layout_generation`` rises exactly when rows of the column are added or removed: while it stays the same, every
    prim keeps its row.
    """

    __slots__ = ("attribute_write_floor_ordinal", "layout_generation")

    def __init__(self, raw: _MetaFields) -> None:
        self.attribute_write_floor_ordinal = int(raw.attribute_write_floor_ordinal)
        self.layout_generation = int(raw.layout_generation)

    def __repr__(self) -> str:
        return (
            f"AttributeMeta(attribute_write_floor_ordinal={self.attribute_write_floor_ordinal}, "
            f"layout_generation={self.layout_generation})"
        )


@dataclass
class HierarchyItem:
    """The relatives of one prim, in the order of the path list."""

    status: int
    paths: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the prim could be looked up."""
        return self.status == 0


@dataclass
class HierarchyResult:
    """The relatives of every prim of a path list at one ordinal."""

    ordinal: int
    items: list[HierarchyItem]

    @property
    def input_count(self) -> int:
        """How many prims were asked about."""
        return len(self.items)

    def item_paths(self, index: int) -> tuple[str, ...]:
        """The relatives of the prim at ``index`` of the path list."""
        return self.items[index].paths


@dataclass
class HierarchyComputationModelDesc:
    """A way to compute world transforms that this build offers."""

    model_id: int
    name: str
    description: str
