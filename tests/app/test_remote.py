"""One interface, two ways: what a session in process says, one over a real socket says too."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live

from openfang.app.local import Local
from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.bodies import explanation_body, result_body, tool_body
from openfang.core.calls import Grants, Mode, Role
from openfang.core.errors import CallFailed, OpenFangError, Parked, SourceFailed
from openfang.core.ids import Kind
from openfang.core.keys import AdminToken, Key, QuestionFilter, Scope
from openfang.core.log import Search
from openfang.core.results import Result
from openfang.core.session import Options
from openfang.core.tools import Risk
from openfang.core.trace import new_chain
from openfang.core.wire import key_body, question_body
from openfang.host.loopback import Loopback
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from pathlib import Path

    from openfang.core.session import Session

    Act = Callable[[Session], Awaitable[object]]

pytestmark = pytest.mark.requirement("C12.5", "C7.14", "C18.1")

_SHELL: dict[str, Any] = {"command": ["echo", "hello"]}


async def _breaks(_: Mapping[str, Any]) -> str:
    raise SourceFailed("It broke: Error: twice.", way_out="mend it")


async def _everything(_: Mapping[str, Any]) -> Result:
    return Result(
        content=({"type": "text", "text": "\u00e9\n"}, {"type": "image", "data": "QQ==", "x": 1}),
        structured={"a": [1, 2.5, None, {"b": True}]},
        is_error=True,
    )


def _source(description: str = "Says much.") -> TableSource:
    low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    much = {**low, "description": description, "title": "Much", "output_schema": {"type": "object"}}
    return TableSource(Kind.MCP, "odd", {"breaks": (low, _breaks), "a/b c": (much, _everything)})


@asynccontextmanager
async def both(folder: Path) -> AsyncGenerator[tuple[Local, Remote]]:
    """Open the same node both ways, for the same caller."""
    async with live(folder / "home", sources=[_source()]) as node:
        node.app.add(_source("Says more, since it was changed."))
        headers = [("Authorization", f"Bearer {node.admin}")]
        async with Loopback(node.url, headers=headers) as client:
            local = Local(node.app.parts, node.app.caller, new_chain(), "api")
            yield local, Remote(Asking(client))


async def _reads(session: Session) -> dict[str, Any]:
    """Everything that can be read, as it is shown."""
    now = time.time_ns()
    found = [
        await session.tools(),
        await session.tools(kind=Kind.MCP),
        await session.tools(risk=Risk.HIGH),
        await session.tools(tag="fs.read", disabled=True),
        await session.tools(disabled=True),
    ]
    held, difference = await session.tool("mcp:odd:a/b c")
    page = await session.questions(QuestionFilter(state="all"))
    questions = page.questions
    return {
        "tools": [[tool_body(tool) for tool in tools] for tools in found],
        "held": (tool_body(held), difference),
        "shell": tool_body((await session.tool("bash_exec"))[0]),
        "explained": explanation_body(await session.explain("shell_exec", _SHELL)),
        "questions": [question_body(question, now) for question in questions],
        "question": question_body(await session.question(questions[0].id), now),
        "pending": [question.id for question in (await session.questions()).questions],
        "page": (page.total, page.next),
        "specs": [spec.hash for spec in await session.specs()],
        "keys": [key_body(key, now) for key in await session.keys()],
        "search": await session.search(Search(event="key_created", text="admin", after=0)),
        "after": [event async for event in session.after(1)],
        "sql": [
            (names, [[_shown(value) for value in row] for row in rows])
            for names, rows in await session.sql("SELECT seq, hash, NULL AS n FROM audit; SELECT 1")
        ],
        "nothing": await session.sql(""),
        "verified": await session.verify(),
        "unkept": await session.whole_result("openfang://results/none"),
    }


def _shown(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


async def test_whatever_is_read_is_the_same_both_ways(tmp_path: Path) -> None:
    async with both(tmp_path) as (local, remote):
        await local.freeze_spec("plan", b"text", "default")
        await local.freeze_spec("bytes", b"\xff\x00", "default")
        await local.create_key(Key(id="", name="brief"), ttl=3600)
        await local.create_token(AdminToken(id="", name="second", tools=("mcp:*",)))
        await local.revoke_key("brief")
        with pytest.raises(Parked):
            await local.call("shell_exec", _SHELL)
        assert await _reads(remote) == await _reads(local)


async def test_a_result_comes_back_with_every_part(tmp_path: Path) -> None:
    async with both(tmp_path) as (local, remote):
        await remote.accept_tool("mcp:odd:a/b c")
        there, here = [result_body(await s.call("mcp:odd:a/b c", {})) for s in (remote, local)]
        for name in ("outcome", "content", "structured", "labels"):
            assert there[name] == here[name]
        found = await remote.search(Search(call_id=there["call_id"]))
        start, end = found[1:]
        assert there["audit"] == {"start": start.audit_id, "end": end.audit_id, "hash": end.hash}


async def test_what_was_cut_is_read_whole(tmp_path: Path) -> None:
    text = "long " * 20_000
    async with both(tmp_path) as (local, remote):
        await remote.call("file_write", {"path": "long", "content": text})
        cut = await remote.call("file_read", {"path": "long"})
        uri = cut.content[-1]["text"].rsplit(" ", 1)[-1].rstrip("]")
        whole = await remote.whole_result(uri)
        assert whole == await local.whole_result(uri)
        assert whole is not None
        assert text.encode() in whole


def _bound(**more: Any) -> Key:
    return Key(
        id="",
        name="full",
        role=Role.AUDITOR,
        edges=("api", "mcp"),
        grants=Grants(tools=("file_*",), network=("a.example",), memory_read=("notes.*",)),
        mode=Mode.PLANNING,
        blacklist=frozenset({"fs.delete"}),
        cells_per_minute=100,
        **more,
    )


@pytest.mark.parametrize("key", [_bound(), _bound(projects=("a", "b")), Key(id="", name="admin-2")])
async def test_a_key_is_made_as_it_was_wanted(tmp_path: Path, key: Key) -> None:
    async with both(tmp_path) as (local, remote):
        made, secret = await remote.create_key(key, ttl=100)
        stored = await local.parts.keys.find_key(secret)
        assert stored is not None
        assert (stored.id, stored.role, stored.edges) == (made.id, key.role, key.edges)
        assert (stored.grants, stored.mode, stored.spec) == (key.grants, key.mode, key.spec)
        assert (stored.projects, stored.blacklist) == (key.projects, key.blacklist)
        assert stored.cells_per_minute == key.cells_per_minute
        now = time.time_ns()
        assert key_body(made, now) == key_body(stored, now)
        assert made.expires_at is not None
        assert stored.expires_at is not None
        assert made.expires_at + 1_000 > stored.expires_at
        ended = await remote.revoke_key(made.name)
        assert ended.revoked_at is not None
        assert await local.parts.keys.find_key(secret) is None


async def test_an_admin_token_a_spec_and_an_answer_take_effect(tmp_path: Path) -> None:
    async with both(tmp_path) as (local, remote):
        token, secret = await remote.create_token(AdminToken(id="", name="t", tools=("mcp:*",)))
        assert (await local.keys())[-1] == await local.parts.keys.find_token(secret)
        assert token.tools == ("mcp:*",)
        specs = [await remote.freeze_spec("p", content, "default") for content in (b"a", b"\xff")]
        assert [spec.hash for spec in specs] == [spec.hash for spec in await local.specs()]
        with pytest.raises(Parked) as parked:
            await remote.call("shell_exec", _SHELL)
        question = parked.value.question_id
        answered = await remote.answer(question, approve=True, scope=Scope.RULE)
        assert (answered.scope, answered.answered_by) == (Scope.RULE, "key:admin")
        assert "hello" in (await remote.call("shell_exec", _SHELL)).text
        assert (await remote.answer(question, approve=False)).state.value == "denied"


async def test_a_call_waits_for_its_answer(tmp_path: Path) -> None:
    results: list[Result] = []
    async with both(tmp_path) as (local, remote), anyio.create_task_group() as group:

        async def call() -> None:
            results.append(await remote.call("shell_exec", _SHELL, Options(patience=30)))

        group.start_soon(call)
        while not (asked := (await remote.questions()).questions):
            pass
        await local.answer(asked[0].id, approve=True)
    assert "hello" in results[0].text


_REFUSED: dict[str, Act] = {
    "unknown": lambda s: s.call("nothing/such?", {}),
    "empty": lambda s: s.call("", {}),
    "schema": lambda s: s.call("file_read", {"path": 7}),
    "large": lambda s: s.call("file_write", {"path": "a", "content": "x" * (1 << 20)}),
    "deep": lambda s: s.call("system_time", _nested(70)),
    "planning": lambda s: s.call("shell_exec", _SHELL, Options(mode=Mode.PLANNING)),
    "project": lambda s: s.call("system_time", {}, Options(project="other")),
    "blacklist": lambda s: s.call("file_list", {}, Options(blacklist=frozenset({"fs.read"}))),
    "parked": lambda s: s.call("shell_exec", _SHELL),
    "held": lambda s: s.call("mcp:odd:a/b c", {}),
    "broken": lambda s: s.call("mcp:odd:breaks", {}),
    "explain": lambda s: s.explain("nothing", {}),
    "show": lambda s: s.tool("nothing"),
    "accept": lambda s: s.accept_tool("nothing"),
    "question": lambda s: s.question("ask_/none"),
    "answer": lambda s: s.answer("ask_none", approve=True),
    "key": lambda s: s.create_key(Key(id="", name="admin")),
    "config": lambda s: s.create_key(Key(id="", name="config")),
    "revoke": lambda s: s.revoke_key("no/body"),
    "spec": lambda s: s.freeze_spec("plan", b"text", "other"),
    "sql": lambda s: s.sql("DELETE FROM audit"),
}


def _nested(depth: int) -> dict[str, Any]:
    return {"a": _nested(depth - 1)} if depth else {}


async def _refusal(session: Session, act: Act) -> dict[str, Any]:
    with pytest.raises(OpenFangError) as raised:
        await act(session)
    error = raised.value
    own = {} if isinstance(error, CallFailed) else vars(error)
    return {"kind": type(error), "code": error.code, "words": (error.args, error.way_out), **own}


async def test_whatever_is_refused_is_refused_in_the_same_words_both_ways(tmp_path: Path) -> None:
    async with both(tmp_path) as (local, remote):
        await local.freeze_spec("plan", b"text", "default")
        for name, act in _REFUSED.items():
            here, there = await _refusal(local, act), await _refusal(remote, act)
            assert (name, there) == (name, here)


async def test_a_caller_without_the_role_is_refused_in_the_same_words(tmp_path: Path) -> None:
    acts: list[Act] = [
        lambda s: s.keys(),
        lambda s: s.search(Search()),
        lambda s: s.verify(),
        lambda s: s.answer("ask_1", approve=True),
        lambda s: anext(s.after(0)),
    ]
    async with both(tmp_path) as (local, remote):
        key, secret = await local.create_key(Key(id="", name="plain"))
        headers = [("Authorization", f"Bearer {secret}")]
        async with Loopback(remote.daemon.client.base_url, headers=headers) as client:
            plain = Remote(Asking(client))
            theirs = Local(local.parts, key.caller(), new_chain(), "api")
            for act in acts:
                assert await _refusal(plain, act) == await _refusal(theirs, act)


async def test_many_calls_at_once_come_back_each_to_its_own(tmp_path: Path) -> None:
    async with both(tmp_path) as (_, remote):
        found: dict[int, str] = {}

        async def store(number: int) -> None:
            await remote.call("memory_store", {"key": f"k{number}", "value": number})
            read = await remote.call("memory_recall", {"key": f"k{number}"})
            found[number] = read.text

        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(store, number)
        assert found == {number: str(number) for number in range(60)}
        events = [event async for event in remote.after(0)]
        assert [event.audit_id for event in events] == list(range(1, len(events) + 1))
        assert len(events) > 360
