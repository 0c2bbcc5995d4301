from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.openai.clients import client_of, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openai import AsyncOpenAI
    from tests.edges.demo import Demo
    from tests.edges.live import Live


@pytest.fixture
async def node(tmp_path: Path, demo: Demo) -> AsyncGenerator[Live]:
    async with served(tmp_path / "home", demo) as running:
        yield running


@pytest.fixture
async def client(node: Live) -> AsyncGenerator[AsyncOpenAI]:
    """The administrator's."""
    async with client_of(node) as made:
        yield made
