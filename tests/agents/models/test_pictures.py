"""Pictures that come with a message are shown to models that see, once, and not kept for ever."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import PIL.Image
import pytest
from tests.agents.models.minds import settings, thinker, thinking
from tests.agents.models.scripted import Fails, Says, Want, scripted
from tests.agents.models.test_steps import MODELS, ask, ended
from tests.agents.test_node import ASSISTANT, put

from openfang.agents.attached import pictures
from openfang.core.agents import Image, Message, Speaker
from openfang.core.errors import SourceFailed
from openfang.core.usage import UsageQuery
from openfang.storage import sessions
from openfang.storage.ledger import LedgerStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.requirement("C6.5"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning"),
]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def part(data: bytes = PNG, kind: str = "image/png", **more: Any) -> dict[str, Any]:
    encoded = b64encode(data).decode()
    return {"type": "file", "name": "a.png", "mime_type": kind, "data": encoded, **more}


@pytest.mark.parametrize("provider", MODELS)
async def test_a_picture_is_shown_with_the_newest_message_alone(
    tmp_path: Path, provider: str
) -> None:
    thinker(tmp_path, provider=provider, model=MODELS[provider])
    with scripted(Says("a fig"), Says("as I said")) as server:
        config = settings(getattr(server, provider), provider=provider)
        async with thinking(tmp_path, config) as (app, _):
            first = await ask(app, "what is it?", parts=[part()])
            second = await ask(app, "sure?")

    assert (ended(first)[1], ended(second)[1]) == ("a fig", "as I said")
    shown = b64encode(PNG).decode()
    assert shown in str(server.asked[0].body)
    assert shown not in str(server.asked[1].body)
    assert "a.png (image/png, 28 bytes)" in str(server.asked[1].body)


def test_what_is_none_or_too_large_is_not_shown() -> None:
    wrong = [
        part(b"plain text"),
        part(PNG, kind="image/svg+xml"),
        part(PNG, kind="application/pdf"),
        part(PNG + b"\0" * 5_000_000),
        {"type": "file", "mime_type": "image/png", "uri": "http://127.0.0.1/a.png"},
        {"type": "file", "mime_type": "image/png", "data": "no base 64"},
        {"type": "text", "text": "hi"},
    ]
    assert list(pictures(wrong)) == []
    assert len(list(pictures([part()] * 20))) == 8


def test_pictures_are_kept_with_their_turn_up_to_a_bound() -> None:
    image = Image(media_type="image/png", data=PNG)
    message = Message(speaker=Speaker.USER, text="look", images=(image,))
    assert sessions._message("user", sessions.written(message)) == message
    large = Image(media_type="image/png", data=PNG * 200_000)
    kept = sessions.written(Message(speaker=Speaker.USER, text="look", images=(large,)))
    assert sessions._message("user", kept) == Message(speaker=Speaker.USER, text="look")


async def test_an_agent_looks_at_an_image_with_its_own_model(tmp_path: Path) -> None:
    thinker(tmp_path)
    manifest = tmp_path / "agents/thinker/agent.toml"
    manifest.write_text(manifest.read_text().replace('"builtin:file_*"', '"builtin:image_analyze"'))
    place = tmp_path / "workspaces/agent-thinker"
    place.mkdir(parents=True)
    PIL.Image.new("RGB", (3, 2), "red").save(place / "a.png")
    look = Want(tool="image_analyze", arguments={"path": "a.png", "prompt": "which colour?"})
    with scripted(Says("", [look]), Says("red, I see"), Says("It is red.")) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app)
            report = await LedgerStore(app.parts.database).report(
                UsageQuery(), None, time.time_ns()
            )

    assert ended(result) == ("answered", "It is red.")
    assert [(who, used.requests) for who, used in report.rows] == [("thinker", 3)]
    _, seen, last = server.asked
    assert seen.messages[0]["content"][0]["text"] == "which colour?"
    assert seen.messages[0]["content"][1]["type"] == "image_url"
    assert "red, I see" in last.messages[-1]["content"]


async def test_a_picture_is_not_looked_at_for_money_that_is_used_up(tmp_path: Path) -> None:
    thinker(tmp_path, more="[resources]\nmax_llm_tokens_per_hour = 1\n")
    with scripted(Says("a ripe fig")) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, agents):
            assert app.parts.agents
            see = app.parts.agents.see
            seeing = app.make("system_time", {}, caller=agents.find("thinker").spec.caller)
            assert await see(seeing, PNG, "image/png", "what is it?") == "a ripe fig"
            with pytest.raises(SourceFailed, match=r"the agent thinker is used up.*resets at"):
                await see(seeing, PNG, "image/png", "and now?")

    assert len(server.asked) == 1


async def test_a_tool_can_ask_the_agents_own_model_about_a_picture(tmp_path: Path) -> None:
    thinker(tmp_path)
    put(tmp_path, "assistant", ASSISTANT)
    with scripted(Says("a ripe fig"), Fails(401, "no")) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, agents):
            assert app.parts.agents
            see = app.parts.agents.see
            blind = app.make("system_time", {}, caller=agents.find("assistant").spec.caller)
            person = app.make("system_time", {})
            seeing = app.make("system_time", {}, caller=agents.find("thinker").spec.caller)
            assert await see(blind, PNG, "image/png", "what?") is None
            assert await see(person, PNG, "image/png", "what?") is None
            assert await see(seeing, PNG, "image/png", "what is it?") == "a ripe fig"
            with pytest.raises(SourceFailed, match="refused the key"):
                await see(seeing, PNG, "image/png", "what is it?")

    (asked,) = server.asked[0].messages
    assert asked["content"][0] == {"type": "text", "text": "what is it?"}
    assert server.asked[0].tools == []
