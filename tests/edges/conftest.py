from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.demo import Demo
from tests.edges.live import Live, live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


@pytest.fixture
def demo() -> Demo:
    return Demo()


@pytest.fixture
async def node(tmp_path: Path, demo: Demo) -> AsyncGenerator[Live]:
    """A node behind a socket, with the tools of `demo`; its rates are out of the way."""
    async with live(tmp_path / "home", sources=[demo.source]) as running:
        yield running
