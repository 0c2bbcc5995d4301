"""`/api/a2a`: tasks begun, listed, read, watched and ended; agents elsewhere by governed calls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.app.a2a.test_peers import config, entry
from tests.edges.live import live
from tests.edges.sse import Stream
from tests.sources.a2a.web_peers import SeedPeer, serving

from openfang.app.local import Local
from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.errors import Conflict, NotFound, OpenFangError, Rejected, SourceFailed
from openfang.core.tasks import Moved, Spoken, Task, TaskFilter, TaskState, TaskUpdate
from openfang.core.trace import new_chain
from openfang.edges.api.task_events import task_stream
from openfang.host.loopback import DaemonUnreachable, Loopback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply
    from tests.edges.sse import Event

    from openfang.core.session import Session
    from openfang.core.tasks import Seen

pytestmark = pytest.mark.requirement("C5.3", "C5.6", "C12.5")

TASKS = "/api/a2a/tasks"
CONFIG = "[a2a]\nenabled = true\n"
MANIFEST = 'name = "{name}"\nmodule = "python:agent.py"\n[capabilities]\ntools = ["mcp:demo:*"]\n'
PROGRAMS = {
    "waiter": """
async def run(message, context):
    context.stream("I wait ")
    await context.call("mcp:demo:wait")
    context.artifact("note.md", "# " + message)
    return "I wait no more"
""",
    "asker": """
async def run(message, context):
    colour = await context.ask("Which colour?")
    return f"{message} in {colour}"
""",
    "broken": """
def run(message, context):
    raise RuntimeError("and fall")
""",
}


def write_programs(home: Path) -> None:
    for name, text in PROGRAMS.items():
        folder = home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(text)
        (folder / "agent.toml").write_text(MANIFEST.format(name=name))


@pytest.fixture
async def node(tmp_path: Path, demo: Demo) -> AsyncGenerator[Live]:
    """A node with agents, of which one waits, one asks and one breaks."""
    home = tmp_path / "home"
    await to_thread.run_sync(write_programs, home)
    async with live(home, config=CONFIG, sources=[demo.source]) as running:
        yield running


async def begin(node: Live, agent: str, message: str = "paint it", **more: Any) -> Any:
    key = more.pop("key", "")
    reply = await node.post(TASKS, {"agent": agent, "message": message, **more}, key=key)
    assert reply.status == 202, reply.body
    return reply.json


@asynccontextmanager
async def watching(node: Live, task: str, key: str = "") -> AsyncGenerator[Stream]:
    address = node.at(f"{TASKS}/{task}/events")
    async with node.web.get(address, headers=node.headers(key)) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        yield Stream(response)


async def story(node: Live, task: str) -> list[Event]:
    """Everything that is told of a task until it has ended."""
    async with watching(node, task) as stream:
        return await stream.rest()


async def until(stream: Stream, kind: str, **wanted: Any) -> Event:
    """Read on until this is told."""
    while event := await stream.next():
        if event.kind == kind and wanted.items() <= event.data.items():
            return event
    raise AssertionError(kind)


async def test_a_task_is_kept_at_once_and_can_be_read_until_it_has_ended(node: Live) -> None:
    begun = await begin(node, "echo", "hello", context="talk")
    assert (begun["state"], begun["agent"], begun["context"]) == ("working", "echo", "talk")
    assert begun["caller"] == "key:admin"
    last = (await story(node, begun["id"]))[-1]
    shown = (await node.get(f"{TASKS}/{begun['id']}")).json
    assert shown["state"] == "completed"
    assert [one["role"] for one in shown["history"]] == ["user", "agent"]
    assert shown["history"][-1]["parts"] == [{"type": "text", "text": "hello"}]
    assert [one["state"] for one in shown["states"]] == ["submitted", "working", "completed"]
    assert [one["n"] for one in shown["states"]] == [1, 2, 3]
    assert last.kind in {"task", "moved"}
    again = await begin(node, "echo", "again", context="talk")
    assert again["session"] == begun["session"]


async def test_what_happens_is_told_as_it_happens(node: Live, demo: Demo) -> None:
    task = (await begin(node, "waiter"))["id"]
    await demo.begun.wait()
    async with watching(node, task) as stream:
        first = await stream.next()
        assert first is not None
        assert (first.kind, first.data["state"]) == ("task", "working")
        assert (await until(stream, "spoken")).data["text"] == "I wait "
        demo.released.set()
        moved = await until(stream, "moved", state="completed")
        assert await stream.next() is None
    assert moved.data["said"][0]["parts"] == [{"type": "text", "text": "I wait no more"}]
    assert [one["name"] for one in moved.data["artifacts"]] == ["note.md"]
    (snapshot,) = await story(node, task)
    assert (snapshot.kind, snapshot.data["state"]) == ("task", "completed")
    assert snapshot.data["artifacts"] == moved.data["artifacts"]


async def test_who_stops_watching_stops_nothing(node: Live, demo: Demo) -> None:
    task = (await begin(node, "waiter"))["id"]
    await demo.begun.wait()
    async with watching(node, task) as stream:
        await stream.next()
    demo.released.set()
    assert (await story(node, task))[-1].data["state"] == "completed"
    assert not demo.cancelled.is_set()


@pytest.mark.requirement("C5.7")
async def test_cancel_ends_the_work_and_is_final(node: Live, demo: Demo) -> None:
    task = (await begin(node, "waiter"))["id"]
    await demo.begun.wait()
    ended = await node.post(f"{TASKS}/{task}/cancel")
    assert (ended.status, ended.json["state"]) == (200, "canceled")
    with anyio.fail_after(30):
        await demo.cancelled.wait()
    assert (await node.post(f"{TASKS}/{task}/cancel")).told == (409, "conflict")
    states = (await node.get(f"{TASKS}/{task}")).json["states"]
    assert [one["state"] for one in states] == ["submitted", "working", "canceled"]


async def test_a_question_waits_for_the_next_message_to_its_task(node: Live) -> None:
    task = (await begin(node, "asker"))["id"]
    async with watching(node, task) as stream:
        asked = await until(stream, "moved", state="input-required")
        assert asked.data["status"]["parts"][0]["text"] == "Which colour?"
        elsewhere = {"agent": "asker", "message": "red", "task": task, "context": "elsewhere"}
        assert (await node.post(TASKS, elsewhere)).told == (422, "context")
        answered = await begin(node, "asker", "red", task=task)
        assert (answered["id"], answered["state"]) == (task, "working")
        done = await until(stream, "moved", state="completed")
    assert done.data["said"][0]["parts"][0]["text"] == "paint it in red"
    late = await node.post(TASKS, {"agent": "asker", "message": "blue", "task": task})
    assert late.told == (409, "conflict")


async def test_a_task_that_fails_says_why(node: Live) -> None:
    last = (await story(node, (await begin(node, "broken"))["id"]))[-1]
    assert last.data["state"] == "failed"
    assert "and fall" in last.data["status"]["parts"][0]["text"]


@pytest.mark.requirement("C5.5")
async def test_another_callers_task_does_not_exist(node: Live, demo: Demo) -> None:
    one, other = await node.key("one"), await node.key("other")
    task = (await begin(node, "waiter", key=one))["id"]
    await demo.begun.wait()
    assert (await node.get(TASKS, key=one)).json["total"] == 1
    assert (await node.get(TASKS, key=other)).json == {"tasks": [], "total": 0, "after": None}

    def asks(id_: str) -> tuple[Awaitable[Reply], ...]:
        answer = {"agent": "waiter", "message": "x", "task": id_}
        return (
            node.get(f"{TASKS}/{id_}", key=other),
            node.get(f"{TASKS}/{id_}/events", key=other),
            node.post(f"{TASKS}/{id_}/cancel", key=other),
            node.post(TASKS, answer, key=other),
        )

    for first, second in zip(asks(task), asks("task_nowhere"), strict=True):
        foreign, unknown = await first, await second
        assert foreign.told == unknown.told == (404, "not_found")
        assert foreign.body.replace(task.encode(), b"task_nowhere") == unknown.body
    assert not demo.cancelled.is_set()


async def test_who_watches_sees_every_task_and_only_an_administrator_ends_it(
    node: Live, demo: Demo
) -> None:
    auditor, one = await node.key("eye", role="auditor"), await node.key("one")
    task = (await begin(node, "waiter", key=one))["id"]
    await demo.begun.wait()
    (seen,) = (await node.get(TASKS, key=auditor)).json["tasks"]
    assert (seen["id"], seen["caller"]) == (task, "key:one")
    assert (await node.get(f"{TASKS}/{task}", key=auditor)).status == 200
    speaks = {"agent": "waiter", "message": "x", "task": task}
    assert (await node.post(TASKS, speaks, key=auditor)).told == (404, "not_found")
    assert (await node.post(f"{TASKS}/{task}/cancel", key=auditor)).told == (409, "conflict")
    assert (await node.post(f"{TASKS}/{task}/cancel")).json["state"] == "canceled"


async def test_tasks_are_listed_by_what_is_wanted_page_by_page(node: Live) -> None:
    made = [(await begin(node, "echo", f"{n}", context=f"c{n % 2}"))["id"] for n in range(5)]
    for task in made:
        await story(node, task)
    failed = (await begin(node, "broken"))["id"]
    await story(node, failed)
    seen, after = list[str](), ""
    while True:
        body = (await node.get(f"{TASKS}?limit=2{after}")).json
        assert body["total"] == 6
        seen += [one["id"] for one in body["tasks"]]
        if body["after"] is None:
            break
        after = f"&after={body['after']}"
    assert sorted(seen) == sorted([*made, failed])
    for query, wanted in {
        "state=failed": [failed],
        "agent=broken": [failed],
        "context=c1&state=completed": made[1::2],
        "state=working": [],
        "since=4000000000": [],
    }.items():
        found = (await node.get(f"{TASKS}?{query}")).json["tasks"]
        assert (query, sorted(one["id"] for one in found)) == (query, sorted(wanted))
    for query in ("state=done", "limit=0", "limit=101", "after=x", "since=-1", "who=me"):
        assert (query, (await node.get(f"{TASKS}?{query}")).told) == (query, (400, "query"))
    assert (await node.get(f"{TASKS}?agent=nobody")).told == (404, "not_found")


async def test_what_makes_no_sense_is_refused_and_nothing_is_kept(node: Live) -> None:
    narrow = await node.key("narrow", tools=["system_time"])
    hello = {"agent": "echo", "message": "hello"}
    assert (await node.post(TASKS, hello, key=narrow)).told == (404, "not_found")
    assert (await node.post(TASKS, {**hello, "agent": "nobody"})).told == (404, "not_found")
    wrong: list[Any] = [
        {"agent": "echo"},
        {**hello, "message": ""},
        {**hello, "message": 1},
        {**hello, "task": ""},
        {**hello, "x": 1},
    ]
    for body in wrong:
        assert (body, (await node.post(TASKS, body)).told) == (body, (422, "body"))
    long = BytesIO(b'{"agent": "echo", "message": "%b"}' % (b"x" * 1_200_000))
    kind = {"Content-Type": "application/json"}
    large = await node.ask("POST", TASKS, data=long, headers=kind)
    assert large.told == (422, "arguments_too_large")
    assert (await node.get(TASKS)).json["total"] == 0


@pytest.mark.requirement("C12.3")
async def test_who_is_over_its_rate_makes_no_task(node: Live) -> None:
    poor = await node.key("poor", cells_per_minute=5)
    refused = await node.post(TASKS, {"agent": "echo", "message": "hello"}, key=poor)
    assert refused.problem["rule"] == "rate_limit"
    assert (await node.get(TASKS)).json["total"] == 0


@pytest.mark.requirement("C2.5")
async def test_no_task_is_taken_while_a2a_is_switched_off(tmp_path: Path) -> None:
    async with live(tmp_path / "home") as off:
        refused = await off.post(TASKS, {"agent": "echo", "message": "hello"})
        assert refused.told == (404, "a2a_disabled")
        assert "a2a.enabled" in refused.problem["detail"]
        assert (await off.get(TASKS)).json["total"] == 0
        assert (await off.get("/api/a2a/agents")).json == {"agents": [], "total": 0}
        for path, body in ELSEWHERE:
            told = await off.post(f"/api/a2a/{path}", body)
            assert (path, told.told) == (path, (403, "tool_disabled"))


ELSEWHERE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("discover", {"url": "http://127.0.0.1:9"}),
    ("send", {"url": "http://127.0.0.1:9", "message": "hello"}),
)


@pytest.mark.requirement("C5.8", "C3.9")
async def test_what_goes_elsewhere_is_a_governed_call(node: Live) -> None:
    inward = await node.key("inward")  # it has no network grants
    for path, body in ELSEWHERE:
        refused = await node.post(f"/api/a2a/{path}", body, key=inward)
        assert (path, refused.told) == (path, (403, "network_not_granted"))
        failed = await node.post(f"/api/a2a/{path}", body)
        assert (failed.status, failed.json["outcome"]) == (200, "error")
        assert "127.0.0.1" in failed.json["content"][0]["text"]
        assert failed.json["audit"]
    started = [one for one in await node.events() if one.event_type == "tool_invocation_start"]
    assert [one.context["tool"] for one in started] == ["builtin:a2a_discover", "builtin:a2a_send"]
    wrong: list[Any] = [
        {"message": "hello"},
        {"url": "http://a.example", "agent": "b", "message": "hello"},
        {"agent": "b", "message": "hello", "context": "c", "session_id": "d"},
        {"agent": "b"},
    ]
    for body in wrong:
        assert (body, (await node.post("/api/a2a/send", body)).told) == (body, (422, "body"))


@pytest.mark.requirement("C5.9")
async def test_agents_elsewhere_are_shown_to_who_may_know_of_them(tmp_path: Path) -> None:
    async with serving(SeedPeer()) as url:
        entries = entry("old", url) + entry("gone", "http://127.0.0.1:9")
        async with live(tmp_path / "home", config=config(entries)) as node:
            peers = node.app.parts.peers
            assert peers is not None
            await peers.settled()
            gone, old = (await node.get("/api/a2a/agents")).json["agents"]
            assert (gone["name"], gone["state"], gone["card"]) == ("gone", "unreachable", None)
            assert gone["error"]
            assert (old["name"], old["url"], old["state"]) == ("old", url, "discovered")
            assert (old["card"]["name"], old["error"]) == ("old-timer", None)
            friend = await node.key("friend", tools=["a2a:old"])
            (seen,) = (await node.get("/api/a2a/agents", key=friend)).json["agents"]
            assert old["card"]["interfaces"] == [f"{url}/a2a"]
            assert seen == {**old, "url": None, "card": {**old["card"], "interfaces": []}}
            stranger = await node.key("stranger", tools=["system_time"])
            assert (await node.get("/api/a2a/agents", key=stranger)).json["total"] == 0
            hello = {"agent": "old", "message": "hello", "session_id": "talk"}
            answer = (await node.post("/api/a2a/send", hello, key=friend)).json
            assert answer["content"][0]["text"] == "HELLO"
            assert answer["labels"] == ["external_network", "untrusted_agent"]
            refused = await node.post("/api/a2a/send", hello, key=stranger)
            assert refused.told == (404, "unknown_tool")
            away = {"agent": "gone", "message": "hello"}
            failed = (await node.post("/api/a2a/send", away)).json
            assert "The agent gone was not reached yet: " in failed["content"][0]["text"]
            refused = await node.post("/api/a2a/send", away, key=stranger)
            assert refused.told == (404, "unknown_tool")
            again = await node.post("/api/a2a/agents/old/discover", {}, key=friend)
            assert again.json == seen
            for name, key in (("gone", friend), ("old", stranger), ("nobody", friend)):
                refused = await node.post(f"/api/a2a/agents/{name}/discover", {}, key=key)
                assert refused.told == (404, "not_found")


@pytest.mark.requirement("C18.1")
async def test_a_stream_ends_with_its_key(node: Live, demo: Demo) -> None:
    one = await node.key("one")
    task = (await begin(node, "waiter", key=one))["id"]
    await demo.begun.wait()
    async with watching(node, task, one) as stream:
        await stream.next()
        await node.ask("DELETE", "/api/keys/one")
        with anyio.fail_after(30):
            await stream.rest()
    assert not demo.cancelled.is_set()


async def test_a_key_has_a_bounded_number_of_streams(node: Live, demo: Demo) -> None:
    task = (await begin(node, "waiter"))["id"]
    await demo.begun.wait()
    held = [watching(node, task) for _ in range(20)]
    for one in held:
        await one.__aenter__()
    refused = await node.get(f"{TASKS}/{task}/events")
    assert refused.told == (429, "too_many_streams")
    for one in held:
        await one.__aexit__(None, None, None)


async def test_a_silent_task_says_that_it_is_alive() -> None:
    begun, going_on = Task(**PLAIN), anyio.Event()

    async def watch() -> AsyncGenerator[Seen]:
        yield begun
        await going_on.wait()
        raise SourceFailed("It is gone.", way_out="look")

    stream = await task_stream(watch(), nullcontext(), lambda: True, beat=0.001)
    assert b"event: task\n" in await anext(stream.pieces)
    assert await anext(stream.pieces) == b": still at it\n\n"
    going_on.set()
    rest = b"".join([piece async for piece in stream.pieces])
    assert b"event: failure\n" in rest
    assert b"It is gone." in rest


async def test_a_stream_that_breaks_says_so_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def watch() -> AsyncGenerator[Seen]:
        yield Task(**PLAIN)
        raise RuntimeError("s3cret")

    with anyio.fail_after(30):
        stream = await task_stream(watch(), nullcontext(), lambda: True)
        _, last = [piece async for piece in stream.pieces]
    assert last.startswith(b"event: problem\n")
    assert b'"status":500' in last
    assert b"s3cret" not in last
    assert "s3cret" in caplog.text


async def broken(error: type[BaseException]) -> AsyncGenerator[Seen]:
    raise error
    yield Task(**PLAIN)


async def test_a_stream_that_breaks_at_once_is_none_and_does_not_hang() -> None:
    with anyio.fail_after(30), pytest.raises(OpenFangError):
        await task_stream(broken(RuntimeError), nullcontext(), lambda: True)
    with anyio.fail_after(30):
        stream = await task_stream(broken(asyncio.CancelledError), nullcontext(), lambda: True)
        assert [piece async for piece in stream.pieces] == []


PLAIN: dict[str, Any] = {
    "id": "task_1",
    "agent": "echo",
    "caller": "key:admin",
    "context": "talk",
    "session": "session_1",
    "state": TaskState.WORKING,
}


@asynccontextmanager
async def both(node: Live) -> AsyncGenerator[tuple[Local, Remote]]:
    headers = [("Authorization", f"Bearer {node.admin}")]
    async with Loopback(node.url, headers=headers) as client:
        local = Local(node.app.parts, node.app.caller, new_chain(), "api")
        yield local, Remote(Asking(client))


async def _lived(session: Session, demo: Demo) -> tuple[list[str], Task]:
    """Have a task worked on, and tell how that was heard."""
    demo.begun, demo.released = anyio.Event(), anyio.Event()
    begun = await session.send_task("waiter", "paint it", context="talk")
    await demo.begun.wait()
    kinds, last, said = list[str](), begun, ""
    async for seen in session.watch_task(begun.id):
        demo.released.set()
        last = seen if isinstance(seen, Task) else seen.task
        match seen:
            case TaskUpdate(what=Spoken(text=text)):
                said += text
            case TaskUpdate(what=Moved(state=state), n=n):
                kinds.append(f"moved {state.value} {n}")
            case _:
                kinds.append("task")
    assert said.startswith("I wait ")
    return kinds, last


async def test_a_session_over_a_socket_tells_tasks_as_one_in_process(
    node: Live, demo: Demo
) -> None:
    async with both(node) as (local, remote):
        lived = [await _lived(session, demo) for session in (local, remote)]
        assert lived[0][0] == lived[1][0] == ["task", "moved completed 3"]
        for _, task in lived:
            here, there = await local.task(task.id), await remote.task(task.id)
            assert _plain(here[0]) == _plain(there[0]) == _plain(task)
            assert [state for *_, state in here[1]] == [state for *_, state in there[1]]
        wanted = TaskFilter(agent="waiter", state=TaskState.COMPLETED, since=1, limit=1)
        pages = [await session.tasks(wanted) for session in (local, remote)]
        assert pages[0].after == pages[1].after != ""
        assert [_plain(one) for one in pages[0].tasks] == [_plain(one) for one in pages[1].tasks]
        assert await local.peers() == await remote.peers() == []
        for session in (local, remote):
            with pytest.raises(NotFound):
                await session.task("task_nowhere")
            with pytest.raises(NotFound):
                await anext(session.watch_task("task_nowhere"))
            with pytest.raises(Conflict):
                await session.cancel_task(lived[0][1].id)
            with pytest.raises(NotFound):
                await session.send_task("nobody", "hello")
            asks = (await session.send_task("asker", "hello", context="talk")).id
            with pytest.raises(Rejected, match="talk"):
                await session.send_task("asker", "hello", task=asks, context="x")
        with pytest.raises(NotFound):
            await remote.task("")


def _plain(task: Task) -> tuple[Any, ...]:
    said = [(one.role, one.parts) for one in task.history]
    made = [(one.name, one.parts) for one in task.artifacts]
    return task.id, task.state, task.version, task.labels, task.context, said, made


async def test_a_client_hears_of_it_when_the_node_ends_before_the_task(
    node: Live, demo: Demo
) -> None:
    async with both(node) as (_, remote):
        begun = await remote.send_task("waiter", "paint it")
        await demo.begun.wait()
        watched = remote.watch_task(begun.id)
        assert isinstance(await anext(watched), Task)
        node.stop.set()
        with pytest.raises((DaemonUnreachable, SourceFailed)):
            assert [seen async for seen in watched] == []


async def test_only_the_head_of_a_stream_leaves_nothing_behind(node: Live, demo: Demo) -> None:
    task = (await begin(node, "waiter"))["id"]
    await demo.begun.wait()
    for _ in range(25):  # more than a key may have open
        reply: Reply = await node.ask("HEAD", f"{TASKS}/{task}/events")
        assert (reply.status, reply.body) == (200, b"")
