"""The tests run on the fake driver, in one process, with an order of its own for each test."""

from __future__ import annotations

import pytest
from client import fake, start


@pytest.fixture(scope="session", autouse=True)
def driver() -> None:
    """The primary context of device 0."""
    start()


@pytest.fixture(autouse=True)
def order(driver: None) -> None:
    """What the test before it has left runs, and what was found is forgotten."""
    fake.fakecuda_begin(1)
