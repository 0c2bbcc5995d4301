"""After `kill -9` a run goes on in the next daemon, and repeats nothing that it had finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.agents.test_node import ASSISTANT, put

from openfang.agents.sessions import Interrupted
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.4", "C15.3")


async def test_what_was_begun_and_may_not_be_repeated_is_not_and_the_rest_is(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    read = Wish(id="w1", tool="memory_recall", arguments={"key": "colour"})
    time = Wish(id="w2", tool="system_time", arguments={})
    async with open_test_app(tmp_path) as app:
        assert app.parts.agents
        with anyio.fail_after(30):
            agents = await app.parts.agents.opened()
            sessions = agents.sessions
            opened = await sessions.open("assistant", app.caller.id, "default", most=20)
            run, none = new_id("run"), Labels.NONE
            asked = Message(speaker=Speaker.USER, text="two things, please")
            wanted = Message(speaker=Speaker.AGENT, wishes=(read, time))
            await sessions.begin(opened.id, run, asked, none)
            await sessions.said(opened.id, run, wanted)
            await sessions.begun(run, read)
            before = Interrupted(
                run=run,
                session=opened.id,
                name="default",
                agent="assistant",
                caller=app.caller.id,
                labels=none,
                first=1,
                turns=[asked, wanted],
                begun=frozenset({"w1"}),
            )
            await agents._resume(before)
            after = await sessions.open("assistant", app.caller.id, "default", most=20)

    answered = {turn.answers: turn for turn in after.history if turn.speaker is Speaker.TOOL}
    assert set(answered) == {"w1", "w2"}
    assert "Nothing is remembered" in answered["w1"].text
    assert after.history[-1].speaker is Speaker.AGENT
    assert after.history[-1].text
