from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.a2a.seeding import served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live


@pytest.fixture
async def peer(tmp_path: Path, demo: Demo) -> AsyncGenerator[Live]:
    """A node whose agents are served to peers."""
    async with served(tmp_path / "home", demo) as node:
        yield node
