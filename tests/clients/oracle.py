"""Two readings of one USD file as models of newton: through a stage, and by newton itself. They must agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import newton
import numpy as np
import ovnewton

import ovstage
from ovstage import PopulationDomain, population

__all__ = ["differences", "through_newton", "through_stage"]

Facts = dict[str, dict[str, Any]]


def through_stage(file: Path) -> newton.ModelBuilder:
    """Populate a stage with the file and let ovnewton read that."""
    builder = newton.ModelBuilder()
    with ovstage.Stage("oracle") as stage:
        population.open_usd(stage, file, ordinal=1, domains=PopulationDomain.ALL)
        stage.advance_write_floor(1).wait()
        ovnewton.add_ovstage(builder, stage, ordinal=1)
    return builder


def through_newton(file: Path) -> newton.ModelBuilder:
    """Let newton read the file."""
    builder = newton.ModelBuilder()
    builder.add_usd(str(file), load_visual_shapes=False)
    return builder


def differences(ours: newton.ModelBuilder, theirs: newton.ModelBuilder) -> list[str]:
    """What a model has that the other lacks, and every number that is not the same but for single precision."""
    found = []
    for what, facts in (("body", _bodies), ("joint", _joints), ("shape", _shapes)):
        mine, other = facts(ours), facts(theirs)
        found += [f"{what} {label} is only there through the stage" for label in mine.keys() - other.keys()]
        found += [f"{what} {label} is missing through the stage" for label in other.keys() - mine.keys()]
        for label in sorted(mine.keys() & other.keys()):
            found += [f"{what} {label}: {text}" for text in _unequal(mine[label], other[label])]
    return found


def _unequal(mine: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    for name, value in mine.items():
        expected = other[name]
        if isinstance(value, str):
            same = value == expected
        else:
            value, expected = np.asarray(value, float), np.asarray(expected, float)
            same = value.shape == expected.shape and np.allclose(value, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        if not same:
            yield f"{name} is {_text(value)} through the stage, {_text(expected)} by newton"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else np.array2string(value, precision=6, separator=",").replace("\n", "")


# --- what is compared, by label ---


def _bodies(builder: newton.ModelBuilder) -> Facts:
    return {
        label: {
            "pose": _pose(builder.body_q[at]),
            "mass": builder.body_mass[at],
            "inertia": np.array(builder.body_inertia[at]),
            "center of mass": np.array(builder.body_com[at]),
            "velocity": np.array(builder.body_qd[at]),
            "flags": int(builder.body_flags[at]),
        }
        for at, label in enumerate(builder.body_label)
    }


def _joints(builder: newton.ModelBuilder) -> Facts:
    facts: Facts = {}
    for at, label in enumerate(builder.joint_label):
        kind = newton.JointType(builder.joint_type[at]).name
        parent, child = (_label(builder.body_label, each[at]) for each in (builder.joint_parent, builder.joint_child))
        start, count = builder.joint_qd_start[at], sum(builder.joint_dof_dim[at])
        # Joints that no prim stands for have names that depend on the order of reading.
        key = label if label.startswith("/") and "free_joint" not in label else f"{kind} {parent} - {child}"
        fact: dict[str, Any] = {
            "kind": kind,
            "parent": parent,
            "child": child,
            "parent frame": _pose(builder.joint_X_p[at]),
            "child frame": _pose(builder.joint_X_c[at]),
            "enabled": int(builder.joint_enabled[at]),
        }
        for name in _DOF:
            fact[name] = np.array([getattr(builder, f"joint_{name}")[start + dof] for dof in range(count)], float)
        facts[key] = fact
    return facts


_DOF = ("axis", "limit_lower", "limit_upper", "target_ke", "target_kd", "armature", "friction", "effort_limit")


def _shapes(builder: newton.ModelBuilder) -> Facts:
    collides = int(newton.ShapeFlags.COLLIDE_SHAPES)
    return {
        label: {
            "kind": newton.GeoType(builder.shape_type[at]).name,
            "body": _label(builder.body_label, builder.shape_body[at]),
            "frame": _pose(builder.shape_transform[at]),
            "size": np.array(builder.shape_scale[at]),
            "extent": _extent(builder.shape_source[at]),
            **{name: getattr(builder, f"shape_{name}")[at] for name in _SURFACE},
        }
        for at, label in enumerate(builder.shape_label)
        if builder.shape_flags[at] & collides
    }


_SURFACE = ("margin", "gap", "material_mu", "material_restitution", "material_ke", "material_kd", "collision_group")


def _extent(mesh: Any) -> np.ndarray[Any, Any]:
    """The box around a mesh: the same surface may be made of more or fewer points."""
    points = np.array(getattr(mesh, "vertices", ()), float).reshape(-1, 3)
    return np.concatenate([points.min(axis=0), points.max(axis=0)]) if len(points) else points


def _label(labels: list[str], index: int) -> str:
    return labels[index] if index >= 0 else "world"


def _pose(transform: Any) -> np.ndarray[Any, Any]:
    """Position and rotation; as a matrix, because two quaternions mean the same rotation."""
    pose = np.array(transform, float)
    x, y, z, w = pose[3:] / np.linalg.norm(pose[3:])
    axes = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
        [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
        [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.concatenate([pose[:3], np.ravel(axes)])
