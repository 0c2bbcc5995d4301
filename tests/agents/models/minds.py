"""Agents that think with a scripted model, for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from tests.agents.test_node import put

from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.app.agents.running import Agents
    from openfang.testing import OpenApp

REACH = """
[capabilities]
tools = ["builtin:file_*", "builtin:memory_*", "builtin:system_time"]
memory_read = ["*"]
memory_write = ["*"]
[policy]
project = "default"
"""
KEY = "sk-of-the-test-and-nobody-elses"


def settings(url: str, *, provider: str = "openai", more: str = "") -> str:
    """A configuration whose provider is a scripted server."""
    return (
        f'[providers.{provider}]\nbase_url = "{url}"\nallow_private = true\n'
        f'api_key = "${{THE_KEY}}"\n{more}\n'
    )


def thinker(
    folder: Path, *, provider: str = "openai", model: str = "gpt-4o-mini", more: str = ""
) -> None:
    """An agent that thinks with that provider."""
    named = f'[model]\nprovider = "{provider}"\nmodel = "{model}"\nsystem_prompt = "Be brief."\n'
    put(folder, "thinker", f"{named}{more}{REACH}")


@asynccontextmanager
async def thinking(
    folder: Path, config: str, **environ: str
) -> AsyncGenerator[tuple[OpenApp, Agents]]:
    """A node with that configuration, and the key in its environment."""
    around = {"HOME": str(folder), "THE_KEY": KEY, **environ}
    async with open_test_app(folder, config=config, environ=around) as app:
        assert app.parts.agents
        with anyio.fail_after(100):
            yield app, await app.parts.agents.opened()
