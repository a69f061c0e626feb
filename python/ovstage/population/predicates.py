"""Which prims of a USD scene to populate, and which of their properties: descriptions made of predicates.

A ``Desc`` names domains and ``Selector``s; a selector pairs a predicate over prims with one over their properties.
Several strings in one predicate mean any of them. All objects are immutable and may be shared. Unknown schema and type
names match nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NoReturn, Self

from ovstage import guard
from ovstage.enums import PopulationDomain

__all__ = [
    "Desc",
    "PrimPredicate",
    "PrimPredicateKind",
    "PropertyPredicate",
    "PropertyPredicateKind",
    "Selector",
]


class PrimPredicateKind(IntEnum):
    """What a ``PrimPredicate`` asks."""

    NONE = 0
    ALL = 1
    AND = 2
    OR = 3
    NOT = 4
    HAS_PARENT = 5
    HAS_ANCESTOR = 6
    HAS_PROPERTY = 7
    HAS_TYPE = 8
    IS_A_TYPE = 9
    HAS_SCHEMA = 10
    HAS_APPLIED_SCHEMA = 11
    HAS_APPLIED_SCHEMA_IN_NAMESPACE = 12
    HAS_PATH = 13
    IS_UNDER_PATH = 14
    HAS_KIND = 15
    HAS_PURPOSE = 16
    HAS_METADATA = 17


class PropertyPredicateKind(IntEnum):
    """What a ``PropertyPredicate`` asks."""

    NONE = 0
    ALL = 1
    AND = 2
    OR = 3
    NOT = 4
    DECLARED_BY_SCHEMA = 5
    HAS_NAME = 6
    IN_NAMESPACE = 7
    HAS_METADATA = 8
    IS_ATTRIBUTE = 9
    IS_RELATIONSHIP = 10
    IS_CUSTOM = 11
    IS_AUTHORED = 12


class _Immutable:
    """Fields are set once, by ``_set`` in the constructor."""

    __slots__ = ()

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be set; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be deleted")


class _Predicate(_Immutable):
    """What the two kinds of predicates share: a kind, and exactly the operands that it takes."""

    __slots__ = ("kind", "nested", "strings", "subpredicates")

    kind: Any
    strings: tuple[str, ...]
    subpredicates: tuple[Any, ...]
    nested: PropertyPredicate | None

    _kinds: type[IntEnum]
    _combining: frozenset[int]
    _single: frozenset[int]
    _texts: frozenset[int]

    def __init__(
        self,
        kind: IntEnum | int,
        strings: Iterable[str] = (),
        subpredicates: Iterable[Any] = (),
        nested: PropertyPredicate | None = None,
    ) -> None:
        cls = type(self)
        if isinstance(kind, IntEnum) and not isinstance(kind, self._kinds):
            raise TypeError(f"kind must be a {self._kinds.__name__}, got {kind!r}")
        chosen = guard.member(kind, self._kinds, "kind")
        texts = _texts(strings, f"{cls.__name__}.{chosen.name}", needed=False)
        parts = _parts(subpredicates, cls, chosen.name, needed=False)
        if nested is not None and not isinstance(nested, PropertyPredicate):
            raise TypeError(f"nested must be a PropertyPredicate, got {nested!r}")
        got = [name for name, given in (("strings", texts), ("subpredicates", parts), ("nested", nested)) if given]
        takes = self._slot(chosen)
        if got != ([takes] if takes else []) or (chosen in self._single and len(parts) != 1):
            one = "one of " if chosen in self._single else ""
            raise TypeError(
                f"{cls.__name__}.{chosen.name} takes {one + takes if takes else 'no operands'}, "
                f"got {' and '.join(got) or 'none'}{f' ({len(parts)})' if parts else ''}"
            )
        self._set(kind=chosen, strings=texts, subpredicates=parts, nested=nested)

    @classmethod
    def _slot(cls, kind: IntEnum) -> str:
        if kind in cls._texts:
            return "strings"
        if kind in cls._combining or kind in cls._single:
            return "subpredicates"
        return "nested" if kind is PrimPredicateKind.HAS_PROPERTY else ""

    def __repr__(self) -> str:
        details = ", ".join([*map(repr, self.strings), *map(repr, self.subpredicates)])
        return f"{type(self).__name__}.{self.kind.name}({details or (repr(self.nested) if self.nested else '')})"

    @classmethod
    def _of_texts(cls, kind: IntEnum, texts: tuple[str, ...]) -> Self:
        return cls(kind, strings=_texts(texts, f"{cls.__name__}.{kind.name}", needed=True))

    @classmethod
    def _of_parts(cls, kind: IntEnum, parts: tuple[Any, ...]) -> Self:
        return cls(kind, subpredicates=_parts(parts, cls, kind.name, needed=True))


class PropertyPredicate(_Predicate):
    """A condition on one property of a prim."""

    __slots__ = ()

    _kinds = PropertyPredicateKind
    _combining = frozenset({PropertyPredicateKind.AND, PropertyPredicateKind.OR})
    _single = frozenset({PropertyPredicateKind.NOT})
    _texts = frozenset({5, 6, 7, 8})

    @staticmethod
    def none() -> PropertyPredicate:
        """No property."""
        return PropertyPredicate(PropertyPredicateKind.NONE)

    @staticmethod
    def all() -> PropertyPredicate:
        """Every property."""
        return PropertyPredicate(PropertyPredicateKind.ALL)

    @staticmethod
    def and_(*predicates: PropertyPredicate) -> PropertyPredicate:
        """All of them hold."""
        return PropertyPredicate._of_parts(PropertyPredicateKind.AND, predicates)

    @staticmethod
    def or_(*predicates: PropertyPredicate) -> PropertyPredicate:
        """Any of them holds."""
        return PropertyPredicate._of_parts(PropertyPredicateKind.OR, predicates)

    @staticmethod
    def not_(predicate: PropertyPredicate) -> PropertyPredicate:
        """It does not hold."""
        return PropertyPredicate._of_parts(PropertyPredicateKind.NOT, (predicate,))

    @staticmethod
    def declared_by_schema(*names: str) -> PropertyPredicate:
        """One of the schemas declares a property of this name, whether the prim applies it or not."""
        return PropertyPredicate._of_texts(PropertyPredicateKind.DECLARED_BY_SCHEMA, names)

    @staticmethod
    def has_name(*names: str) -> PropertyPredicate:
        """The name is one of these."""
        return PropertyPredicate._of_texts(PropertyPredicateKind.HAS_NAME, names)

    @staticmethod
    def in_namespace(*namespaces: str) -> PropertyPredicate:
        """The name continues one of these after a colon; the namespace itself is not in it."""
        return PropertyPredicate._of_texts(PropertyPredicateKind.IN_NAMESPACE, namespaces)

    @staticmethod
    def has_metadata(*paths: str) -> PropertyPredicate:
        """One of these metadata paths, fields and dictionary keys joined by colons, is authored."""
        return PropertyPredicate._of_texts(PropertyPredicateKind.HAS_METADATA, paths)

    @staticmethod
    def is_attribute() -> PropertyPredicate:
        """It is an attribute."""
        return PropertyPredicate(PropertyPredicateKind.IS_ATTRIBUTE)

    @staticmethod
    def is_relationship() -> PropertyPredicate:
        """It is a relationship."""
        return PropertyPredicate(PropertyPredicateKind.IS_RELATIONSHIP)

    @staticmethod
    def is_custom() -> PropertyPredicate:
        """It is marked as custom."""
        return PropertyPredicate(PropertyPredicateKind.IS_CUSTOM)

    @staticmethod
    def is_authored() -> PropertyPredicate:
        """It has an opinion rather than a fallback."""
        return PropertyPredicate(PropertyPredicateKind.IS_AUTHORED)


class PrimPredicate(_Predicate):
    """A condition on one prim."""

    __slots__ = ()

    _kinds = PrimPredicateKind
    _combining = frozenset({PrimPredicateKind.AND, PrimPredicateKind.OR})
    _single = frozenset({PrimPredicateKind.NOT, PrimPredicateKind.HAS_PARENT, PrimPredicateKind.HAS_ANCESTOR})
    _texts = frozenset(range(PrimPredicateKind.HAS_TYPE, PrimPredicateKind.HAS_METADATA + 1))

    @staticmethod
    def none() -> PrimPredicate:
        """No prim."""
        return PrimPredicate(PrimPredicateKind.NONE)

    @staticmethod
    def all() -> PrimPredicate:
        """Every prim."""
        return PrimPredicate(PrimPredicateKind.ALL)

    @staticmethod
    def and_(*predicates: PrimPredicate) -> PrimPredicate:
        """All of them hold."""
        return PrimPredicate._of_parts(PrimPredicateKind.AND, predicates)

    @staticmethod
    def or_(*predicates: PrimPredicate) -> PrimPredicate:
        """Any of them holds."""
        return PrimPredicate._of_parts(PrimPredicateKind.OR, predicates)

    @staticmethod
    def not_(predicate: PrimPredicate) -> PrimPredicate:
        """It does not hold."""
        return PrimPredicate._of_parts(PrimPredicateKind.NOT, (predicate,))

    @staticmethod
    def has_parent(predicate: PrimPredicate) -> PrimPredicate:
        """It holds for the parent; ``/`` is no parent."""
        return PrimPredicate._of_parts(PrimPredicateKind.HAS_PARENT, (predicate,))

    @staticmethod
    def has_ancestor(predicate: PrimPredicate) -> PrimPredicate:
        """It holds for the parent or a prim above it; ``/`` is none."""
        return PrimPredicate._of_parts(PrimPredicateKind.HAS_ANCESTOR, (predicate,))

    @staticmethod
    def has_property(predicate: PropertyPredicate) -> PrimPredicate:
        """A property satisfies it: authored, or declared by a schema with a fallback."""
        if not isinstance(predicate, PropertyPredicate):
            raise TypeError(f"PrimPredicate.HAS_PROPERTY takes a PropertyPredicate, got {predicate!r}")
        return PrimPredicate(PrimPredicateKind.HAS_PROPERTY, nested=predicate)

    @staticmethod
    def has_type(*names: str) -> PrimPredicate:
        """The type is exactly one of these."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_TYPE, names)

    @staticmethod
    def is_a_type(*names: str) -> PrimPredicate:
        """The type is one of these or derives from one."""
        return PrimPredicate._of_texts(PrimPredicateKind.IS_A_TYPE, names)

    @staticmethod
    def has_schema(*names: str) -> PrimPredicate:
        """The type or an applied schema is exactly one of these."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_SCHEMA, names)

    @staticmethod
    def has_applied_schema(*names: str) -> PrimPredicate:
        """An applied schema is exactly one of these, the part after the colon included."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_APPLIED_SCHEMA, names)

    @staticmethod
    def has_applied_schema_in_namespace(*names: str) -> PrimPredicate:
        """An applied schema is one of these, or an instance of one."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_APPLIED_SCHEMA_IN_NAMESPACE, names)

    @staticmethod
    def has_path(*paths: str) -> PrimPredicate:
        """The path is one of these. Never matches inside a native instance."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_PATH, paths)

    @staticmethod
    def is_under_path(*paths: str) -> PrimPredicate:
        """The path is one of these or below one. Never matches inside a native instance."""
        return PrimPredicate._of_texts(PrimPredicateKind.IS_UNDER_PATH, paths)

    @staticmethod
    def has_kind(*names: str) -> PrimPredicate:
        """The model kind is exactly one of these."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_KIND, names)

    @staticmethod
    def has_purpose(*names: str) -> PrimPredicate:
        """The purpose, inherited from above, is one of these; what cannot be drawn has none."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_PURPOSE, names)

    @staticmethod
    def has_metadata(*paths: str) -> PrimPredicate:
        """One of these metadata paths, fields and dictionary keys joined by colons, is authored."""
        return PrimPredicate._of_texts(PrimPredicateKind.HAS_METADATA, paths)


class Selector(_Immutable):
    """The prims of one predicate, with the properties of another, and with metadata.

    ``prim_metadata_paths`` become columns ``usd-metadata:<path>``, ``property_metadata_paths`` columns
    ``<property>:usd-metadata:<path>`` of every property that the selector takes. Naming a dictionary takes every value
    below it.
    """

    __slots__ = ("prim_metadata_paths", "prim_predicate", "property_metadata_paths", "property_predicate")

    prim_predicate: PrimPredicate
    property_predicate: PropertyPredicate
    prim_metadata_paths: tuple[str, ...]
    property_metadata_paths: tuple[str, ...]

    def __init__(
        self,
        prim_predicate: PrimPredicate | None = None,
        property_predicate: PropertyPredicate | None = None,
        prim_metadata_paths: Iterable[str] = (),
        property_metadata_paths: Iterable[str] = (),
    ) -> None:
        for name, given, expected in (
            ("prim_predicate", prim_predicate, PrimPredicate),
            ("property_predicate", property_predicate, PropertyPredicate),
        ):
            if given is not None and not isinstance(given, expected):
                raise TypeError(f"{name} must be a {expected.__name__} or None, got {given!r}")
        self._set(
            prim_predicate=prim_predicate or PrimPredicate.none(),
            property_predicate=property_predicate or PropertyPredicate.none(),
            prim_metadata_paths=_texts(prim_metadata_paths, "prim_metadata_paths", needed=False),
            property_metadata_paths=_texts(property_metadata_paths, "property_metadata_paths", needed=False),
        )

    def __repr__(self) -> str:
        return f"Selector({self.prim_predicate!r}, {self.property_predicate!r})"


class Desc(_Immutable):
    """What to populate: domains, selectors, and metadata of the stage itself, which becomes columns of ``/``.

    Several descriptions in one call add up. One without domains and selectors populates nothing but its metadata.
    """

    __slots__ = ("domains", "selectors", "stage_metadata_paths")

    domains: int
    selectors: tuple[Selector, ...]
    stage_metadata_paths: tuple[str, ...]

    def __init__(
        self,
        domains: PopulationDomain | int = PopulationDomain.NONE,
        selectors: Iterable[Selector] = (),
        stage_metadata_paths: Iterable[str] = (),
    ) -> None:
        chosen = tuple(guard.entries(selectors, "selectors", "a list of Selectors"))
        for position, selector in enumerate(chosen):
            if not isinstance(selector, Selector):
                raise TypeError(f"selectors[{position}] must be a Selector, got {selector!r}")
        self._set(
            domains=domain_bits(domains),
            selectors=chosen,
            stage_metadata_paths=_texts(stage_metadata_paths, "stage_metadata_paths", needed=False),
        )

    def __repr__(self) -> str:
        return f"Desc({self.domains!r}, {list(self.selectors)!r}, {list(self.stage_metadata_paths)!r})"


def domain_bits(domains: PopulationDomain | int) -> int:
    """Domains as a number; bits that no domain has are accepted and mean nothing."""
    bits = guard.uint64(domains, "domains")
    if bits >> 32:
        raise ValueError(f"domains must fit in uint32, got {bits}")
    return bits


def _texts(values: Iterable[str], name: str, *, needed: bool) -> tuple[str, ...]:
    texts = tuple(guard.entries(values, name, "a list of strings", ordered=False))
    if needed and not texts:
        raise ValueError(f"{name} takes at least one string, got none")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name} takes strings, got {text!r} ({type(text).__name__}) at position {position}")
        if not text:
            raise ValueError(f"{name} takes non-empty strings, got '' at position {position}")
    return texts


def _parts(values: Iterable[Any], cls: type[_Predicate], name: str, *, needed: bool) -> tuple[Any, ...]:
    parts = tuple(guard.entries(values, "subpredicates", f"a list of {cls.__name__}s", ordered=False))
    if needed and not parts:
        raise ValueError(f"{cls.__name__}.{name} takes at least one {cls.__name__}, got none")
    for position, part in enumerate(parts):
        if not isinstance(part, cls):
            raise TypeError(f"{cls.__name__}.{name} takes {cls.__name__}s, got {part!r} at position {position}")
    return parts
