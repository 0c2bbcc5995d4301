"""Conversations over HTTP: listed, read, exported and deleted by whom they belong to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread

from openfang.agents.sessions import StoredSessions
from openfang.core.agents import Ended, Message, Speaker, Wish
from openfang.core.labels import Labels
from openfang.storage.log import all_rows
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C6.4", "C12.1")

SESSIONS = "/api/sessions"
SAID = "the words of a user 4711"
WISH = Wish(id="w1", tool="file_read", arguments={"path": "notes.txt"})
TURNS = (
    Message(speaker=Speaker.USER, text=SAID),
    Message(speaker=Speaker.AGENT, text="I look.", wishes=(WISH,)),
    Message(speaker=Speaker.TOOL, text="```\n## User, later\n```", answers="w1", is_error=True),
    Message(speaker=Speaker.AGENT, text="There is\n\n## User, never\nno such file."),
)


def sessions_of(node: Live) -> StoredSessions:
    parts = node.app.parts
    return StoredSessions(
        database=parts.database,
        writer=parts.writer,
        process=parts.broker.process,
        now=parts.clock.time_ns,
    )


async def talk(
    node: Live, caller: str = "key:admin", *, name: str = "default", agent: str = "assistant"
) -> str:
    """Have a conversation with an agent."""
    sessions = sessions_of(node)
    opened = await sessions.open(agent, caller, name, most=20)
    run = f"run {len(opened.history)} {opened.id}"
    await sessions.begin(opened.id, run, TURNS[0], Labels.NONE)
    for message in TURNS[1:]:
        await sessions.said(opened.id, run, message)
    await sessions.end(opened.id, run, Ended(answer=""), Labels.USER_INPUT)
    return opened.id


async def ids(node: Live, query: str = "", **more: Any) -> list[str]:
    return [one["id"] for one in (await node.get(f"{SESSIONS}{query}", **more)).json["sessions"]]


async def test_one_is_listed_with_what_it_is_about(node: Live) -> None:
    session = await talk(node)
    body = (await node.get(SESSIONS)).json
    assert (body["total"], body["after"]) == (1, None)
    (one,) = body["sessions"]
    assert one == {
        "id": session,
        "agent": "assistant",
        "caller": "key:admin",
        "name": "default",
        "title": SAID,
        "messages": 4,
        "labels": ["user_input"],
        "created_at": one["created_at"],
        "updated_at": one["updated_at"],
    }


async def test_it_is_shown_with_every_turn(node: Live) -> None:
    session = await talk(node)
    body = (await node.get(f"{SESSIONS}/{session}")).json
    assert (body["title"], body["messages"]) == (SAID, 4)
    first, second, third, _ = body["turns"]
    assert (first["seq"], first["speaker"], first["text"]) == (1, "user", SAID)
    assert second["wishes"] == [
        {"id": "w1", "tool": "file_read", "arguments": {"path": "notes.txt"}}
    ]
    assert (third["answers"], third["is_error"], third["wishes"]) == ("w1", True, [])
    assert {turn["run"] for turn in body["turns"]} == {f"run 0 {session}"}


async def test_they_come_newest_first_and_page_by_page(node: Live) -> None:
    made = [await talk(node, name=f"talk {n}", agent=f"agent{n % 2}") for n in range(7)]
    assert await ids(node) == made[::-1]
    assert await ids(node, "?agent=agent1") == made[5::-2]
    await talk(node, name="talk 0", agent="agent0")  # said something again: it is the newest now
    seen, query = list[str](), "?limit=3"
    while query:
        body = (await node.get(f"{SESSIONS}{query}")).json
        assert len(body["sessions"]) <= 3
        assert body["total"] == 7
        seen += [one["id"] for one in body["sessions"]]
        query = f"?limit=3&after={body['after']}" if body["after"] else ""
    assert seen == [made[0], *made[:0:-1]]


async def test_a_page_goes_on_behind_what_is_gone_by_then(node: Live) -> None:
    made = [await talk(node, name=f"talk {n}") for n in range(4)]
    after = (await node.get(f"{SESSIONS}?limit=2")).json["after"]
    await node.ask("DELETE", f"{SESSIONS}/{made[2]}")
    assert await ids(node, f"?after={after}") == [made[1], made[0]]


@pytest.mark.requirement("C5.5")
async def test_another_callers_session_does_not_exist(node: Live) -> None:
    one, other = await node.key("one"), await node.key("other")
    session = await talk(node, "key:one")
    assert await ids(node, key=one) == [session]
    assert await ids(node, key=other) == []
    for method, path in (
        ("GET", session),
        ("GET", f"{session}/export"),
        ("GET", f"{session}/export?format=md"),
        ("DELETE", session),
    ):
        foreign = await node.ask(method, f"{SESSIONS}/{path}", key=other)
        nowhere = path.replace(session, "session_nowhere")
        unknown = await node.ask(method, f"{SESSIONS}/{nowhere}", key=other)
        assert foreign.told == (404, "not_found")
        assert foreign.body.replace(session.encode(), b"session_nowhere") == unknown.body
    assert await ids(node, key=one) == [session]


async def test_who_watches_reads_everybodys_and_only_an_administrator_deletes(node: Live) -> None:
    auditor = await node.key("auditor", role="auditor")
    approver = await node.key("approver", role="approver")
    session = await talk(node, "key:one")
    assert await ids(node, key=auditor) == [session]
    assert await ids(node, key=approver) == []
    assert (await node.get(f"{SESSIONS}/{session}", key=auditor)).status == 200
    assert (await node.get(f"{SESSIONS}/{session}/export", key=auditor)).status == 200
    refused = await node.ask("DELETE", f"{SESSIONS}/{session}", key=auditor)
    assert refused.told == (403, "admin_only")
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).json["id"] == session
    assert await ids(node) == []


async def test_it_is_exported_as_lines(node: Live) -> None:
    session = await talk(node)
    reply = await node.get(f"{SESSIONS}/{session}/export")
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    first, *rest = [json.loads(line) for line in reply.body.splitlines()]
    shown = (await node.get(f"{SESSIONS}/{session}")).json
    assert [one["turn"] for one in rest] == shown.pop("turns")
    assert first["session"] == shown


async def test_it_is_exported_as_markdown_in_which_nothing_can_be_forged(node: Live) -> None:
    session = await talk(node)
    reply = await node.get(f"{SESSIONS}/{session}/export?format=md")
    assert reply.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = reply.body.decode()
    assert text.startswith(f"# {SAID}\n\n- session: `{session}`\n- agent: `assistant`\n")
    headings = [line.partition(",")[0] for line in text.splitlines() if line.startswith("## ")]
    inside = "## User"  # of what a tool said, inside its fence
    assert headings == ["## User", "## `assistant`", "## Error of `w1`", inside, "## `assistant`"]
    assert "````\n```\n## User, later\n```\n````" in text
    assert "> There is\n>\n> ## User, never\n> no such file." in text
    assert 'calls `file_read` as `w1`:\n\n```json\n{\n  "path": "notes.txt"\n}\n```' in text


async def test_a_long_one_is_exported_whole_and_not_shown_at_once(node: Live) -> None:
    session = await talk(node)
    text = "x" * 999_999
    for _ in range(11):
        say = Message(speaker=Speaker.USER, text=text)
        await sessions_of(node).said(session, "run", say)
    assert (await node.get(f"{SESSIONS}/{session}")).told == (422, "session_too_long")
    reply = await node.get(f"{SESSIONS}/{session}/export")
    assert len(reply.body.splitlines()) == 1 + 4 + 11
    assert reply.body.count(text.encode()) == 11


@pytest.mark.requirement("C13.4")
async def test_a_deleted_one_is_gone_with_one_record_that_says_nothing_of_it(node: Live) -> None:
    session = await talk(node)
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).json["title"] == SAID
    for path in (session, f"{session}/export"):
        assert (await node.get(f"{SESSIONS}/{path}")).status == 404
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).status == 404
    records = (await node.get("/api/audit?event=session_deleted")).json["records"]
    assert [one["payload"] for one in records] == [
        {"session": session, "agent": "assistant", "of": "key:admin", "messages": 4}
    ]
    log = await to_thread.run_sync(all_rows, node.app.file.path)
    assert SAID not in str(log)
    assert node.app.file.read_now("SELECT COUNT(*) FROM turns") == [(0,)]
    assert await talk(node) != session


async def test_one_that_is_being_answered_is_not_deleted(node: Live) -> None:
    session = await talk(node)
    sessions = sessions_of(node)
    await sessions.begin(session, "another", TURNS[0], Labels.NONE)
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).told == (409, "conflict")
    assert (await node.get("/api/audit?event=session_deleted")).json["total"] == 0
    assert (await node.get(f"{SESSIONS}/{session}")).json["messages"] == 5
    await sessions.end(session, "another", Ended(answer=""), Labels.NONE)
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).status == 200


async def test_one_whose_process_died_is_deleted_with_its_run(node: Live) -> None:
    # It lists agents once they are there: then it has looked for runs to go on with.
    assert (await node.get("/api/agents")).status == 200
    session = await talk(node)
    await sessions_of(node).begin(session, "another", TURNS[0], Labels.NONE)
    sql = "UPDATE agent_runs SET process = 'gone' WHERE id = 'another'"
    await node.app.parts.writer.write(Unit(statements=((sql, ()),)))
    assert (await node.ask("DELETE", f"{SESSIONS}/{session}")).status == 200
    assert node.app.file.read_now("SELECT COUNT(*) FROM agent_runs") == [(0,)]


@pytest.mark.parametrize(
    "query",
    [
        "?after=somewhere",
        "?after=f000000000000000-session_00000000000000000000000000000000",
        "?limit=0",
        "?limit=501",
        "?agent=",
        "?caller=key:one",
    ],
)
async def test_a_query_that_is_none_is_refused(node: Live, query: str) -> None:
    assert (await node.get(f"{SESSIONS}{query}")).told == (400, "query")


async def test_an_export_in_another_format_is_refused(node: Live) -> None:
    session = await talk(node)
    reply = await node.get(f"{SESSIONS}/{session}/export?format=pdf")
    assert reply.told == (400, "query")
