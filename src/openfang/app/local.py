"""A session in process: one caller, this home."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from openfang.app.a2a.desk import Desk
from openfang.app.a2a.people import (
    check_enabled,
    check_reached,
    peer_body,
    peers_body,
    written,
)
from openfang.app.agents.memories import Memories, memories_of
from openfang.app.agents.roster import agent_body, agents_body
from openfang.app.agents.sessions import Conversations
from openfang.app.approvals.answering import Answering
from openfang.app.auth.identify import identify, require
from openfang.app.calling import ONE_SHOT
from openfang.app.cluster.people import Gathering
from openfang.app.definitions import held_body
from openfang.app.environment import credential, incoming_chain
from openfang.app.home.paths import Home
from openfang.app.installs.people import Installing
from openfang.app.lifespan import open_app
from openfang.app.managing import Managing
from openfang.app.schedules.people import Scheduling
from openfang.app.spending import spending_report
from openfang.config.home import find_home
from openfang.core.bookmarks import bookmark
from openfang.core.calls import Role
from openfang.core.errors import NotFound, UnknownTool
from openfang.core.events import AuditEvent
from openfang.core.keys import OPEN, QuestionPage, Scope, Way
from openfang.core.memory import OWN
from openfang.core.session import NO_OPTIONS, Options
from openfang.core.values import dataclass
from openfang.pipeline.explain import explain
from openfang.pipeline.shape import URI_PREFIX
from openfang.storage.chains import heads
from openfang.storage.log import batch, chain_names, search

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.decisions import Explanation
    from openfang.core.ids import Kind
    from openfang.core.keys import Question, QuestionFilter
    from openfang.core.labels import Labels
    from openfang.core.log import Proof, Search, Table, Verification
    from openfang.core.memory import Wanted
    from openfang.core.results import Result
    from openfang.core.sessions import SessionPage, SessionSummary, SessionTurn
    from openfang.core.tasks import Seen, Task, TaskFilter, TaskPage, TaskState
    from openfang.core.tools import Risk, Tool
    from openfang.core.usage import Report, UsageQuery
    from openfang.storage.log import LogRow
    from openfang.storage.ports import Reader

T = TypeVar("T")
_OF_AGENTS = ("agent:", "openfang_agent_")
_ELSEWHERE = "a2a:"
_WATCHERS = (Role.AUDITOR, Role.APPROVER, Role.ADMIN)
_WAYS = {ONE_SHOT: Way.CLI, "web": Way.WEB}


@dataclass(frozen=True, slots=True)
class Local(Managing, Scheduling, Installing, Gathering):
    """What one caller can do with an open home."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Result:
        """Take the one path."""
        await self._offered(tool)
        try:
            return await self.parts.pipeline.invoke(self.make(tool, arguments, options))
        except UnknownTool:
            if tool.startswith(_ELSEWHERE):
                check_reached(self.parts, self.caller, tool.removeprefix(_ELSEWHERE))
            raise

    async def explain(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Explanation:
        """Decide, and do nothing."""
        await self._offered(tool)
        return await explain(self.parts.pipeline, self.make(tool, arguments, options))

    async def tools(
        self,
        *,
        kind: Kind | None = None,
        risk: Risk | None = None,
        tag: str | None = None,
        disabled: bool = False,
    ) -> Sequence[Tool]:
        """List what this caller can see, by wire name; `disabled` adds what it cannot use."""
        await self._offered()
        return self.parts.catalog.list(
            self.caller, kind=kind, risk=risk, tag=tag, disabled=disabled
        )

    async def tool(self, name: str) -> tuple[Tool, Mapping[str, Any] | None]:
        """Find a tool by any name; of one that is held back, all that a person decides by."""
        await self._offered(name)
        tool = self.parts.catalog.find(self.caller, name)
        held = self.parts.registry.snapshot.held.get(tool.id)
        return tool, held_body(held) if held else None

    async def _offered(self, name: str = "") -> None:
        """Let servers connect before their tools are missed; a daemon has done so long before."""
        servers = self.parts.servers
        if servers is None or (name and self.parts.registry.find(name) is not None):
            return
        if self.parts.installs:
            await self.parts.installs.settled()
        of_agents, one_shot = name.startswith(_OF_AGENTS), self.edge == ONE_SHOT
        perhaps = not name or (one_shot and not name.startswith("mcp"))
        if self.parts.agents and (of_agents or perhaps):
            await self.parts.agents.opened()
        if one_shot and not of_agents:
            await servers.settled()
        elif name and not of_agents:
            await servers.wake(name)

    async def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        found = await self.kept(uri)
        return found[0] if found else None

    async def kept(self, uri: str) -> tuple[bytes, Labels] | None:
        """Find a result that was cut, and what it carries."""
        blob = uri.removeprefix(URI_PREFIX)
        return await self.parts.blobs.get(blob, self.caller.id, self.parts.clock.time_ns())

    async def questions(self, wanted: QuestionFilter = OPEN) -> QuestionPage:
        """List what waits for a person, newest first: everybody's for who watches the node."""
        if self.caller.role not in _WATCHERS:
            if wanted.caller not in {"", self.caller.id}:
                return QuestionPage(questions=(), total=0)
            wanted = replace(wanted, caller=self.caller.id)
        return await self.parts.approvals.store.page(wanted, self.parts.clock.time_ns())

    async def question(self, question_id: str) -> Question:
        """Find one question; another caller's does not exist."""
        question = await self.parts.approvals.store.get(question_id)
        if question is None or not self._concerns(question):
            raise NotFound(f"No question {question_id}.", way_out="openfang approvals list --all")
        return question

    def _concerns(self, question: Question) -> bool:
        return self.caller.role in _WATCHERS or question.caller == self.caller.id

    async def answer(
        self, question_id: str, *, approve: bool, scope: Scope = Scope.ONCE
    ) -> Question:
        """Answer a question."""
        via = _WAYS.get(self.edge, Way.API)
        answering = Answering(self.parts, self.caller)
        return await answering.answer(question_id, approve=approve, scope=scope, via=via)

    async def agents(self) -> Sequence[Mapping[str, Any]]:
        """Describe the agents that this caller may call, by name."""
        return await agents_body(self.parts, self.caller)

    async def agent(self, name: str) -> Mapping[str, Any]:
        """Describe one; another does not exist."""
        return await agent_body(self.parts, self.caller, name)

    async def sessions(self, *, agent: str = "", after: str = "", limit: int = 50) -> SessionPage:
        """List conversations with agents, newest first: one's own, or all for who watches."""
        return await self._conversations.page(agent=agent, after=after, limit=limit)

    async def session(self, session_id: str) -> tuple[SessionSummary, Sequence[SessionTurn]]:
        """Read one whole conversation; another caller's does not exist."""
        return await self._conversations.show(session_id)

    async def export_session(self, session_id: str, form: str) -> AsyncGenerator[bytes]:
        """Write one out, however long it is: as lines of JSON (`jsonl`) or Markdown (`md`)."""
        return await self._conversations.export(session_id, form)

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Delete one and all that was said in it."""
        return await self._conversations.delete(session_id)

    @property
    def _conversations(self) -> Conversations:
        return Conversations(self.parts, self.caller)

    async def memories(self, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """List what is remembered, or find it by its words."""
        return await (await self._memories(wanted)).found(wanted)

    async def memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Read one memory of such a space, whole."""
        return await (await self._memories(wanted)).show(key)

    async def forget_memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Forget one; returns what it was."""
        return await (await self._memories(wanted)).forget(key)

    async def _memories(self, wanted: Wanted) -> Memories:
        return await memories_of(self.parts, self.caller, wanted)

    async def usage(self, wanted: UsageQuery) -> Report:
        """Add up what was used: by everybody for who watches, else for this caller."""
        return await spending_report(self.parts, self.caller, wanted)

    async def send_task(
        self, agent: str, message: str, *, context: str = "", task: str = ""
    ) -> Task:
        """Give an agent of ours work that outlives this; returns at once, when it is kept."""
        if not task:
            check_enabled(self.parts)
        return await self._desk.send(written(agent, message, context, task))

    async def tasks(self, wanted: TaskFilter) -> TaskPage:
        """List tasks, the last changed first: one's own, or all for who watches."""
        return await self._desk.page(wanted)

    async def task(self, task_id: str) -> tuple[Task, Sequence[tuple[int, int, TaskState]]]:
        """Read one and the states it went through: number, time, state. Another's is not there."""
        task = await self._desk.get(task_id)
        return task, await self.parts.tasks.states(task.id)

    def watch_task(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one as it is, then all that happens to it, until it has ended."""
        return self._desk.watch(task_id)

    async def cancel_task(self, task_id: str) -> Task:
        """End one, and the work on it. `Conflict`: it has ended already."""
        return await self._desk.cancel(task_id)

    @property
    def _desk(self) -> Desk:
        return Desk(self.parts, self.caller, self.chain, self.edge)

    async def peers(self) -> Sequence[Mapping[str, Any]]:
        """Say of each agent elsewhere that is configured who it is, and how."""
        if self.edge == ONE_SHOT and self.parts.peers is not None:
            await self.parts.peers.settled()
        return peers_body(self.parts, self.caller)

    async def discover_peer(self, name: str) -> Mapping[str, Any]:
        """Ask one of them for its card now, and say who it is, and how."""
        peers = self.parts.peers
        if peers is not None and self.edge == ONE_SHOT:
            await peers.settled(name)
        elif peers is not None:
            peer_body(self.parts, self.caller, name)  # one that is not theirs is not asked
            await peers.again(name)
        return peer_body(self.parts, self.caller, name)

    async def search(self, wanted: Search) -> list[AuditEvent]:
        """Find the newest entries that match, oldest first."""
        await require(self.parts, self.caller, Role.AUDITOR)
        return await self.parts.database.aside(lambda reader: _found(reader, wanted))

    async def heads(self) -> Bookmark:
        """Say where the log ends now."""
        await require(self.parts, self.caller, Role.AUDITOR)
        return await heads(self.parts.database)

    async def after(self, seen: int | Bookmark) -> AsyncIterator[AuditEvent]:
        """Read every entry after this one, those of each node in order."""
        async for row in self._rows(seen):
            yield AuditEvent.of(row)

    async def sql(self, text: str) -> list[Table]:
        """Run queries that only read: of each the columns' names and the first rows."""
        await require(self.parts, self.caller, Role.AUDITOR)
        return await self.parts.database.query(text)

    async def export(self, after: int | Bookmark) -> AsyncIterator[Mapping[str, Any]]:
        """Read the same with all that is hashed: a signed head, checkpoints, then records."""
        from openfang.app.verify import opened  # noqa: PLC0415 - it needs the signing library
        from openfang.audit.export import row_body  # noqa: PLC0415 - as above

        now = self.parts.clock.time_ns()
        await require(self.parts, self.caller, Role.AUDITOR)
        begun = await opened(self.parts, after, now)
        for line in begun.lines:
            yield line
        async for row in self._rows(after):
            if begun.covers(row):
                yield row_body(row)

    async def _rows(self, after: int | Bookmark) -> AsyncIterator[LogRow]:
        """Read on in the log, some at once and aside: it may be long."""
        await require(self.parts, self.caller, Role.AUDITOR)
        for node in await self.parts.database.aside(chain_names):
            last = bookmark(after).of(node)
            while found := await self.parts.database.aside(partial(batch, node=node, after=last)):
                for row in found:
                    yield row
                last = found[-1][1]
                await require(self.parts, self.caller, Role.AUDITOR)

    async def prove(self, seq: int, digest: str) -> Proof:
        """Say whether the log has this record with this hash: that is no secret to who knows it."""
        from openfang.app.verify import prove  # noqa: PLC0415 - it needs the signing library

        return await prove(self.parts, seq, digest)

    async def verify(self) -> Verification:
        """Check the whole log against its hashes and its signed checkpoints."""
        from openfang.app.verify import verify  # noqa: PLC0415 - it needs the signing library

        await require(self.parts, self.caller, Role.AUDITOR)
        return await verify(self.parts)


async def _found(reader: Reader, wanted: Search) -> list[AuditEvent]:
    return [AuditEvent.of(row) for row in await search(reader, wanted)]


@asynccontextmanager
async def open_local(environ: Mapping[str, str] | None = None) -> AsyncGenerator[Local]:
    """Open the home of the environment, as the holder of its key."""
    environ = os.environ if environ is None else environ
    home = Home(find_home(environ))
    async with open_app(home, environ) as parts:
        caller = await identify(parts, credential(home, environ), "api")
        yield Local(parts, caller, incoming_chain(environ))
