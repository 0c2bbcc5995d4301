"""One loop for each module: what is dear to start, a browser or a node, serves all its tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.demo import Demo
from tests.edges.live import live
from tests.edges.web.screen import chromium

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Browser
    from tests.edges.live import Live

LONG = 1000


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    """A browser, in which each test has a context of its own."""
    async with chromium() as started:
        yield started


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Live]:
    """A node for tests that mind neither calls nor keys of others."""
    home = tmp_path_factory.mktemp("shared") / "home"
    async with live(home, sources=[Demo().source], seconds=LONG) as running:
        yield running
