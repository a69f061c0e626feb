"""Write a local matrix as the transform operations of a prim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pxr import Gf, Sdf, UsdGeom, Vt  # type: ignore # usd-core has no stubs

__all__ = ["author_matrix", "author_operations", "same_matrix"]

_PRECISION = 1e-6
"""How far the operations may be from the matrix, in terms of its largest scale: what a solver in single precision
leaves of orthogonality. A shear is far beyond it."""

_FLAT = 1e-14
"""A row shorter than this, in terms of the longest, is what rounding leaves of a scale of zero."""


def author_operations(spec: Sdf.PrimSpec, matrix: Sequence[float], resets: bool) -> bool:
    """Write translate, orient and scale; ``False``, and nothing written, when they cannot express the matrix."""
    found = _decomposed(np.asarray(matrix, np.float64).reshape(4, 4))
    if found is None:
        return False
    translation, rotation, scales = found
    operations: list[tuple[str, Sdf.ValueTypeName, Any]] = [
        ("xformOp:translate", Sdf.ValueTypeNames.Double3, Gf.Vec3d(*translation))
    ]
    if rotation != Gf.Quatd(1.0):
        operations.append(("xformOp:orient", Sdf.ValueTypeNames.Quatd, rotation))
    if any(scale != 1.0 for scale in scales):
        operations.append(("xformOp:scale", Sdf.ValueTypeNames.Double3, Gf.Vec3d(*scales)))
    _write(spec, operations, resets)
    return True


def author_matrix(spec: Sdf.PrimSpec, matrix: Sequence[float], resets: bool) -> None:
    """Write the matrix as it is."""
    _write(spec, [("xformOp:transform", Sdf.ValueTypeNames.Matrix4d, Gf.Matrix4d(*matrix))], resets)


def same_matrix(prim: UsdGeom.Xformable, matrix: np.ndarray[Any, Any], resets: bool) -> bool:
    """Whether the operations of a prim make that matrix, as far as single precision tells."""
    made = np.asarray(prim.GetLocalTransformation(), np.float64).ravel()
    scale = max(1.0, float(np.abs(matrix).max()))
    return bool(prim.GetResetXformStack() == resets and np.abs(made - matrix).max() <= _PRECISION * scale)


def _decomposed(matrix: np.ndarray[Any, Any]) -> tuple[list[float], Gf.Quatd, list[float]] | None:
    """Row vectors: the linear part is scale times rotation, the last row the translation."""
    linear = matrix[:3, :3]
    scales = np.linalg.norm(linear, axis=1)
    if not np.isfinite(matrix).all() or (matrix[:, 3] != (0, 0, 0, 1)).any():
        return None
    flat = scales <= _FLAT * scales.max()
    scales[flat] = 0
    if not flat.any() and np.linalg.det(linear) < 0:
        scales[2] = -scales[2]
    # Norms of exact scales come out a bit off: a scale that is one but for rounding is one.
    scales = np.where(np.isclose(np.abs(scales), 1.0, rtol=0, atol=1e-15), np.sign(scales), scales)
    axes = linear / np.where(flat, 1.0, scales)[:, None]
    if flat.any():
        axes = _completed(axes, flat)
    rotation = Gf.Matrix4d(*np.block([[axes, np.zeros((3, 1))], [np.zeros(3), np.ones(1)]]).ravel().tolist())
    quaternion = rotation.ExtractRotationQuat().GetNormalized()
    if np.array_equal(axes, np.eye(3)):
        quaternion = Gf.Quatd(1.0)
    turned = np.array(Gf.Matrix3d(quaternion)) * scales[:, None]
    if np.abs(turned - linear).max() > _PRECISION * np.abs(scales).max():
        return None
    return matrix[3, :3].tolist(), quaternion, scales.tolist()


def _completed(axes: np.ndarray[Any, Any], flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A rotation with the rows of ``axes`` that are not flat. A scale of zero hides what it does to the other rows."""
    if flat.all():
        return np.eye(3)
    axes = axes.copy()
    if flat.sum() == 2:  # a rotation about any axis across the one that is known; near to none where that fits
        known = int(np.argmin(flat))
        other = (known + 1) % 3 if abs(axes[known][(known + 1) % 3]) < 0.9 else (known + 2) % 3
        across = np.eye(3)[other] - axes[known] * axes[known][other]
        axes[other] = across / np.linalg.norm(across)
        flat = np.arange(3) == 3 - known - other
    missing = int(np.argmax(flat))
    axes[missing] = np.cross(axes[(missing + 1) % 3], axes[(missing + 2) % 3])
    return axes


def _write(spec: Sdf.PrimSpec, operations: list[tuple[str, Sdf.ValueTypeName, Any]], resets: bool) -> None:
    for name, kind, value in operations:
        _attribute(spec, name, kind, Sdf.VariabilityVarying).default = value
    order = (["!resetXformStack!"] if resets else []) + [name for name, _, _ in operations]
    _attribute(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform).default = Vt.TokenArray(
        order
    )


def _attribute(
    spec: Sdf.PrimSpec, name: str, kind: Sdf.ValueTypeName, variability: Sdf.Variability
) -> Sdf.AttributeSpec:
    found = spec.attributes.get(name)
    if found is not None and found.typeName != kind:
        spec.RemoveProperty(found)
        found = None
    return found or Sdf.AttributeSpec(spec, name, kind, variability)
