"""Native instances of a scene and the prototypes they share.

An instance shows what its prototype holds; both are ordinary prims here. What makes a prim the root of an instance is
a relationship, the attribute ``usd-prototype``, whose target is the root of the prototype. A program that brings a
scene writes it, for instance with ``mark``. The answers are those of the newest executed state, sealed or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ovstage import guard
from ovstage.dictionary import minted
from ovstage.enums import AttributeSemantic

if TYPE_CHECKING:
    from ovstage._native import Operation
    from ovstage.stage import Stage

__all__ = ["available", "get_instance_roots", "get_prototype_root", "get_prototype_roots", "mark"]

PROTOTYPE = "usd-prototype"
"""The attribute that says of which prototype a prim is an instance."""


def available() -> bool:
    """Whether this build can answer."""
    return True


def get_prototype_roots(stage: Stage) -> list[str]:
    """The root paths of all prototypes that have an instance, in no order."""
    guard.stage(stage)
    return stage._path_strings(stage._prototype_roots())


def get_prototype_root(stage: Stage, instance_root: str) -> str:
    """The root path of the prototype that an instance shows.

    Raises ``OvstageError`` with ``NOT_FOUND`` for a prim that is not the root of an instance, as those inside are not.
    """
    (instance,) = guard.stage(stage)._intern_paths((guard.string(instance_root, "instance_root"),))
    return stage._path_strings((stage._prototype_root(instance),))[0]


def get_instance_roots(stage: Stage, prototype_root: str) -> list[str]:
    """The root paths of the instances of a prototype, in no order; of none for any other path."""
    (prototype,) = guard.stage(stage)._intern_paths((guard.string(prototype_root, "prototype_root"),))
    return stage._path_strings(stage._instance_roots(prototype))


def mark(stage: Stage, prototypes: Mapping[str, str], ordinal: int) -> Operation:
    """Record of which prototype prims are instances: the root of each instance with that of its prototype.

    Prims that do not exist are created. Deleting ``usd-prototype`` of a prim takes the mark away.
    """
    import numpy as np

    guard.stage(stage)
    if not isinstance(prototypes, Mapping):
        raise TypeError(f"prototypes must map instance roots to prototype roots, got {prototypes!r}")
    for instance, prototype in prototypes.items():
        guard.string(instance, "an instance root in prototypes")
        guard.string(prototype, f"prototypes[{instance!r}]")
    targets = np.array(stage._intern_paths(tuple(prototypes.values())), dtype=np.uint64)
    with (
        minted(stage, stage._list_from_strings, tuple(prototypes)) as listed,
        stage.query_from_path_list(listed) as query,
    ):
        return stage.write_attribute(
            query,
            PROTOTYPE,
            ordinal,
            targets,
            is_array=True,
            semantic=AttributeSemantic.RELATIONSHIP_PATH_ID,
        )
