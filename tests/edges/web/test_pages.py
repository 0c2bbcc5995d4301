"""What pages show, to whom: as much as the key may see, and whatever it is as text."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import pytest
from tests.edges.live import live
from tests.edges.web.browsing import signed_in, text_of

from openfang.app.web import figures
from openfang.core.errors import Parked
from openfang.core.events import Record
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import text_result
from openfang.core.tools import Risk
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.edges.demo import Demo
    from tests.edges.live import Live

    from openfang.core.results import Result

pytestmark = pytest.mark.requirement("C19.2")

PAGES = (
    "/", "/calls", "/tasks", "/approvals", "/agents", "/tools", "/servers", "/policy", "/audit",
    "/keys", "/settings",
)  # fmt: skip
OF_AUDITORS = {"/audit"}
OF_ADMINS = {"/keys"}
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'{{7*7}}"
BIDI = "safe\u202egnp.exe"


@pytest.mark.parametrize("role", ["user", "auditor", "approver", "admin"])
async def test_each_role_sees_its_pages_and_no_others(shared: Live, role: str) -> None:
    browser = await signed_in(shared, await shared.key(f"of-{role}", role=role))
    shut = {"user": OF_AUDITORS | OF_ADMINS, "approver": OF_AUDITORS | OF_ADMINS,
            "auditor": OF_ADMINS, "admin": set[str]()}[role]  # fmt: skip
    seen = {path: (await browser.get(path)).status for path in PAGES}
    assert seen == {path: 403 if path in shut else 200 for path in PAGES}


async def test_a_user_sees_their_own_calls_and_an_auditor_everybodys(shared: Live) -> None:
    ours, theirs = await shared.key("ours"), await shared.key("theirs")
    mine = (await shared.call("mcp:demo:echo", {"text": "mine"}, key=ours)).json["call_id"]
    other = (await shared.call("mcp:demo:rain", {"text": "other"}, key=theirs)).json["call_id"]
    user, auditor = (
        await signed_in(shared, ours),
        await signed_in(shared, await shared.key("a", role="auditor")),
    )
    for path in ("/", "/calls", "/calls?q=demo", "/calls?caller=key:theirs", "/calls?as=jsonl"):
        body = (await user.get(path)).body.decode()
        assert (path, other in body, "mcp:demo:rain" in body) == (path, False, False)
    assert (await user.get(f"/calls/{mine}")).status == 200
    assert (await user.get(f"/calls/{other}")).status == 404
    assert (await auditor.get(f"/calls/{other}")).status == 200
    listed = (await auditor.get("/calls")).body.decode()
    assert mine in listed
    assert other in listed


async def test_calls_are_found_by_what_became_of_them(node: Live) -> None:
    ended = {
        "allow": (await node.call("mcp:demo:echo", {})).json["call_id"],
        "failed": (await node.call("mcp:demo:rain", {})).json["call_id"],
    }
    await node.call("mcp:demo:strict", {"number": "x"})
    await node.call("mcp:demo:deploy", {})
    browser = await signed_in(node)
    pages = {
        verdict: text_of(await browser.get(f"/calls?verdict={verdict}"))
        for verdict in ("allow", "failed", "deny", "ask", "run")
    }
    tools = ("echo", "rain", "strict", "deploy")
    told = {
        verdict: [name for name in tools if f"mcp:demo:{name}" in page]
        for verdict, page in pages.items()
    }
    assert told == {
        "allow": ["echo"],
        "failed": ["rain"],
        "deny": ["strict"],
        "ask": ["deploy"],
        "run": [],
    }
    assert "No call matches" in pages["run"]
    by_source = (await browser.get("/calls?source=mcp:demo:r")).body.decode()
    assert (ended["failed"] in by_source, ended["allow"] in by_source) == (True, False)
    exported = (await browser.get("/calls?as=jsonl&verdict=allow")).body
    assert [json.loads(line)["tool"] for line in exported.splitlines()] == ["mcp:demo:echo"]


async def test_older_calls_are_behind_a_link(node: Live) -> None:
    first = (await node.call("mcp:demo:echo", {"text": "first"})).json["call_id"]
    for _ in range(60):
        await node.call("mcp:demo:echo", {})
    browser = await signed_in(node)
    page = (await browser.get("/calls")).body.decode()
    seen, pages = page.count('<tr id="call_'), 1
    while first not in page:
        older = page.split('href="/calls?before=')[1].partition('"')[0]
        page = (await browser.get(f"/calls?before={older}")).body.decode()
        seen, pages = seen + page.count('<tr id="call_'), pages + 1
    assert (seen, pages) == (61, 2)


async def test_one_call_is_told_from_top_to_bottom(shared: Live) -> None:
    call = (await shared.call("mcp:demo:write", {"text": "of_" + "x" * 40})).json
    refused = await shared.call("mcp:demo:write", {}, context={"mode": "planning"})
    assert refused.status == 403
    browser = await signed_in(shared)
    page = text_of(await browser.get(f"/calls/{call['call_id']}"))
    assert "Allowed" in page
    assert "Ran once" in page
    assert "Its own steps Guards, gates, taint" in page
    assert "Size 43 characters" in page
    assert "key:admin, in its own words" in page
    assert f"#{call['audit']['start']} tool_invocation_start" in page
    assert f"#{call['audit']['end']} tool_invocation_end" in page
    for step in (
        "Identify",
        "Resolve",
        "Guards",
        "Gates",
        "spec frozen",
        "admin token",
        "Taint",
        "Shape",
    ):
        assert step in page
    denied = [one for one in await shared.events() if one.event_type == "policy_violation"][
        -1
    ].call_id
    page = text_of(await browser.get(f"/calls/{denied}"))
    assert "Planning mode cannot use tools with side effects" in page
    assert "It did not run" in page
    assert "Not reached" in page


async def test_the_value_that_decided_is_marked_where_a_run_was_tainted(shared: Live) -> None:
    app, given = shared.app, {"path": "of-a-page.txt", "content": "x"}
    call = app.make("file_write", given, run="tainted")
    held = app.parts.pipeline.runs.absorb(call, Labels.NONE, Labels.EXTERNAL_NETWORK)
    await app.parts.broker.append([], held)
    with pytest.raises(Parked) as parked:
        await app.invoke(call)
    question = parked.value.question_id
    browser = await signed_in(shared)
    for path in (f"/calls/{call.id}", f"/approvals/{question}"):
        body = (await browser.get(path)).body.decode()
        assert (path, "<mark>of-a-page.txt</mark>" in body) == (path, True)
        assert "from outside: nobody who is trusted had named it" in body
        assert "may be from outside: the run had taken in external network" in body
    assert call.id in (await browser.get("/calls?verdict=ask")).body.decode()
    await shared.post(f"/api/approvals/{question}", {"answer": "deny"})
    told = text_of(await browser.get(f"/calls/{call.id}"))
    assert ("Denied" in told, "Waits for a person" in told) == (True, False)


async def test_a_chain_is_drawn_and_told_as_a_list(shared: Live) -> None:
    told = (
        await shared.post("/api/agents/assistant/message", {"message": "what time is it?"})
    ).json
    browser = await signed_in(shared)
    reply = await browser.get(f"/calls/{told['call_id']}")
    body = reply.body.decode()
    assert body.count('<rect class="node') == 3
    assert "agent:assistant" in body
    assert "builtin:system_time" in body
    assert "Same chain as a list" in body


async def say(arguments: Mapping[str, Any]) -> Result:
    return text_result(f"{HOSTILE} {arguments.get('text', '')}")


def hostile_source() -> TableSource:
    about: dict[str, Any] = {
        "risk": Risk.LOW,
        "tags": frozenset[str](),
        "description": HOSTILE,
        "title": HOSTILE,
        "input_schema": {
            "type": "object",
            "properties": {
                HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE},
                "choice": {"enum": [HOSTILE, "b"]},
            },
        },
    }
    asked = {**about, "risk": Risk.HIGH, "tags": frozenset({"system.exec"})}
    return TableSource(Kind.MCP, "demo", {HOSTILE: (about, say), "ask<b>": (asked, say)})


@pytest.mark.requirement("C18.1")
async def test_whatever_comes_from_outside_is_text_on_every_page(tmp_path: Path) -> None:
    async with live(tmp_path / "home", sources=[hostile_source()]) as node:
        tool = quote(f"mcp:demo:{HOSTILE}", safe="")
        call = (await node.call(tool, {HOSTILE: HOSTILE, "more": BIDI})).json["call_id"]
        asks = await node.call("mcp:demo:ask%3Cb%3E", {"x": BIDI, "y": HOSTILE})
        asked = asks.json["approval"]
        await node.call("agent%3A" + quote(HOSTILE, safe=""), {})
        await node.call(quote(f"mcp:demo:{BIDI}", safe=""), {})
        browser = await signed_in(node)
        paths = [
            *PAGES, f"/calls/{call}", f"/approvals/{asked}", f"/tools/{tool}",
            f"/calls?q={quote(HOSTILE)}", f"/tools?q={quote(HOSTILE)}",
            f"/audit?text={quote(HOSTILE)}", f"/policy?tool={quote(HOSTILE)}",
            f"/agents/{quote(HOSTILE, safe='')}", f"/servers/{quote(HOSTILE, safe='')}",
            f"/tasks?agent={quote(HOSTILE)}", f"/login?next={quote('/' + HOSTILE)}",
        ]  # fmt: skip
        for path in paths:
            reply = await browser.get(path)
            assert (path, reply.status < 500) == (path, True)
            body = reply.body.decode()
            never = ("<script>alert", "<img src=x", "'49", BIDI)
            found = [one for one in never if one in body]
            assert (path, found) == (path, [])
        tried = await browser.send(f"/tools/{tool}", {f"arg.{HOSTILE}": HOSTILE, "act": "call"})
        assert "Ran once" in text_of(tried)
        assert b"<script>alert" not in tried.body
        shown = (await browser.get(f"/approvals/{asked}")).body.decode()
        assert "safe<mark>\\u202e</mark>gnp.exe" in shown
        assert "\u202e" not in shown


async def test_a_row_that_comes_live_is_text_as_well(tmp_path: Path) -> None:
    async with live(tmp_path / "home", sources=[hostile_source()]) as node:
        browser = await signed_in(node)
        kept = "; ".join(f"{name}={text}" for name, text in browser.cookies.items())
        headers = {"Accept": "text/html, text/event-stream", "Cookie": kept}
        with anyio.fail_after(20):
            async with node.web.get(node.at("/calls/live"), headers=headers) as stream:
                assert stream.headers["Content-Type"] == "text/event-stream"
                await stream.content.readuntil(b"\n\n")
                await node.call(quote(f"mcp:demo:{HOSTILE}", safe=""), {})
                told = (await stream.content.readuntil(b"\n\n")).decode()
        assert "event: rows" in told
        assert "&lt;script&gt;alert(1)" in told
        assert "<script>" not in told


async def test_a_live_stream_shows_a_user_nothing_of_others_and_ends_with_the_key(
    shared: Live,
) -> None:
    key = await shared.key("watcher")
    browser = await signed_in(shared, key)
    kept = "; ".join(f"{name}={text}" for name, text in browser.cookies.items())
    with anyio.fail_after(30):
        async with shared.web.get(
            shared.at("/calls/live"), headers={"Accept": "text/event-stream", "Cookie": kept}
        ) as stream:
            await stream.content.readuntil(b"\n\n")
            await shared.call("mcp:demo:rain", {})
            await shared.call("mcp:demo:echo", {}, key=key)
            told = (await stream.content.readuntil(b"\n\n")).decode()
            assert ("mcp:demo:echo" in told, "mcp:demo:rain" in told) == (True, False)
            assert (await shared.ask("DELETE", "/api/keys/watcher")).status == 200
            assert b"rain" not in await stream.content.read()


async def test_figures_count_what_happened(node: Live) -> None:
    for _ in range(3):
        await node.call("mcp:demo:echo", {})
    await node.call("mcp:demo:rain", {})
    await node.call("mcp:demo:strict", {"number": "x"})
    browser = await signed_in(node)
    page = text_of(await browser.get("/?r=15m"))
    assert "5 in 15 min" in page
    assert "Denied 20.0 % 1 call did not run" in page
    assert "Failed 20.0 % 1 call ran and broke" in page
    await node.call("mcp:demo:echo", {})
    assert "6 in 15 min" in text_of(await browser.get("/?r=15m"))


async def test_figures_of_a_long_log_say_since_when_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "_AT_FIRST", 30)
    monkeypatch.setattr(figures, "_AT_ONCE", 7)
    async with open_test_app(tmp_path / "home") as app:
        for number in range(50):
            record = Record(
                event="tool_invocation_end",
                call_id=f"call_{number}",
                payload={"outcome": "ok", "duration_us": 900 + number},
                context={"caller": "key:a" if number % 2 else "key:b", "tool": "mcp:x:y"},
            )
            await app.parts.writer.write(app.parts.broker.unit([record]))
        tallies = figures.Tallies()
        now = app.parts.clock.time_ns()
        await app.parts.database.aside(tallies.read_on)
        found = tallies.figures(None, 60, now)
        assert (found.calls, found.since > 0) == (30, True)
        assert tallies.figures("key:a", 60, now).calls == 15
        assert found.sources["mcp:x"][0] == 30
        assert 900 <= (found.p50 or 0) <= 1400


@pytest.mark.usefixtures("demo")
async def test_the_pages_of_a_home_without_anything_say_how_to_begin(tmp_path: Path) -> None:
    async with live(tmp_path / "home") as node:
        browser = await signed_in(node)
        assert "No calls yet" in text_of(await browser.get("/calls"))
        assert "Nothing waits for you" in text_of(await browser.get("/approvals"))
        assert "No servers yet" in text_of(await browser.get("/servers"))
        assert "No tasks" in text_of(await browser.get("/tasks"))


def test_every_picture_of_the_docs_is_small_shown_and_told_in_words() -> None:
    docs = Path(__file__).parents[3] / "docs"
    shown = r"!\[([^\]]{20,})\]\(pictures/(web-\w+\.png)\)"
    told = dict(re.findall(shown, docs.joinpath("web.md").read_text()))
    sizes = {one.name: one.stat().st_size for one in docs.glob("pictures/web-*.png")}
    assert set(told.values()) == set(sizes)
    assert max(sizes.values()) < 150_000


def test_the_files_are_small_and_their_licences_are_there(demo: Demo) -> None:
    del demo
    folder = resources.files("openfang.edges.web") / "static"
    sizes = {one.name: len(one.read_bytes()) for one in folder.iterdir()}
    assert sum(sizes.values()) < 250_000
    for about in json.loads((folder / "versions.json").read_text()).values():
        assert {*about["files"]} <= set(sizes)
        assert any(name.endswith(".LICENSE") for name in about["files"])
