"""Real scenes: every USD file of the open packages becomes what is written down in the golden table of its package.

Files that USD itself cannot read are among them: these are refused with a sentence that says where and why.
"""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pxr.Usd", reason="usd-core is not installed")

import usd_files


@pytest.mark.parametrize("package", usd_files.PACKAGES)
def test_every_file_becomes_what_the_golden_table_says(package: str) -> None:
    stamp, _, *golden = usd_files.golden(package).read_text().splitlines()
    installed = usd_files.versions(package)
    if installed is None:
        pytest.skip(f"{package} is not installed")
    if installed != stamp:
        pytest.skip(f"{installed[2:]} is here, the golden table is of {stamp[2:]}: tests/python/usd_files.py writes it")
    assert [line for line, _ in usd_files.table(package)] == golden
