"""The options of exports are keywords that ``help``, ``inspect`` and editors see."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from ovstage import population
from ovstage.population.export import rules

OPTIONS = [
    "since_ordinal", "selection", "layer_mode", "transform_policy", "unknown_metadata_policy",
    "source_api_schema_policy", "projection", "prim_predicate", "property_predicate", "prim_rules",
    "api_schema_rules", "attribute_rules", "property_rules", "metadata_rules",
]  # fmt: skip
TYPED = [
    "prim_predicate", "property_predicate", "include_custom_namespaces", "transform_policy",
    "unknown_metadata_policy",
]  # fmt: skip
CALLS: dict[Callable[..., Any], tuple[list[str], list[str]]] = {
    population.export_to_usd_file: (["stage", "identifier", "ordinal"], OPTIONS),
    population.export_to_usd_file_async: (["stage", "identifier", "ordinal"], OPTIONS),
    population.export_to_destination: (["stage", "destination", "ordinal"], OPTIONS),
    population.export_to_destination_async: (["stage", "destination", "ordinal"], OPTIONS),
    population.ExportDestination.export: (["self", "ordinal"], OPTIONS),
    population.ExportDestination.export_async: (["self", "ordinal"], OPTIONS),
    population.export_typed_hierarchy_to_usd_file: (["stage", "identifier", "root_path", "ordinal"], TYPED),
    population.export_typed_hierarchy_to_usd_file_async: (["stage", "identifier", "root_path", "ordinal"], TYPED),
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
def test_the_signature_names_every_option(call: Callable[..., Any]) -> None:
    own, options = CALLS[call]
    shown = inspect.signature(call).parameters.values()
    assert [each.name for each in shown if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD] == own
    assert [each.name for each in shown if each.kind is inspect.Parameter.KEYWORD_ONLY] == options
    assert len(shown) == len(own) + len(options)


def test_the_defaults_that_are_shown_are_those_that_are_used() -> None:
    shown = inspect.signature(population.export_to_usd_file).parameters
    defaults = {name: shown[name].default for name in OPTIONS}
    assert rules.options(7, defaults) == rules.options(7, {})


def test_what_a_type_checker_sees_is_what_an_export_takes() -> None:
    assert list(get_type_hints(rules.ExportOptions)) == OPTIONS
    assert set(get_type_hints(rules.Options)) == {"ordinal", *OPTIONS}


def test_what_is_no_option() -> None:
    with pytest.raises(TypeError, match="an export has no option 'rules'; it has api_schema_rules, "):
        population.export_to_usd_file(None, "x.usda", 1, rules=[])  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'attribute_rules'"):
        population.export_typed_hierarchy_to_usd_file(None, "x.usda", "/", 1, attribute_rules=[])  # type: ignore
