"""Resources, prompts and completions: calls like any other, in both eras, over pipes and HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.sources.mcp.federation import Node, Person, entry, node, web
from tests.sources.mcp.peers.federated_web import FederatedWeb
from tests.sources.mcp.peers.web import serving

from openfang.app.local import Local
from openfang.core.calls import Caller, Grants
from openfang.core.errors import (
    FlowRefused,
    InvalidArguments,
    OpenFangError,
    SourceFailed,
    UnknownTool,
)
from openfang.core.labels import Labels
from openfang.core.news import Updated
from openfang.core.tools import Effect, Risk, Trust
from openfang.core.trace import new_chain
from openfang.protocols.mcp.errors import BadAnswer
from openfang.registry.rules import DEFAULT_RULES
from openfang.sources.mcp.abilities import read_abilities
from openfang.sources.mcp.operations import operation_result, operations_of
from openfang.sources.mcp.spec import Http, ServerSpec, Stdio
from openfang.sources.mcp.watches import MOST_WATCHED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C1.6", "C3.10")
ERAS = ("handshake", "modern")
WAYS = [(era, way) for era in ERAS for way in ("stdio", "http")]
everywhere = pytest.mark.parametrize(("era", "way"), WAYS)


@asynccontextmanager
async def opened(
    folder: Path, era: str, way: str, *options: str, more: str = ""
) -> AsyncGenerator[Node]:
    if way == "stdio":
        async with node(folder, entry("peer", era, *options, more=more)) as it:
            yield it
        return
    async with (
        serving(FederatedWeb(era, *options)) as url,
        node(folder, web("peer", url, more)) as it,
    ):
        yield it


@everywhere
async def test_each_operation_gives_what_the_server_answers(
    tmp_path: Path, era: str, way: str
) -> None:
    async with opened(tmp_path, era, way) as it:
        read = await it.call("resources/read", uri="memo://7")
        assert read.content == (
            {
                "type": "resource",
                "resource": {
                    "uri": "memo://7",
                    "mimeType": "text/plain",
                    "text": "memo of memo://7",
                    "x-kept": 1,
                },
            },
            {"type": "resource", "resource": {"uri": "memo://7", "blob": "AAEC"}},
        )
        assert (read.extra, read.meta) == ({"ttlMs": 5}, {"a/b": 1})
        prompt = await it.call("prompts/get", name="greet0", arguments={"who": "Ada"})
        assert prompt.content == (
            {"type": "text", "text": "Greet Ada", "x-kept": 1, "role": "user"},
            {
                "type": "resource",
                "resource": {"uri": "memo://1", "text": "it"},
                "role": "assistant",
            },
        )
        assert prompt.extra == {"description": "A greeting"}
        ref = {"type": "ref/prompt", "name": "greet0"}
        argument = {"name": "who", "value": "par"}
        completed = await it.call("completion/complete", ref=ref, argument=argument)
        assert completed.structured == {"values": ["paris", "party"], "hasMore": False}
        assert completed.content == ()


@everywhere
async def test_an_error_of_the_server_is_an_answer_and_stays_what_it_is(
    tmp_path: Path, era: str, way: str
) -> None:
    async with opened(tmp_path, era, way) as it:
        read = await it.call("resources/read", uri="other://1")
        assert (read.is_error, read.fault) == (
            True,
            {"code": -32002, "message": "Resource not found", "data": {"uri": "other://1"}},
        )
        called = await it.call("refuse")
        assert called.text == "peer answered with error -32050: refused"
        assert called.fault == {"code": -32050, "message": "refused", "data": {"why": [1, 2]}}


@everywhere
async def test_who_watches_a_resource_hears_of_its_changes_until_they_do_not_want_to(
    tmp_path: Path, era: str, way: str
) -> None:
    async with opened(tmp_path, era, way) as it:
        await it.call("touch", uri="memo://1")
        await it.call("resources/subscribe", uri="memo://1")
        await it.call("resources/subscribe", uri="memo://2")
        await it.call("touch", uri="memo://1")
        await it.hears(Updated("peer", "memo://1"))
        await it.call("resources/unsubscribe", uri="memo://1")
        if era == "modern":
            await it.receives("subscriptions/listen", 4)
        await it.call("touch", uri="memo://1")
        await it.call("touch", uri="memo://2")
        await it.hears(Updated("peer", "memo://2"))
        assert it.heard.count(Updated("peer", "memo://1")) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_resource_is_watched_for_as_long_as_anybody_wants_it(
    tmp_path: Path, era: str
) -> None:
    ada, bob = Person(key="ada"), Person(key="bob")
    async with opened(tmp_path, era, "stdio") as it:
        await it.call("resources/subscribe", ada, uri="memo://1")
        await it.call("resources/subscribe", bob, uri="memo://1")
        for _ in range(3):  # nobody ends what another wants
            await it.call("resources/unsubscribe", ada, uri="memo://1")
        await it.call("touch", uri="memo://1")
        await it.hears(Updated("peer", "memo://1"))
        await it.call("resources/unsubscribe", bob, uri="memo://1")
        assert len(it.source()._watches) == 0
        methods = [one.get("method") for one in await it.seen()]
        assert methods.count("resources/subscribe") == (era == "handshake")
        assert methods.count("resources/unsubscribe") == (era == "handshake")


@pytest.mark.parametrize("era", ERAS)
async def test_what_was_watched_is_watched_again_after_a_break(tmp_path: Path, era: str) -> None:
    async with opened(tmp_path, era, "stdio") as it:
        await it.call("resources/subscribe", uri="memo://1")
        with pytest.raises(SourceFailed):
            await it.call("die")
        with anyio.fail_after(20):
            while Updated("peer", "memo://1") not in it.heard:
                try:
                    await it.call("touch", uri="memo://1")
                except OpenFangError:
                    await anyio.sleep(0.02)


async def test_there_is_a_limit_to_what_is_watched(tmp_path: Path) -> None:
    async with opened(tmp_path, "handshake", "stdio") as it:
        watches, connection = it.source()._watches, it.source()._connection
        assert connection
        for number in range(MOST_WATCHED):
            await watches.subscribe(connection, f"memo://{number}", "key:ada")
        refused = await it.call("resources/subscribe", uri="memo://one-more")
        assert refused.fault
        assert "1000" in refused.text
        await watches.subscribe(connection, "memo://7", "key:bob")


async def test_updates_of_what_nobody_watches_are_not_told(tmp_path: Path) -> None:
    async with opened(tmp_path, "handshake", "stdio") as it:
        await it.call("storm", method="notifications/resources/updated", times=100)
        assert not any(isinstance(news, Updated) for news in it.heard)
        await it.call("resources/subscribe", uri="memo://0")
        await it.call("storm", method="notifications/resources/updated", times=1)
        await it.hears(Updated("peer", "memo://0"))


async def test_operations_are_reached_by_their_ids_and_listed_nowhere(tmp_path: Path) -> None:
    async with opened(tmp_path, "modern", "stdio") as it:
        parts = it.app.parts
        listed = parts.catalog.list(it.app.caller)
        assert not [tool.id for tool in listed if "/" in tool.name]
        tool = parts.registry.find("mcp:peer:resources/read")
        assert tool
        assert (tool.wire_name, tool.operation, tool.risk) == ("", True, Risk.LOW)
        assert (tool.tags, tool.effects, tool.lane) == (frozenset(), frozenset(), "mcp:peer")
        assert await it.audited(tool.id) == []
        await it.call("resources/read", uri="memo://7")
        assert [event.event_type for event in await it.audited(tool.id)] == [
            "policy_decision",
            "tool_invocation_start",
            "tool_invocation_end",
        ]


async def test_what_is_not_announced_cannot_be_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, "modern", "stdio", "only=tools,completions") as it:
        operations = [tool.name for tool in it.source().tools() if tool.operation]
        assert operations == ["completion/complete"]
        with pytest.raises(UnknownTool):
            await it.call("resources/read", uri="memo://7")


async def test_the_operators_word_on_tools_holds_for_operations_too(tmp_path: Path) -> None:
    more = 'allow_tools = ["echo", "seen", "prompts/get"]\ntools."prompts/get".risk = "MEDIUM"'
    async with opened(tmp_path, "handshake", "stdio", more=more) as it:
        found = {tool.name: tool.risk for tool in it.source().tools()}
        assert found == {"echo": Risk.LOW, "seen": Risk.LOW, "prompts/get": Risk.MEDIUM}
        assert it.source().resources == ()
        assert await it.params("resources/list") == []


async def test_who_may_not_see_a_server_may_not_read_its_resources(tmp_path: Path) -> None:
    other = Caller(id="key:bob", grants=Grants(tools=("mcp:peer:echo",)), projects=("default",))
    async with opened(tmp_path, "handshake", "stdio") as it:
        call = it.app.make("mcp:peer:resources/read", {"uri": "memo://7"}, caller=other)
        with pytest.raises(UnknownTool):
            await it.app.invoke(call)


async def test_a_tool_with_the_name_of_an_operation_is_none(tmp_path: Path) -> None:
    option = "tools=resources/read,other/tool"
    async with opened(tmp_path, "handshake", "stdio", option, "only=tools") as it:
        assert "resources/read" in it.source().rejected
        assert it.app.parts.registry.find("mcp:peer:resources/read") is None
        assert it.app.parts.registry.find("mcp:peer:other/tool")


@pytest.mark.requirement("C9.1", "C9.2")
@pytest.mark.parametrize("trust", Trust)
def test_what_is_read_elsewhere_is_as_trusted_as_the_server_and_its_address_is_a_target(
    trust: Trust,
) -> None:
    everything = read_abilities({"resources": {}, "prompts": {}, "completions": {}})
    for reached in (Http(url="https://example.com/mcp"), Stdio(argv=("x",), cwd=Path("/"))):
        spec = ServerSpec(name="peer", reached=reached, trust=trust)
        tools = {tool.name: tool for tool in operations_of(spec, everything, DEFAULT_RULES)}
        outside = trust is Trust.LOW or (spec.remote and trust is not Trust.HIGH)
        for name in ("prompts/get", "completion/complete"):
            assert bool(tools[name].labels & Labels.EXTERNAL_NETWORK) is outside
            assert tools[name].sink.external is spec.remote
        read = tools["resources/read"]
        assert bool(read.labels & Labels.EXTERNAL_NETWORK) is (trust is not Trust.HIGH)
        assert read.sink.targets == ("uri",)
        assert read.sink.effect is (Effect.EXTERNAL_READ if spec.remote else Effect.NONE)
        assert all(tool.trust is trust and not tool.effects for tool in tools.values())


async def test_no_secret_leaves_in_an_address(tmp_path: Path) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6
    async with opened(tmp_path, "modern", "http") as it:
        with pytest.raises(FlowRefused):
            await it.call("resources/read", uri=f"memo://{secret}")
        assert await it.params("resources/read") == []


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("resources/read", {}),
    ("resources/read", {"uri": 5}),
    ("resources/read", {"uri": "memo://1", "more": 1}),
    ("prompts/get", {"name": "greet0", "arguments": {"who": 5}}),
    ("completion/complete", {"ref": {}}),
]


async def test_wrong_arguments_never_reach_the_server(tmp_path: Path) -> None:
    async with opened(tmp_path, "handshake", "stdio") as it:
        for operation, arguments in WRONG:
            with pytest.raises(InvalidArguments):
                await it.call(operation, **arguments)
            assert await it.params(operation) == []


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("resources/read", {"contents": None}),
        ("prompts/get", {"messages": {"role": "user"}}),
        ("completion/complete", {"completion": []}),
        ("completion/complete", {}),
    ],
)
def test_an_answer_of_the_wrong_shape_is_a_bad_one(name: str, body: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer):
        operation_result(name, body)


def test_messages_of_every_shape_become_parts() -> None:
    said = {"type": "text", "text": "hello"}
    messages = [
        {"role": "user", "content": [said, said]},
        {"role": 5, "content": "words"},
        {"role": "assistant"},
        7,
    ]
    found = operation_result("prompts/get", {"messages": messages, "_meta": 5})
    assert [(part["role"], part["text"]) for part in found.content] == [
        ("user", "hello"),
        ("user", "hello"),
        ("user", "words"),
        ("assistant", "None"),
    ]


async def test_a_server_that_sleeps_is_woken_by_an_operation(tmp_path: Path) -> None:
    lazy = entry("peer", "handshake", more="lazy = true")
    async with node(tmp_path / "home", lazy) as it:
        assert (await it.call("echo", text="awake")).text == "awake"
    async with node(tmp_path / "home", lazy, lists=False) as it:
        local = Local(it.app.parts, it.app.caller, new_chain())
        result = await local.call("mcp:peer:resources/read", {"uri": "memo://7"})
        assert len(result.content) == 2
