"""The planner: how often it is right, on the prompts it was mended by and on those held out."""

from __future__ import annotations

import json
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from bench.figures import Figure, Stopwatch, cpu_per, cpu_seconds
from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Planned, Planner
from openfang.core.agents import Words
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.progress import Told

_PROMPTS = Path(__file__).parent.parent / "tests" / "data" / "planner" / "prompts.json"
_DESTRUCTIVE = frozenset({"delete_file", "drop_table", "agent_kill"})
_STEPS = 400
_ASSISTANT = """
name = "assistant"
[capabilities]
tools = ["builtin:system_time"]
[resources]
max_tool_calls_per_minute = 100000
"""


def held_out(prompt: str) -> bool:
    """Whether nobody may look at it while mending."""
    return sha256(f"openfang-planner-1:{prompt}".encode()).digest()[-1] % 2 == 0


def planners(data: dict[str, Any]) -> dict[str, Planner]:
    """The planner with each set of tools that prompts are asked among."""
    tools = [Offer(one["name"], one["description"], one["inputSchema"]) for one in data["tools"]]
    builtins = [
        Offer(one["name"], one["description"], one["inputSchema"], changes=one["changes"])
        for one in data["builtins"]
    ]
    deleting = [one for one in tools if one.name == "delete_file"]
    deleting += [one for one in builtins if not one.name.startswith("agent_")]
    return {
        "tools": Planner(tools),
        "builtins": Planner(builtins),
        "assistant": Planner([one for one in builtins if one.name in data["assistant"]]),
        "deleting": Planner(deleting),
    }


def _planned(known: dict[str, Planner], one: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    planned = known[one.get("among", "tools")].plan(one["prompt"])
    if isinstance(planned, Planned):
        return planned.offer.name, dict(planned.arguments)
    return None, {}


def _score(known: dict[str, Planner], prompts: list[dict[str, Any]]) -> tuple[float, float, int]:
    """Right tools, exact calls, and what nobody asked for."""
    tools = exact = uninvited = 0
    for one in prompts:
        tool, arguments = _planned(known, one)
        tools += tool == one["tool"]
        exact += (tool, arguments) == (one["tool"], one["arguments"])
        uninvited += tool is not None and (
            one["tool"] is None or tool in _DESTRUCTIVE - {one["tool"]}
        )
    return tools / len(prompts) * 100, exact / len(prompts) * 100, uninvited


def _scores() -> list[Figure]:
    data = json.loads(_PROMPTS.read_text())
    known = planners(data)
    found: list[Figure] = []
    for name, held in (("mended by", False), ("held out", True)):
        prompts = [one for one in data["prompts"] if held_out(one["prompt"]) is held]
        tools, exact, uninvited = _score(known, prompts)
        beside = f"{len(prompts)} prompts, {uninvited} uninvited"
        found.append(
            Figure(f"planner, {name}: right tool", tools, "%", 90, at_most=False, beside=beside)
        )
        found.append(Figure(f"planner, {name}: exact call", exact, "%", 75, at_most=False))
    prompts = [one["prompt"] for one in data["prompts"]]
    cost = cpu_per(5, lambda: [known["tools"].plan(prompt) for prompt in prompts]) / len(prompts)
    return [*found, Figure("planner: a plan among 18 tools", cost / 1e3, "ms", 3)]


async def _step(app: OpenApp) -> float:
    """Milliseconds of our CPU for each model step, everything but the model's own."""
    before = cpu_seconds()
    for number in range(_STEPS):
        call = app.make("agent:assistant", {"message": "what time is it?", "session": f"s{number}"})
        assert (await app.invoke(call)).text.startswith("20")
    return (cpu_seconds() - before) / (2 * _STEPS) * 1e3


async def _first_word(app: OpenApp) -> float:
    """Milliseconds from the first word of a program to whoever listens."""
    waits: list[float] = []
    for _ in range(20):
        heard: list[float] = []

        def told(one: Told, heard: list[float] = heard) -> None:
            if isinstance(one, Words) and not heard:
                heard.append(time.monotonic())

        result = await app.invoke(app.make("agent:clock", {"message": "now"}, progress=told))
        waits.append((heard[0] - float(result.text)) * 1e3)
    return sorted(waits)[len(waits) // 2]


_CLOCK = """
import time

async def run(message, context):
    now = time.monotonic()
    context.stream("word ")
    return str(now)
"""


async def _agents(folder: Path) -> AsyncGenerator[Figure]:
    for name, text in (
        ("assistant", _ASSISTANT),
        ("clock", 'name = "clock"\nmodule = "python:agent.py"\n'),
    ):
        place = folder / "agents" / name
        place.mkdir(parents=True)
        (place / "agent.toml").write_text(text)
    (folder / "agents" / "clock" / "agent.py").write_text(_CLOCK)
    async with open_test_app(folder) as app:
        assert app.parts.agents
        agents = await app.parts.agents.opened()
        yield Figure("our own cost of a model step", await _step(app), "ms", 3)
        yield Figure("a streamed word is passed on after", await _first_word(app), "ms", 5)
        place = folder / "agents" / "new"
        place.mkdir()
        with Stopwatch() as watch:
            (place / "agent.toml").write_text('name = "new"\n')
            while "new" not in agents.running:  # noqa: ASYNC110 - measured, not waited for
                await anyio.sleep(0.01)
        yield Figure("a new manifest is live after", watch.seconds, "s", 1)


async def figures(folder: Path) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        return [*_scores(), *[figure async for figure in _agents(Path(name) / "home")]]
