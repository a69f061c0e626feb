"""Native instances of a scene and the prototypes they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovstage import guard

if TYPE_CHECKING:
    from ovstage.stage import Stage

__all__ = ["available", "get_instance_roots", "get_prototype_root", "get_prototype_roots"]


def available() -> bool:
    """Whether this build can answer; while it is False, the other functions raise ``OvstageError(NOT_SUPPORTED)``."""
    return False


def get_prototype_roots(stage: Stage) -> list[str]:
    """The root paths of all prototypes."""
    raise guard.unsupported("instancing.get_prototype_roots")


def get_prototype_root(stage: Stage, instance_root: str) -> str:
    """The root path of the prototype that an instance shows."""
    guard.string(instance_root, "instance_root")
    raise guard.unsupported("instancing.get_prototype_root")


def get_instance_roots(stage: Stage, prototype_root: str) -> list[str]:
    """The root paths of the instances of a prototype."""
    guard.string(prototype_root, "prototype_root")
    raise guard.unsupported("instancing.get_instance_roots")
