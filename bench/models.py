"""Models of providers: what a step costs with the library, and what its import takes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.figures import Figure, Stopwatch, cpu_seconds
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from openfang.testing import OpenApp

_STEPS = 200
_REACH = """
[capabilities]
tools = ["builtin:system_time"]
[resources]
max_tool_calls_per_minute = 100000
"""
_THINKER = f'name = "thinker"\n[model]\nprovider = "house"\nmodel = "gpt-4o-mini"\n{_REACH}'
_ASSISTANT = f'name = "assistant"\n{_REACH}'


@contextmanager
def _serving() -> Generator[str]:
    program = [sys.executable, "-m", "bench.model_server"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


async def _step(app: OpenApp, agent: str) -> float:
    """Milliseconds of our CPU for each model step: half want a call, half answer in ten words."""
    before = cpu_seconds()
    for number in range(_STEPS):
        asked = {"message": "what time is it?", "session": f"s{number}"}
        result = await app.invoke(app.make(f"agent:{agent}", asked))
        assert not result.is_error, result.text
    return (cpu_seconds() - before) / (2 * _STEPS) * 1e3


async def figures(folder: Path) -> list[Figure]:
    home = folder / "models"
    for name, text in (("thinker", _THINKER), ("assistant", _ASSISTANT)):
        place = home / "agents" / name
        place.mkdir(parents=True)
        (place / "agent.toml").write_text(text)
    with _serving() as url:
        config = f'[providers.house]\nbase_url = "{url}"\nallow_private = true\n'
        async with open_test_app(home, config=config) as app:
            assert app.parts.agents
            await app.parts.agents.opened()
            planner = await _step(app, "assistant")
            before = cpu_seconds()
            with Stopwatch() as watch:
                await app.invoke(app.make("agent:thinker", {"message": "hi", "session": "first"}))
            first = cpu_seconds() - before
            library = await _step(app, "thinker")
    beside = f"the planner's {planner:.2f}"
    taken = f"of CPU; {watch.seconds:.1f} s by the clock"
    return [
        Figure("a model step by the library, our CPU", library, "ms", 3, beside=beside),
        Figure("the first message to a real model", first, "s", 5, beside=taken),
    ]
