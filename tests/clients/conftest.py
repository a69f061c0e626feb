"""What the tests of the clients share: schemas that must be known before anything reads them, and stages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import warp

import ovstage

warp.config.quiet = True
# Its kernels compile in a fifth of the time; these simulations are small, and nobody asks for their gradients.
warp.config.optimization_level = 0
warp.config.enable_backward = False


@pytest.fixture(scope="session")
def schemas() -> None:
    """The schemas of newton and, as a stand-in, of PhysX: registered once, before USD's registry is first asked."""
    import ovnewton

    ovnewton.register_usd_schemas()


@pytest.fixture
def stage() -> Iterator[ovstage.Stage]:
    with ovstage.Stage("client") as made:
        yield made
