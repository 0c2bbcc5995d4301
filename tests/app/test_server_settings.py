"""What each setting of a server does, seen from outside: the same call, with and without it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from pydantic import SecretStr
from tests.peers.servers import Server, toml
from tests.sources.mcp.hostility import until
from tests.sources.mcp.peers.web import Modern, serving

from openfang.app.admin import Admin
from openfang.app.servers.census import server_body
from openfang.core.calls import Mode
from openfang.core.errors import CallFailed, CallRefused, CallTimedOut, PolicyViolation
from openfang.core.keys import AdminToken
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Trust
from openfang.policy.context import Wish
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

pytestmark = pytest.mark.requirement("C2.1", "C2.8")

PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "errands.py"
PLANNING = Wish(mode=Mode.PLANNING)
NO_HINTS: dict[str, bool] = {}


def server(
    name: str = "it", /, *tools: str, hints: Mapping[str, bool] = NO_HINTS, **keys: Any
) -> Server:
    """One that runs errands; outside of a sandbox unless the keys say otherwise."""
    words = [f"{tool}={json.dumps(hints)}" for tool in tools or ("get_note",)]
    return Server(
        name=name,
        command=sys.executable,
        args=("-I", "-S", str(PEER), *words),
        keys={"sandbox": "off", **keys},
    )


def address(name: str, url: str, *more: str, kind: str = "http", **keys: object) -> str:
    lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
    reached = ", ".join((f'type = "{kind}"', f'url = "{url}"', *more))
    head = ["[[mcp_servers]]", f'name = "{name}"', *lines]
    return "\n".join([*head, f"transport = {{ {reached} }}", ""])


@asynccontextmanager
async def node(
    folder: Path, *servers: Server | str, config: str = "", **variables: str
) -> AsyncGenerator[OpenApp]:
    entries = (one if isinstance(one, str) else one.entry for one in servers)
    environ = {"HOME": str(folder), **variables}
    text = "\n".join((config, *entries))
    async with open_test_app(folder / "node", config=text, environ=environ) as app:
        assert app.parts.servers
        with anyio.fail_after(100):
            await app.parts.servers.settled()
            yield app


async def rule_of(app: OpenApp, tool: str, /, **fields: Any) -> str:
    """The rule by which the call does not run, or nothing."""
    arguments = fields.pop("arguments", {})
    try:
        await app.invoke(app.make(f"mcp:{tool}", arguments, **fields))
    except CallRefused as error:
        return error.rule
    except CallFailed as error:
        return error.code
    return ""


async def ran(app: OpenApp, server: str, errand: str, text: object) -> str:
    """What a server brings back from an errand."""
    return (await app.call(f"mcp:{server}:get_note", errand=errand, text=str(text))).text


def risk_of(app: OpenApp, tool: str) -> tuple[Risk, set[str]]:
    found = app.parts.registry.find(f"mcp:{tool}")
    assert found
    return found.risk, set(found.tags)


# Reaching it


async def test_a_child_has_the_variables_that_are_listed_in_either_form(tmp_path: Path) -> None:
    servers = (
        server("names", env=["FIRST_WORD"]),
        server("values", env={"WORDS": "${FIRST_WORD} and more", "PLAIN": "as it is"}),
        server("none"),
    )
    async with node(tmp_path, *servers, FIRST_WORD="hello", SECOND_WORD="hidden") as app:
        look = partial(ran, app)
        assert await look("names", "variable", "FIRST_WORD") == "hello"[::-1]
        assert await look("names", "variable", "SECOND_WORD") == "unset"[::-1]
        assert await look("values", "variable", "WORDS") == "hello and more"[::-1]
        assert await look("values", "variable", "PLAIN") == "as it is"[::-1]
        assert await look("values", "variable", "FIRST_WORD") == "unset"[::-1]
        assert await look("none", "variable", "FIRST_WORD") == "unset"[::-1]


@pytest.mark.requirement("C3.1")
@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_an_address_is_reached_with_its_headers(tmp_path: Path, kind: str) -> None:
    peer = Modern()
    headers = 'headers = { Authorization = "Bearer ${A_TOKEN}", X-Plain = "as it is" }'
    async with serving(peer) as url:
        entry = address("far", url, headers, kind=kind, allow_private=True, risk="LOW")
        async with node(tmp_path, entry, A_TOKEN="not-told-to-others") as app:
            assert (await app.call("mcp:far:echo", text="hello")).text == "hello"
    assert peer.header("tools/call", "Authorization") == "Bearer not-told-to-others"
    assert peer.header("tools/call", "X-Plain") == "as it is"


async def test_a_server_that_is_not_enabled_is_not_there(tmp_path: Path) -> None:
    async with node(tmp_path, server("off", enabled=False), server("on")) as app:
        assert await rule_of(app, "off:get_note") == "unknown_tool"
        assert await rule_of(app, "on:get_note") == ""
        assert app.parts.servers
        assert app.parts.servers.health() == {"on": "healthy"}


@pytest.mark.requirement("C13.3")
async def test_a_server_that_runs_once_is_like_any_other_where_there_is_one_node(
    tmp_path: Path,
) -> None:
    async with node(tmp_path, server("once", singleton=True)) as app:
        assert await rule_of(app, "once:get_note") == ""
        assert app.parts.servers
        assert app.parts.servers.health() == {"once": "healthy"}
        shown = server_body(app.parts, "once")
        assert (shown["singleton"], shown["node"], app.parts.once) == (True, None, None)


async def test_a_call_has_the_servers_seconds_and_a_tool_may_have_its_own(tmp_path: Path) -> None:
    own = {"get_time": {"timeout_secs": 0.2}}
    servers = (
        server("brief", timeout_secs=0.2),
        server("patient", "get_note", "get_time", timeout_secs=90, tools=own),
    )
    async with node(tmp_path, *servers) as app:
        for tool, seconds in (("brief:get_note", "0.2"), ("patient:get_time", "0.2")):
            with pytest.raises(CallTimedOut, match=f"within {seconds} s"):
                await app.call(f"mcp:{tool}", errand="hang")
        found = app.parts.registry.find("mcp:patient:get_note")
        assert found
        # More than a minute is for the operator to say, and holds for the whole path.
        assert found.timeout == 90


async def test_so_many_calls_reach_a_server_at_once(tmp_path: Path) -> None:
    async with node(tmp_path, server(max_concurrency=2)) as app:
        slots = app.parts.pipeline.guards.slots
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(partial(app.call, "mcp:it:get_note", errand="hang"))
            await until(lambda: slots.used("mcp:it") == 2)
            group.start_soon(partial(app.call, "mcp:it:get_note", text="third"))
            await until(lambda: slots.waiting("mcp:it") == 1)
            group.cancel_scope.cancel()
        assert (await app.call("mcp:it:get_note", text="free again")).text == "free again"


@pytest.mark.requirement("C2.6", "C3.2")
async def test_a_program_that_is_installed_later_is_found_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "program"
    late = Server(name="late", command=str(program), args=("get_note",), keys={"sandbox": "off"})
    async with node(tmp_path, late, server("good")) as app:
        servers = app.parts.servers
        assert servers
        assert servers.health() == {"good": "healthy", "late": "unhealthy"}
        reason = f"The program {program} was not found."
        assert servers.find("late").health.error == reason
        assert f"MCP server late is not connected: {reason}" in caplog.messages
        await to_thread.run_sync(_install, program)
        await until(lambda: servers.find("late").connected)
        assert (await app.call("mcp:late:get_note", text="at last")).text == "at last"


def _install(program: Path) -> None:
    whole = program.with_suffix(".whole")
    whole.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{PEER}" get_note\n')
    whole.chmod(0o755)
    whole.rename(program)


@pytest.mark.requirement("C2.6", "C2.9")
async def test_a_reason_is_the_one_of_now(tmp_path: Path) -> None:
    async with node(tmp_path, server("it", env={"WORD": "${FIRST_WORD}"})) as app:
        servers = app.parts.servers
        assert servers
        assert "FIRST_WORD is not set" in servers.find("it").health.error
        assert not servers.find("it").spec.remote
        (entry,) = app.parts.config.mcp_servers
        other = entry.model_copy(update={"env": {"WORD": SecretStr("${SECOND_WORD}")}})
        config = app.parts.config.model_copy(update={"mcp_servers": (other,)})
        servers.apply(config)
        await servers.find("it").settled()
        assert "SECOND_WORD is not set" in servers.find("it").health.error


# What the operator says of it


@pytest.mark.requirement("C7.3")
async def test_tools_that_are_not_allowed_do_not_exist(tmp_path: Path) -> None:
    one = server("it", "get_note", "get_time", allow_tools=["get_time"])
    async with node(tmp_path, one, server("all", "get_note", "get_time")) as app:
        listed = {
            tool.id for tool in app.parts.catalog.list(app.caller) if tool.source != "builtin"
        }
        assert listed == {"mcp:it:get_time", "mcp:all:get_note", "mcp:all:get_time"}
        assert await rule_of(app, "it:get_note") == "unknown_tool"
        assert await rule_of(app, "it:get_time") == ""


@pytest.mark.requirement("C7.6")
async def test_a_denied_side_effect_is_refused_by_gate_5_in_the_seeds_words(tmp_path: Path) -> None:
    tools = ("write_file", "read_file")
    servers = (
        server("it", *tools, risk="LOW", deny_side_effect_tags=["fs.write"]),
        server("other", *tools, risk="LOW"),
    )
    async with node(tmp_path, *servers) as app:
        with pytest.raises(PolicyViolation) as refused:
            await app.call("mcp:it:write_file")
        assert refused.value.message == "Policy violation: Side effect fs.write is blacklisted"
        assert [one.gate for one in refused.value.verdicts if one.verdict == "deny"] == ["policy"]
        assert await rule_of(app, "it:read_file") == ""
        assert await rule_of(app, "other:write_file") == ""


@pytest.mark.requirement("C11.1", "C11.4")
async def test_trust_decides_who_is_asked_and_whose_word_lowers_a_risk(tmp_path: Path) -> None:
    tools = ("note_it", "get_note", "write_file")
    hints = {"readOnlyHint": True}
    levels = ("low", "medium", "high")
    servers = [server(trust, *tools, hints=hints, trust=trust) for trust in levels]
    async with node(tmp_path, *servers) as app:
        effects = [await rule_of(app, f"{trust}:note_it") for trust in levels]
        assert effects == ["low_trust", "", ""]
        assert [await rule_of(app, f"{trust}:get_note") for trust in levels] == ["", "", ""]
        writes = [await rule_of(app, f"{trust}:write_file") for trust in levels]
        assert writes == ["low_trust+spec_not_frozen", "spec_not_frozen", ""]
        assert risk_of(app, "medium:note_it") == (Risk.MEDIUM, {"unknown"})
        assert risk_of(app, "high:note_it") == (Risk.LOW, set())
        proofs = [
            event.payload["evidence"]["trust"]
            for event in await app.events()
            if "evidence" in event.payload
        ]
        assert proofs == ["medium"]


@pytest.mark.requirement("C11.4")
async def test_who_is_far_away_or_may_change_has_low_trust_unless_it_is_said(
    tmp_path: Path,
) -> None:
    peer = Modern()
    peer.tools = [{"name": "note_it", "inputSchema": {"type": "object"}}]
    async with serving(peer) as url:
        servers = (
            address("far", url, allow_private=True),
            address("said", url, allow_private=True, trust="medium"),
            server("near", "note_it"),
        )
        async with node(tmp_path, *servers) as app:
            names = ("far", "said", "near")
            rules = [await rule_of(app, f"{name}:note_it") for name in names]
    assert rules == ["low_trust", "", ""]


@pytest.mark.requirement("C11.4")
async def test_a_package_that_may_change_under_our_feet_has_low_trust(tmp_path: Path) -> None:
    for runner in ("npx", "uvx"):
        await to_thread.run_sync(_install, tmp_path / runner)
    commands = {
        "npx": ("npx", "-y", "@scope/notes"),
        "npx-pinned": ("npx", "-y", "@scope/notes@1.2.3"),
        "npx-moving": ("npx", "-y", "@scope/notes@latest"),
        "uvx": ("uvx", "notes"),
        "uvx-pinned": ("uvx", "notes==1.2.3"),
    }
    servers = [
        Server(name=name, command=str(tmp_path / runner), args=args, keys={"sandbox": "off"})
        for name, (runner, *rest) in commands.items()
        for args in [tuple(rest)]
    ]
    async with node(tmp_path, *servers) as app:
        found = {name: app.parts.registry.find(f"mcp:{name}:get_note") for name in commands}
    low = {name for name, tool in found.items() if tool and tool.trust is Trust.LOW}
    assert all(found.values())
    assert low == {"npx", "npx-moving", "uvx"}


@pytest.mark.requirement("C11.1")
async def test_a_risk_holds_for_all_tools_but_those_that_have_their_own(tmp_path: Path) -> None:
    tools = ("get_note", "write_file")
    own = {"write_file": {"risk": "LOW", "tags": ["fs.read"]}}
    servers = (server("graver", *tools, risk="HIGH", tools=own), server("plain", *tools))
    async with node(tmp_path, *servers) as app:
        assert risk_of(app, "plain:get_note") == (Risk.LOW, set())
        assert await rule_of(app, "plain:write_file") == "spec_not_frozen"
        assert risk_of(app, "graver:get_note") == (Risk.HIGH, {"unknown"})
        assert await rule_of(app, "graver:get_note") == "spec_not_frozen"
        assert risk_of(app, "graver:write_file") == (Risk.LOW, {"fs.read"})
        assert await rule_of(app, "graver:write_file", wish=PLANNING) == ""


async def test_a_tool_can_be_switched_off_tagged_and_tied_to_a_token(tmp_path: Path) -> None:
    said = {
        "get_off": {"enabled": False},
        "get_tagged": {"tags": ["payments"]},
        "get_tied": {"requires_admin_token": True},
    }
    one = server("it", "get_off", "get_tagged", "get_tied", "get_note", tools=said)
    async with node(tmp_path, one) as app:
        listed = {tool.name for tool in app.parts.catalog.list(app.caller) if tool.source == "it"}
        assert listed == {"get_tagged", "get_tied", "get_note"}
        assert await rule_of(app, "it:get_off") == "tool_disabled"
        assert await rule_of(app, "it:get_note", wish=PLANNING) == ""
        assert await rule_of(app, "it:get_tagged", wish=PLANNING) == "planning_mode"
        assert await rule_of(app, "it:get_tied") == "admin_token_missing"
        admin = Admin(app.parts, app.caller)
        _, token = await admin.create_token(AdminToken(id="", name="second"), ttl=60)
        assert await rule_of(app, "it:get_tied", admin_token=token) == ""


@pytest.mark.requirement("C9.2", "C9.3")
async def test_effect_and_targets_are_what_the_flow_rules_read(tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "get_act": {"effect": "exec"},
        "get_away": {"effect": "none", "targets": ["text"]},
        "get_note": {"effect": "none", "targets": []},
    }
    one = server("it", "get_act", "get_away", "get_note", tools=said)
    secret: dict[str, Any] = {"arguments": {"text": "ghp_" + "a1B2" * 9}}
    async with node(tmp_path, one) as app:
        outside = {"labels": Labels.EXTERNAL_NETWORK}
        assert await rule_of(app, "it:get_act", **outside) == "untrusted_act"
        assert await rule_of(app, "it:get_note", **outside) == ""
        assert await rule_of(app, "it:get_away", **secret) == "secret_leaves"
        assert await rule_of(app, "it:get_note", **secret) == ""


@pytest.mark.requirement("C10.2")
async def test_a_tool_that_polls_may_repeat_itself(tmp_path: Path) -> None:
    config = (
        "[loops]\nwarn = 1\nblock = 2\npoll_factor = 2\noutcome_warn = 50\noutcome_block = 60\n"
    )
    said = {"get_state": {"polls": True}}
    async with node(
        tmp_path, server("it", "get_state", "get_note", tools=said), config=config
    ) as app:
        for tool, most in (("get_note", 1), ("get_state", 3)):
            rules = [await rule_of(app, f"it:{tool}", run=tool) for _ in range(most + 1)]
            assert rules == [""] * most + ["identical_calls"]


WORDS = """\
[classify]
critical = ["frob"]
high = ["blub"]
medium = ["knit"]
low = ["wend"]
tags = { quux = ["payments"] }
"""


@pytest.mark.requirement("C11.2")
async def test_the_operators_words_change_what_foreign_tools_are_taken_for(tmp_path: Path) -> None:
    tools = ("frob_it", "blub_it", "wend_it", "get_knit", "get_quux")
    async with node(tmp_path / "without", server("it", *tools)) as app:
        unknown = (Risk.MEDIUM, {"unknown"})
        found = [risk_of(app, f"it:{tool}") for tool in tools]
        assert found == [*[unknown] * 3, *[(Risk.LOW, set())] * 2]
    config = f'[policy]\nprofile = "seed"\n{WORDS}'
    async with node(tmp_path / "with", server("it", *tools), config=config) as app:
        risks = [risk_of(app, f"it:{tool}")[0] for tool in tools]
        assert risks == [Risk.CRITICAL, Risk.HIGH, Risk.LOW, Risk.MEDIUM, Risk.LOW]
        admin = Admin(app.parts, app.caller)
        spec = await admin.freeze_spec("plan", b"the plan", "default")
        frozen = Wish(project_id="default", spec_hash=spec.hash)
        rules = [await rule_of(app, f"it:{tool}") for tool in tools]
        assert rules == ["spec_not_frozen", "spec_not_frozen", "", "", ""]
        rules = [await rule_of(app, f"it:{tool}", wish=frozen) for tool in tools]
        assert rules == ["admin_token_missing", "", "", "", ""]
        rules = [await rule_of(app, f"it:{tool}", wish=PLANNING) for tool in tools[2:]]
        assert rules == ["", "", "planning_mode"]


@pytest.mark.requirement("C2.9")
async def test_other_words_hold_for_a_server_that_runs_and_goes_on(tmp_path: Path) -> None:
    async with node(tmp_path, server("it", "frob_it")) as app:
        assert app.parts.servers
        connection = app.parts.servers.running["it"]._connection
        before = app.parts.config
        changed = before.model_copy(
            update={"classify": before.classify.model_copy(update={"critical": ("frob",)})}
        )
        app.parts.servers.apply(changed)
        assert risk_of(app, "it:frob_it")[0] is Risk.CRITICAL
        assert app.parts.servers.running["it"]._connection is connection


@pytest.mark.requirement("C18.3")
async def test_a_secret_in_what_a_server_offers_is_not_shown(tmp_path: Path) -> None:
    config = server("it", "get_sk-live-5f2a9c81d0e4b7", env={"A_TOKEN": "sk-live-5f2a9c81d0e4b7"})
    async with node(tmp_path, config) as app:
        assert app.parts.servers
        app.parts.redactor.learn(["sk-live-5f2a9c81d0e4b7"])
        assert await app.parts.servers.refresh() == {"it": ""}
        shown = [
            f"{tool.id} {tool.description}" for tool in app.parts.servers.running["it"].tools()
        ]
        assert shown
        assert not any("5f2a9c81" in one for one in shown)


# What holds a child


@asynccontextmanager
async def page() -> AsyncGenerator[tuple[str, list[str]]]:
    """A page on loopback, and who asked for it."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head.split()[1].rpartition("/")[2])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    served = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with served:
        yield f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}", seen


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C3.9", "C16.2")
async def test_who_may_reach_the_network_and_private_addresses(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"sandbox": "required"}
    servers = (
        server("both", **keys, allow_private=True),
        server("public", **keys),
        server("neither", **keys, network=False, allow_private=True),
    )
    async with page() as (url, seen), node(tmp_path, *servers) as app:
        names = ("both", "public", "neither")
        said = {name: await ran(app, name, "fetch", f"{url}/{name}") for name in names}
    assert said == {"both": "hello", "public": "URLError", "neither": "URLError"}
    assert seen == ["both"]


@pytest.mark.requirement("C3.9")
async def test_a_private_address_is_a_server_only_if_it_is_said(tmp_path: Path) -> None:
    opened, closed = Modern(), Modern()
    async with serving(opened) as near, serving(closed) as shut:
        servers = (address("near", near, allow_private=True), address("shut", shut))
        async with node(tmp_path, *servers) as app:
            assert app.parts.servers
            assert app.parts.servers.health() == {"near": "healthy", "shut": "unhealthy"}
            assert "allow_private" in app.parts.servers.find("shut").health.error
    assert closed.seen == []


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C16.1", "C16.2")
async def test_a_sandbox_shows_what_is_named_and_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    await to_thread.run_sync(folder.mkdir)
    note, mark = folder / "note", folder / "mark"
    await anyio.Path(note).write_text("read me")
    servers = (
        server("off", sandbox="off"),
        server("auto", sandbox="auto"),
        server("required", sandbox="required"),
        server("reads", sandbox="required", fs_read=[str(folder)]),
        server("writes", sandbox="required", fs_write=[str(folder)]),
    )
    async with node(tmp_path, *servers) as app:
        names = [one.name for one in servers]
        reads = {name: await ran(app, name, "read", note) for name in names}
        hidden = dict.fromkeys(("auto", "required"), "FileNotFoundError")
        assert reads == {**dict.fromkeys(names, "read me"), **hidden}
        assert await ran(app, "required", "write", mark) == "FileNotFoundError"
        assert await ran(app, "reads", "write", mark) == "OSError"
        assert not await anyio.Path(mark).exists()
        assert await ran(app, "writes", "write", mark) == "written"
        assert await anyio.Path(mark).read_text() == "written"
