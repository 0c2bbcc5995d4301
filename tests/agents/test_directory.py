"""`agent_list`, `agent_find`, `agent_spawn`, `agent_kill`: by effect, by refusal, by bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.agents.test_node import node, put

from openfang.core.calls import Grants, Role
from openfang.core.errors import InvalidArguments, PolicyViolation
from openfang.policy.grants import covers, exceeding

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.calls import Caller
    from openfang.core.results import Result
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C6.2", "C6.6")


def stranger(app: OpenApp, **grants: Any) -> Caller:
    held = Grants(tools=("builtin:*",), **grants)
    return replace(app.caller, id="key:stranger", role=Role.USER, grants=held)


async def call(app: OpenApp, caller: Caller, tool: str, **arguments: Any) -> Result:
    return await app.invoke(app.make(tool, arguments, caller=caller))


async def test_agents_are_listed_and_found_for_who_may_call_them(tmp_path: Path) -> None:
    put(tmp_path, "baker", 'description = "Bakes bread."\ntags = ["food"]\n')
    put(tmp_path, "smith", 'description = "Forges iron."\n')
    async with node(tmp_path) as (app, _):
        who = stranger(app, agents=("baker", "smith"))
        listed = await call(app, who, "agent_list")
        found = await call(app, who, "agent_find", query="FOOD")
        none = await call(app, stranger(app, agents=()), "agent_list")
        with pytest.raises(InvalidArguments):
            await call(app, who, "agent_find", query="")

    assert [one["name"] for one in listed.structured["agents"]] == ["baker", "smith"]
    assert [one["name"] for one in found.structured["agents"]] == ["baker"]
    assert none.text == "There is no agent that you may call."


async def test_who_was_spawned_answers_until_it_is_killed(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, agents):
        who = stranger(app, agent_spawn=True, agent_kill=("tem*",))
        manifest = 'name = "temp"\n[capabilities]\ntools = ["builtin:system_time"]\n'
        assert (await call(app, who, "agent_spawn", manifest_toml=manifest)).text == "Started temp."
        answer = await app.call("agent:temp", message="what time is it?")
        assert answer.text.startswith("20")

        twice = await call(app, who, "agent_spawn", manifest_toml=manifest)
        assert twice.is_error
        assert "There is an agent temp already" in twice.text

        assert (await call(app, who, "agent_kill", agent_id="temp")).text == "Ended temp."
        assert "temp" not in agents.running
        gone = await call(app, who, "agent_kill", agent_id="temp")
        assert gone.is_error


async def test_without_the_grant_nobody_is_spawned_or_killed(tmp_path: Path) -> None:
    async with node(tmp_path) as (app, agents):
        who = stranger(app)
        with pytest.raises(PolicyViolation, match="may start no agents"):
            await call(app, who, "agent_spawn", manifest_toml='name = "temp"')
        with pytest.raises(PolicyViolation, match="may not end assistant"):
            await call(app, who, "agent_kill", agent_id="assistant")

        assert "temp" not in agents.running


async def test_an_agent_with_a_manifest_is_not_killed_but_removed(tmp_path: Path) -> None:
    put(tmp_path, "lasting")
    async with node(tmp_path) as (app, agents):
        answer = await app.call("agent_kill", agent_id="lasting")

        assert "remove agents/lasting" in answer.text
        assert "lasting" in agents.running


@pytest.mark.parametrize(
    ("granted", "glob", "covered"),
    [
        (("*",), "anything*", True),
        (("file_*",), "file_read", True),
        (("file_*",), "file_r*", True),
        (("file_*",), "*", False),
        (("file_?",), "file_*", False),
        (("file_[ab]",), "file_[ab]", True),
        (("file_*",), "file_[ab]", False),
        ((), "a", False),
    ],
)
def test_a_glob_is_covered_only_if_all_of_it_is(
    granted: tuple[str, ...], glob: str, *, covered: bool
) -> None:
    assert covers(granted, glob) is covered


def test_what_exceeds_is_named() -> None:
    wanted = Grants(tools=("a", "b"), network=("*",), agents=("x",), agent_spawn=True)

    assert exceeding(wanted, Grants(tools=("a",), agents=("x",))) == [
        "tools b",
        "network *",
        "agent_spawn",
    ]
