"""Talk to the planner, then to a provider's model, and say each time what was loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from tests.agents.models.minds import settings, thinker, thinking
from tests.agents.models.scripted import Says, scripted
from tests.agents.test_node import ASSISTANT, put


async def main(folder: Path) -> None:
    put(folder, "assistant", ASSISTANT)
    thinker(folder)
    with scripted(Says("hi")) as server:
        async with thinking(folder, settings(server.openai)) as (app, _):
            for agent in ("assistant", "thinker"):
                await app.call(f"agent:{agent}", message="what time is it?")
                loaded = {"pydantic_ai", "openai"} & set(sys.modules)
                sys.stdout.write(f"{bool(loaded)}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
