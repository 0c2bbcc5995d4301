"""The examples of the docs, each from its manifest to its answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread
from tests.agents.code.stage import stage

from openfang.agents.spec import AgentSpec, Program
from openfang.config.manifests import read_manifests
from openfang.core.agents import Wanted, Words
from openfang.core.errors import PolicyViolation
from openfang.core.results import error_result, text_result

if TYPE_CHECKING:
    from tests.agents.code.stage import Stage

    from openfang.config.manifest_models import Manifest
    from openfang.core.agents import Wish
    from openfang.core.results import Result

pytestmark = [pytest.mark.requirement("C6.1"), pytest.mark.needs("bwrap")]
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


async def example(on: Stage, name: str) -> AgentSpec:
    """Read an example's manifest. Its packages are the ones that the tests have."""
    manifests, _ = await to_thread.run_sync(read_manifests, EXAMPLES)
    return _spec(on, manifests[name])


def _spec(on: Stage, manifest: Manifest) -> AgentSpec:
    _, file, *function = manifest.module.split(":")
    program = Program(
        file=EXAMPLES / "agents" / manifest.name / file,
        requirements=manifest.requirements,
        memory_bytes=manifest.resources.max_memory_bytes,
        cpu_seconds=manifest.resources.max_cpu_time_ms / 1000,
    )
    if function:
        program = replace(program, function=function[0])
    return AgentSpec(
        name=manifest.name,
        does=replace(program, requirements=()),
        grants=manifest.grants(),
        workspace=on.home / "workspaces" / manifest.name,
    )


async def noon(wish: Wish) -> Result:
    """A node whose clock stands still, and that remembers nothing."""
    match wish.tool:
        case "system_time":
            return text_result("noon")
        case "memory_recall":
            return error_result("Nothing is remembered.")
        case "memory_store":
            return text_result("Remembered.")
        case tool:
            raise PolicyViolation(f"{tool} is not granted")


async def test_the_echo_says_it_word_by_word(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        ended = await on.say(await example(on, "echo"), "good day")
        assert ended.answer == "good day"
        assert on.heard == [Words("good "), Words("day "), ended]


async def test_the_plain_one_calls_tools_without_awaiting(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        ended = await on.say(await example(on, "plain"), "hello", call=noon)
        assert ended.answer == "You asked 1 times. The time is noon."
        assert [one.wish.tool for one in on.heard if isinstance(one, Wanted)] == [
            *("memory_recall", "memory_store", "system_time")
        ]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("pydantic_ai", '{"clock":"noon"}'), ("langgraph", "hello: it is noon")],
)
async def test_a_framework_is_hosted_and_its_tools_take_the_path(
    tmp_path: Path, name: str, answer: str
) -> None:
    async with stage(tmp_path) as on:
        ended = await on.say(await example(on, name), "hello", call=noon)
        assert ended.answer == answer
        assert [one.wish.tool for one in on.heard if isinstance(one, Wanted)] == ["system_time"]
