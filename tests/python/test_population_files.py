"""Real scenes: every USD file of the open packages opens, and what becomes of it is written down in a golden table."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

import usd_files

golden = usd_files.GOLDEN.read_text().splitlines()


@pytest.mark.skipif(usd_files.versions() is None, reason="not installed: newton, warp-lang")
@pytest.mark.skipif(
    usd_files.versions() not in (None, golden[0]),
    reason=f"the golden table is of {golden[0][2:]}; write it anew with tests/python/usd_files.py",
)
def test_every_file_becomes_what_the_golden_table_says() -> None:
    assert usd_files.table() == golden[2:]
