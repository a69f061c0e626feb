"""Columns in the hands of libraries: memory of their own where they write, the column's own where nobody can."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import address

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
PATHS = [f"/World/P{i}" for i in range(4)]


@pytest.fixture
def column(stage):
    stage.write(PATHS, "position", 1, VALUES).wait()
    stage.advance_write_floor(1).wait()
    return stage.read(PATHS, ["position"])["position"]


@pytest.mark.parametrize("library", ["PyTorch"])
def test_a_tensor_of_torch_is_its_own(library, column):
    torch = pytest.importorskip("torch")
    tensor = column.torch()
    tensor.fill_(-1)
    assert column.values.tolist() == VALUES.tolist()
    assert torch.from_dlpack(column).data_ptr() == address(column.values)


@pytest.mark.parametrize("library", ["Warp"])
def test_an_array_of_warp_is_its_own(library, column):
    wp = pytest.importorskip("warp")
    wp.init()
    array = column.warp(dtype=wp.vec3)
    array.zero_()
    assert array.shape == (4,)
    assert column.values.tolist() == VALUES.tolist()


@pytest.mark.parametrize("library", ["JAX"])
def test_an_array_of_jax_is_the_column(library, column):
    pytest.importorskip("jax")
    array = column.jax()
    assert array.unsafe_buffer_pointer() == address(column.values)
    assert array.tolist() == VALUES.tolist()


@pytest.mark.parametrize("library", ["PyTorch", "Warp", "JAX"])
def test_what_is_no_tensor_is_refused_by_each(library, stage, column):
    module = {"PyTorch": "torch", "Warp": "warp", "JAX": "jax"}[library]
    pytest.importorskip(module)
    partial = stage.read([*PATHS, "/World/Nobody"], ["position"])["position"]
    with pytest.raises(BufferError, match=r"1 of 5 prims have no value.*stage\.read"):
        getattr(partial, module)()
