"""Names of columns that population fills and no USD property has, and of what stands in them."""

from __future__ import annotations

__all__ = ["LOCAL", "METADATA", "PROTOTYPE", "RESET", "SCHEMAS", "TYPE", "UNTYPED", "WORLD"]

LOCAL, RESET, WORLD = "omni:xform", "omni:resetXformStack", "omni:fabric:worldMatrix"

TYPE, SCHEMAS = "usd-prim-type", "usd-schemas"

UNTYPED = "__ovstage_population_untyped__"
"""The type of a ``def`` without a type, so that such a prim can still be found by type."""

PROTOTYPE = "usd-prototype"
"""Which prototype an instance root shows: a relationship with one target."""

METADATA = "usd-metadata:"
"""What the name of metadata follows; of a property's metadata the name of the property and a colon stand before it."""
