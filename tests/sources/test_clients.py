"""A client as a source: asked in its own calls only, and by nobody but the pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.sources.mcp.federation import Person

from openfang.core.calls import Caller, Grants
from openfang.core.clients import QUESTIONS, client_key
from openfang.core.errors import CallTimedOut, SourceFailed, UnknownTool
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.sources.clients import ClientSource
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C1.6")
ASKER = Caller(id="mcp:peer", grants=Grants(tools=("client:ada:*",)), projects=("default",))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    async with open_test_app(tmp_path) as opened:
        check = opened.parts.pipeline.stamper.check
        opened.parts.add(Kind.CLIENT, ClientSource("ada", check))
        yield opened


@pytest.mark.parametrize("method", QUESTIONS)
async def test_a_question_goes_through_the_path_to_the_client(app: OpenApp, method: str) -> None:
    person = Person()
    call = app.make(f"client:ada:{method}", {"a": [1]}, caller=ASKER)
    result = await app.invoke(replace(call, client=person))
    assert person.asked == [(method, {"a": [1]})]
    assert result.structured
    assert result.receipt


async def test_nobody_is_asked_but_the_client_of_the_call(app: OpenApp) -> None:
    call = app.make("client:ada:roots/list", {}, caller=ASKER)
    for client in (None, Person(key="bob")):
        with pytest.raises(SourceFailed):
            await app.invoke(replace(call, client=client))


async def test_who_was_not_granted_it_does_not_know_the_client(app: OpenApp) -> None:
    other = replace(ASKER, grants=Grants(tools=("client:bob:*", "mcp:*")))
    with pytest.raises(UnknownTool):
        await app.invoke(app.make("client:ada:roots/list", {}, caller=other))


def test_a_question_has_ten_minutes_and_words_cost_something() -> None:
    tools = {tool.name: tool for tool in ClientSource("ada", lambda _: None).tools()}
    assert {tool.timeout for tool in tools.values()} == {600}
    assert {name: tool.risk for name, tool in tools.items()} == {
        "sampling/createMessage": Risk.MEDIUM,
        "elicitation/create": Risk.LOW,
        "roots/list": Risk.LOW,
    }
    assert all(tool.operation and not tool.effects for tool in tools.values())


async def test_a_question_takes_no_longer_than_it_may(app: OpenApp) -> None:
    async def never(params: object) -> dict[str, object]:
        del params
        await anyio.sleep_forever()
        raise AssertionError

    source = ClientSource("bob", app.parts.pipeline.stamper.check)
    source._tools = [replace(tool, timeout=0.05) for tool in source._tools]
    app.parts.add(Kind.CLIENT, source)
    caller = replace(ASKER, grants=Grants(tools=("client:bob:*",)))
    call = app.make("client:bob:roots/list", {}, caller=caller)
    with pytest.raises(CallTimedOut):
        await app.invoke(replace(call, client=Person(key="bob", answers={"roots/list": never})))


def test_a_key_is_known_by_its_name_and_others_by_what_stands_for_theirs() -> None:
    assert client_key("key:ada") == "ada"
    assert client_key("local-mcp") == "local-mcp"
    assert client_key("oauth:me:you") == "oauth-me-you"
