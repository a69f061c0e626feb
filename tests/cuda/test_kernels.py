"""The kernels that move rows, interpreted, against NumPy; and what the interpreter refuses."""

from __future__ import annotations

import kernels
import numpy as np
import pytest
from client import MODULES, DriverError, Kernels, call, device, download, fake, stream, uploaded

ROWS = 40


@pytest.fixture(scope="module")
def rows() -> Kernels:
    return Kernels(kernels.text())


@pytest.fixture(scope="module")
def on() -> object:
    return stream()


def widest(size: int) -> int:
    return max(width for width in kernels.CELLS if size % width == 0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 48, 64, 72, 128])
@pytest.mark.parametrize("lists", ["", "to", "from", "to and from"])
def test_rows_move_as_numpy_moves_them(rows: Kernels, on: object, size: int, lists: str) -> None:
    random = np.random.default_rng(size)
    source = random.integers(0, 256, (ROWS, size), np.uint8)
    target = random.integers(0, 256, (ROWS, size), np.uint8)
    to = random.permutation(ROWS).astype(np.uint32)[: ROWS // 2]
    chosen = random.integers(0, ROWS, ROWS // 2).astype(np.uint32)
    all_rows = np.arange(ROWS // 2)
    expected = target.copy()
    expected[to if "to" in lists else all_rows] = source[chosen if "from" in lists else all_rows]
    memory, cell = uploaded(target), widest(size)
    rows.launch(
        f"rows{cell}",
        ROWS // 2 * (size // cell),
        on,
        memory,
        uploaded(to) if "to" in lists else 0,
        uploaded(source),
        uploaded(chosen) if "from" in lists else 0,
        ROWS // 2,
        np.uint32(size // cell),
    )
    assert np.array_equal(download(memory, target, on), expected)
    assert (fake.fakecuda_races(), fake.fakecuda_faults()) == (0, 0), fake.fakecuda_report()


def test_threads_beyond_the_last_cell_do_nothing(rows: Kernels, on: object) -> None:
    memory = uploaded(np.zeros(4, np.uint32))
    rows.launch("rows4", 32, on, memory, 0, uploaded(np.arange(4, dtype=np.uint32)), 0, 4, np.uint32(1))
    assert download(memory, np.zeros(4, np.uint32), on).tolist() == [0, 1, 2, 3]
    assert fake.fakecuda_faults() == 0


HEAD = ".version 6.0\n.target sm_50\n.visible .entry f(.param .u64 p)\n{\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "no .version"),
        (".version 6.0\n.target sm_50\n", "no entry"),
        (HEAD + "sin.approx.f32 %f0, %f1;\n}", "an instruction that is not known"),
        (HEAD + "add.s32 %r0, %r1, %r2;\n}", "an instruction that is not known"),
        (HEAD + "add.u32 %r0, %r1;\n}", "too few or too many operands"),
        (HEAD + "bra NOWHERE;\n}", "a label that is nowhere"),
        (HEAD + "ret\n}", "an instruction without an end"),
        (HEAD, "an entry without a body"),
    ],
)
def test_a_text_that_is_not_understood_is_refused(text: str, why: str) -> None:
    before = fake.fakecuda_live(MODULES)
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_PTX"):
        Kernels(text)
    assert why in fake.fakecuda_report().decode()
    assert fake.fakecuda_live(MODULES) == before


def test_a_kernel_that_does_not_end_is_a_fault(on: object) -> None:
    Kernels(HEAD + "AGAIN:\nbra AGAIN;\n}").launch("f", 1, on, 0, block=1)
    fake.fakecuda_races()
    assert "does not end" in fake.fakecuda_report().decode()


def test_an_entry_that_is_not_there(rows: Kernels) -> None:
    with pytest.raises(DriverError, match="CUDA_ERROR_NOT_FOUND"):
        call("cuModuleGetFunction", rows.module, b"rows3")


def test_arithmetic_of_the_subset(on: object) -> None:
    """Each line writes one number; 32-bit results wrap, 64-bit ones do not."""
    body = HEAD + "ld.param.u64 %d0, [p];\n"
    sums = {
        "sub.u32 %r0, 1, 2;": 0xFFFFFFFF,
        "mad.lo.u32 %r0, 7, 6, 1;": 43,
        "div.u32 %r0, 43, 6;": 7,
        "rem.u32 %r0, 43, 6;": 1,
        "shl.b32 %r0, 3, 4;": 48,
        "shr.u32 %r0, 48, 4;": 3,
        "and.b32 %r0, 12, 10;": 8,
        "or.b32 %r0, 12, 10;": 14,
        "mul.wide.u32 %d1, 4294967295, 2;\ncvt.u32.u64 %r0, %d1;": 0xFFFFFFFE,
        "setp.lt.u32 %p0, 1, 2;\nmov.u32 %r0, 5;\n@%p0 mov.u32 %r0, 6;": 6,
        "setp.gt.u32 %p0, 1, 2;\nmov.u32 %r0, 5;\n@!%p0 mov.u32 %r0, 7;": 7,
    }
    for at, line in enumerate(sums):
        body += f"{line}\nst.global.u32 [%d0+{4 * at}], %r0;\n"
    memory = device(4 * len(sums))
    Kernels(body + "ret;\n}").launch("f", 1, on, memory, block=1)
    assert download(memory, np.zeros(len(sums), np.uint32), on).tolist() == list(sums.values())
