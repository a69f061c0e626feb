"""The kernels that move rows, as PTX text: ``rows1`` to ``rows16``, by the width of a cell in bytes.

    rowsN(dst, dst_rows, src, src_rows, rows, cells)

Cell ``k`` of row ``i`` goes from row ``src_rows[i]`` of ``src`` to row ``dst_rows[i]`` of ``dst``; a list that is NULL
stands for ``i`` itself. So one kernel gathers, scatters, copies rows between two lists and copies a run. A row has
``cells`` cells, each of them is the work of one thread, and a launch has at least ``rows * cells`` threads. Rows that a
list of targets names twice have no defined winner.

The dialect is that of PTX 6.0 for sm_50 and newer: 32-bit row numbers, 64-bit addresses.
"""

from __future__ import annotations

CELLS = {1: (".b8", 1), 2: (".b16", 1), 4: (".b32", 1), 8: (".b64", 1), 16: (".b32", 4)}
"""The type and the number of elements of a load, by the width of a cell."""

ENTRY = """
.visible .entry rows{width}(
    .param .u64 dst, .param .u64 dst_rows, .param .u64 src, .param .u64 src_rows, .param .u64 rows, .param .u32 cells
)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %d<12>;
    .reg {register} %v<{lanes}>;

    mov.u32 %r0, %ctaid.x;              // d0 = the thread's number, of all blocks
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    cvt.u64.u32 %d1, %r2;
    mad.wide.u32 %d0, %r0, %r1, %d1;
    ld.param.u64 %d2, [rows];
    ld.param.u32 %r3, [cells];
    cvt.u64.u32 %d3, %r3;
    mul.lo.u64 %d4, %d2, %d3;
    setp.ge.u64 %p0, %d0, %d4;
    @%p0 bra DONE{width};

    div.u64 %d5, %d0, %d3;              // d5 = which row of the lists, d6 = which cell of it
    mul.lo.u64 %d6, %d5, %d3;
    sub.u64 %d6, %d0, %d6;
    mov.u64 %d7, %d5;                   // d7 = row of dst
    mov.u64 %d8, %d5;                   // d8 = row of src

    ld.param.u64 %d9, [dst_rows];
    setp.eq.u64 %p1, %d9, 0;
    @%p1 bra TO{width};
    cvta.to.global.u64 %d9, %d9;
    shl.b64 %d10, %d5, 2;
    add.u64 %d9, %d9, %d10;
    ld.global.u32 %r4, [%d9];
    cvt.u64.u32 %d7, %r4;
TO{width}:
    ld.param.u64 %d9, [src_rows];
    setp.eq.u64 %p1, %d9, 0;
    @%p1 bra FROM{width};
    cvta.to.global.u64 %d9, %d9;
    shl.b64 %d10, %d5, 2;
    add.u64 %d9, %d9, %d10;
    ld.global.u32 %r4, [%d9];
    cvt.u64.u32 %d8, %r4;
FROM{width}:
    mul.lo.u64 %d7, %d7, %d3;           // rows and cells become bytes
    add.u64 %d7, %d7, %d6;
    mul.lo.u64 %d7, %d7, {width};
    mul.lo.u64 %d8, %d8, %d3;
    add.u64 %d8, %d8, %d6;
    mul.lo.u64 %d8, %d8, {width};
    ld.param.u64 %d9, [dst];
    cvta.to.global.u64 %d9, %d9;
    add.u64 %d9, %d9, %d7;
    ld.param.u64 %d10, [src];
    cvta.to.global.u64 %d10, %d10;
    add.u64 %d10, %d10, %d8;
    ld.global{vector}{type} {values}, [%d10];
    st.global{vector}{type} [%d9], {values};
DONE{width}:
    ret;
}}
"""


def text() -> str:
    """The module with all entries, as ``cuModuleLoadData`` takes it."""
    return ".version 6.0\n.target sm_50\n.address_size 64\n" + "".join(map(_entry, CELLS))


def _entry(width: int) -> str:
    kind, lanes = CELLS[width]
    names = [f"%v{lane}" for lane in range(lanes)]
    return ENTRY.format(
        width=width,
        register=".b16" if kind == ".b8" else kind,  # PTX has no registers of 8 bits
        lanes=lanes,
        vector=f".v{lanes}" if lanes > 1 else "",
        type=kind,
        values=f"{{{', '.join(names)}}}" if lanes > 1 else names[0],
    )
