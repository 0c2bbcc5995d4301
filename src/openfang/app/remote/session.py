"""A session over HTTP: one caller, the daemon of this home.

What the daemon refuses is raised as the same error that a session in process raises. What was sent
is never sent again: if no answer came, the error says that it may have been done.
"""

from __future__ import annotations

import math
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

from openfang.app.remote.addresses import (
    SERVERS,
    TASKS,
    agent_path,
    memories_path,
    memory_path,
    query_of,
    secret_path,
    segment,
    server_path,
    session_path,
    task_path,
    tool_path,
)
from openfang.app.remote.asking import in_doubt
from openfang.app.remote.installs import RemoteInstalls
from openfang.app.remote.keys import content_body, dated_key, read_made, wanted_key
from openfang.app.remote.log import RemoteLog
from openfang.app.remote.nodes import RemoteNodes
from openfang.app.remote.objects import an_object
from openfang.app.remote.questions import dated_question, questions_query, read_questions
from openfang.app.remote.schedules import RemoteSchedules
from openfang.core.errors import NotFound, Parked
from openfang.core.keys import OPEN, AdminToken, Key, Scope
from openfang.core.memory import OWN
from openfang.core.session import NO_OPTIONS, Options
from openfang.core.task_wire import Following, read_states, read_task, read_tasks
from openfang.core.usage import read_report
from openfang.core.values import dataclass
from openfang.core.wire import (
    read_explanation,
    read_result,
    read_session,
    read_sessions,
    read_spec,
    read_tool,
    read_turn,
)
from openfang.host.loopback import DaemonUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from openfang.core.decisions import Explanation
    from openfang.core.ids import Kind
    from openfang.core.keys import Question, QuestionFilter, QuestionPage, Spec
    from openfang.core.memory import Wanted
    from openfang.core.results import Result
    from openfang.core.sessions import SessionPage, SessionSummary, SessionTurn
    from openfang.core.tasks import Seen, Task, TaskFilter, TaskPage, TaskState
    from openfang.core.tools import Risk, Tool
    from openfang.core.usage import Report, UsageQuery
    from openfang.host.loopback import Reply

T = TypeVar("T")
_LONGEST_WAIT: Final = 600
_RESULTS: Final = "openfang://results/"
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Remote(RemoteSchedules, RemoteInstalls, RemoteNodes, RemoteLog):
    """The daemon, asked as one caller."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Result:
        """Take the one path. Who waits longer than the daemon lets it asks again."""
        patience = math.ceil(options.patience)
        while patience > _LONGEST_WAIT:
            try:
                return await self._call(tool, arguments, options, _LONGEST_WAIT)
            except Parked:
                patience -= _LONGEST_WAIT
        return await self._call(tool, arguments, options, patience)

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], options: Options, wait: int
    ) -> Result:
        path, body = f"{tool_path(tool)}/call", _call_body(arguments, options)
        doubt = f"The call of {tool} was sent: it may have run"
        with in_doubt(doubt, f"openfang audit search --tool {tool}"):
            reply = await self._answered(path, body, options, _call_headers(options, wait))
            return self.daemon.read(reply, read_result)

    async def _answered(
        self, path: str, body: object, options: Options, headers: Sequence[tuple[str, str]]
    ) -> Reply:
        told = options.progress
        if told is None:
            return await self.daemon.reply("POST", path, body, headers=headers, timeout=None)
        return await self.daemon.told(path, body, told, headers=headers)

    async def explain(
        self, tool: str, arguments: Mapping[str, Any], options: Options = NO_OPTIONS
    ) -> Explanation:
        """Decide, and do nothing."""
        path, body = f"{tool_path(tool)}/explain", _call_body(arguments, options)
        reply = await self.daemon.reply("POST", path, body, headers=_call_headers(options))
        found, _ = await self.tool(self.daemon.read(reply, lambda one: one["tool"]))
        return self.daemon.read(reply, lambda one: read_explanation(one, found))

    async def tools(
        self,
        *,
        kind: Kind | None = None,
        risk: Risk | None = None,
        tag: str | None = None,
        disabled: bool = False,
    ) -> Sequence[Tool]:
        """List what this caller can see, by wire name; `disabled` adds what it cannot use."""
        wanted = {
            "source": kind and kind.value,
            "risk": risk and risk.name,
            "tag": tag,
            "all": "true" if disabled else None,
        }
        return await self.daemon.get(f"/api/tools{query_of(wanted)}", _each("tools", read_tool))

    async def tool(self, name: str) -> tuple[Tool, Mapping[str, Any] | None]:
        """Find a tool by any name; of one that is held back, all that a person decides by."""
        return await self.daemon.get(
            tool_path(name), lambda body: (read_tool(body), body["held_back"])
        )

    async def accept_tool(self, name: str) -> Tool:
        """Take a tool that changed as it is now."""
        return await self.daemon.act("POST", f"{tool_path(name)}/accept", read_tool, {})

    async def held(self, source: str = "") -> Sequence[Mapping[str, Any]]:
        """List what is held back of what others say of themselves, and why."""
        path = f"/api/held{query_of({'source': source or None})}"
        return await self.daemon.get(path, lambda body: body["held"])

    async def accept(self, id_: str, digest: str = "") -> Mapping[str, Any]:
        """Take what is held back as it is now; with a digest, only if it is still that."""
        body = {"digest": digest} if digest else {}
        path = f"/api/held/{segment(id_)}/accept"
        return await self.daemon.act("POST", path, an_object, body)

    async def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        try:
            path = f"/api/results/{segment(uri.removeprefix(_RESULTS))}"
            return (await self.daemon.reply("GET", path)).body
        except NotFound:
            return None

    async def questions(self, wanted: QuestionFilter = OPEN) -> QuestionPage:
        """List what waits for a person, newest first."""
        return await self.daemon.get(f"/api/approvals{questions_query(wanted)}", read_questions)

    async def question(self, question_id: str) -> Question:
        """Find one question; another caller's does not exist."""
        return await self.daemon.get(f"/api/approvals/{segment(question_id)}", dated_question)

    async def answer(
        self, question_id: str, *, approve: bool, scope: Scope = Scope.ONCE
    ) -> Question:
        """Answer a question."""
        body = {"answer": "approve" if approve else "deny", "scope": scope.value}
        return await self.daemon.act(
            "POST", f"/api/approvals/{segment(question_id)}", dated_question, body
        )

    async def specs(self) -> list[Spec]:
        """List the frozen specs, oldest first."""
        return await self.daemon.get("/api/specs", _each("specs", read_spec))

    async def freeze_spec(self, name: str, content: bytes, project: str) -> Spec:
        """Freeze a plan; freezing the same content again changes nothing."""
        body = {"name": name, "project": project, **content_body(content)}
        return await self.daemon.act("POST", "/api/specs", read_spec, body)

    async def keys(self) -> list[Key | AdminToken]:
        """List all keys and tokens, never their secrets."""
        return await self.daemon.get("/api/keys", _each("keys", dated_key))

    async def create_key(self, key: Key, *, ttl: float | None = None) -> tuple[Key, str]:
        """Make a key; its secret is returned once and kept nowhere."""
        return await self.daemon.act("POST", "/api/keys", read_made(Key), wanted_key(key, ttl))

    async def create_token(
        self, token: AdminToken, *, ttl: float | None = None
    ) -> tuple[AdminToken, str]:
        """Make an admin token, for gate 6."""
        return await self.daemon.act(
            "POST", "/api/keys", read_made(AdminToken), wanted_key(token, ttl)
        )

    async def revoke_key(self, name: str) -> Key | AdminToken:
        """End a key or token, by name or id."""
        return await self.daemon.act("DELETE", f"/api/keys/{segment(name)}", dated_key)

    async def servers(self) -> Mapping[str, Any]:
        """Show the MCP servers: `configured`, and `connected` with the tools of each."""
        return await self.daemon.get(SERVERS, an_object)

    async def server(self, name: str) -> Mapping[str, Any]:
        """Show everything that is known of one MCP server."""
        return await self.daemon.get(server_path(name), an_object)

    async def server_health(self) -> Mapping[str, str]:
        """Say of each MCP server that is enabled: healthy, degraded or unhealthy."""
        return await self.daemon.get("/api/mcp/health", an_object)

    async def server_log(self, name: str) -> Sequence[str]:
        """Read what an MCP server last wrote for people."""
        return await self.daemon.get(f"{server_path(name)}/logs", _each("lines", str))

    async def try_server(self, name: str) -> Mapping[str, Any]:
        """Connect to an MCP server once more, to see what is wrong; it need not be enabled."""
        return await self.daemon.act("POST", f"{server_path(name)}/test", an_object, {})

    async def refresh_servers(self) -> Mapping[str, Any]:
        """Ask the MCP servers for their tools again: how many answered, and who did not."""
        return await self.daemon.act("POST", f"{SERVERS}/refresh", an_object, {})

    async def change_server(self, name: str, act: str) -> Mapping[str, Any]:
        """Enable, disable or restart an MCP server."""
        return await self.daemon.act("POST", f"{server_path(name)}/{segment(act)}", an_object, {})

    async def add_server(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a new MCP server down; it waits until it is enabled."""
        return await self.daemon.act("POST", SERVERS, an_object, dict(entry))

    async def remove_server(self, name: str) -> Mapping[str, Any]:
        """Take an MCP server out of the configuration."""
        return await self.daemon.act("DELETE", server_path(name), an_object)

    async def secrets(self) -> Sequence[Mapping[str, Any]]:
        """List the names that are stored, and those that servers miss; never a value."""
        return await self.daemon.get("/api/secrets", _each("secrets", an_object))

    async def set_secret(self, name: str, value: str) -> Mapping[str, Any]:
        """Store or replace a secret; servers that refer to it get it at once."""
        return await self.daemon.act("PUT", secret_path(name), an_object, {"value": value})

    async def remove_secret(self, name: str, *, force: bool = False) -> Mapping[str, Any]:
        """Delete a secret; one that a server refers to only with `force`."""
        query = query_of({"force": "true" if force else None})
        return await self.daemon.act("DELETE", f"{secret_path(name)}{query}", an_object)

    async def agents(self) -> Sequence[Mapping[str, Any]]:
        """Describe the agents that this caller may call, by name."""
        return await self.daemon.get("/api/agents", _each("agents", an_object))

    async def agent(self, name: str) -> Mapping[str, Any]:
        """Describe one; another does not exist."""
        return await self.daemon.get(agent_path(name), an_object)

    async def sessions(self, *, agent: str = "", after: str = "", limit: int = 50) -> SessionPage:
        """List conversations with agents, newest first: one's own, or all for who watches."""
        query = query_of({"agent": agent or None, "after": after or None, "limit": limit})
        return await self.daemon.get(f"/api/sessions{query}", read_sessions)

    async def session(self, session_id: str) -> tuple[SessionSummary, Sequence[SessionTurn]]:
        """Read one whole conversation; another caller's does not exist."""
        turns = _each("turns", read_turn)
        return await self.daemon.get(
            session_path(session_id), lambda body: (read_session(body), turns(body))
        )

    async def export_session(self, session_id: str, form: str) -> AsyncGenerator[bytes]:
        """Write one out, however long it is: as lines of JSON (`jsonl`) or Markdown (`md`)."""
        return self.daemon.pieces(f"{session_path(session_id)}/export{query_of({'format': form})}")

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Delete one and all that was said in it."""
        return await self.daemon.act("DELETE", session_path(session_id), read_session)

    async def memories(self, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """List what is remembered, or find it by its words."""
        return await self.daemon.get(memories_path(wanted), an_object)

    async def memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Read one memory of such a space, whole."""
        return await self.daemon.get(memory_path(key, wanted), an_object)

    async def forget_memory(self, key: str, wanted: Wanted = OWN) -> Mapping[str, Any]:
        """Forget one; returns what it was."""
        return await self.daemon.act("DELETE", memory_path(key, wanted), an_object)

    async def usage(self, wanted: UsageQuery) -> Report:
        """Add up what was used: by everybody for who watches, else for this caller."""
        query = query_of({name: getattr(wanted, name) or None for name in wanted.__slots__})
        return await self.daemon.get(f"/api/usage{query}", read_report, timeout=None)

    async def send_task(
        self, agent: str, message: str, *, context: str = "", task: str = ""
    ) -> Task:
        """Give an agent of ours work that outlives this; returns at once, when it is kept."""
        chosen = {"context": context, "task": task}
        body = {"agent": agent, "message": message, **{k: v for k, v in chosen.items() if v}}
        return await self.daemon.act("POST", TASKS, read_task, body)

    async def tasks(self, wanted: TaskFilter) -> TaskPage:
        """List tasks, the last changed first: one's own, or all for who watches."""
        chosen = {
            "agent": wanted.agent or None,
            "context": wanted.context or None,
            "state": wanted.state and wanted.state.value,
            "since": wanted.since and wanted.since // _SECOND,
            "after": wanted.after or None,
            "limit": wanted.limit,
        }
        return await self.daemon.get(f"{TASKS}{query_of(chosen)}", read_tasks)

    async def task(self, task_id: str) -> tuple[Task, Sequence[tuple[int, int, TaskState]]]:
        """Read one and the states it went through: number, time, state. Another's is not there."""
        return await self.daemon.get(
            task_path(task_id), lambda body: (read_task(body), read_states(body["states"]))
        )

    async def watch_task(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell one as it is, then all that happens to it, until it has ended."""
        following = Following()
        path = f"{task_path(task_id)}/events"
        async with aclosing(self.daemon.events(path, following.read)) as told:
            async for seen in told:
                yield seen
        if following.task is None or not following.task.state.final:
            raise DaemonUnreachable(
                f"The daemon told no more of the task {task_id} before it had ended.",
                way_out=f"openfang status, then: openfang a2a watch {task_id}",
                sent=True,
            )

    async def cancel_task(self, task_id: str) -> Task:
        """End one, and the work on it. `Conflict`: it has ended already."""
        return await self.daemon.act("POST", f"{task_path(task_id)}/cancel", read_task, {})

    async def peers(self) -> Sequence[Mapping[str, Any]]:
        """Say of each agent elsewhere that is configured who it is, and how."""
        return await self.daemon.get("/api/a2a/agents", _each("agents", an_object))

    async def discover_peer(self, name: str) -> Mapping[str, Any]:
        """Ask one of them for its card now, and say who it is, and how."""
        path = f"/api/a2a/agents/{segment(name)}/discover"
        return await self.daemon.act("POST", path, an_object, {})


def _call_body(arguments: Mapping[str, Any], options: Options) -> dict[str, Any]:
    chosen = {
        "mode": options.mode and options.mode.value,
        "project_id": options.project,
        "spec_hash": options.spec,
        "task_id": options.task,
        "blacklist": sorted(options.blacklist),
        "run": options.run,
    }
    context = {name: value for name, value in chosen.items() if value}
    return {"arguments": dict(arguments), **({"context": context} if context else {})}


def _call_headers(options: Options, wait: int = 0) -> list[tuple[str, str]]:
    headers = list[tuple[str, str]]()
    if options.admin_token:
        # What a header cannot carry was never in a token: the daemon refuses it as it is.
        token = options.admin_token.encode("ascii", "replace").decode()
        headers.append(("X-Admin-Token", "".join(c if c.isprintable() else "?" for c in token)))
    if wait:
        headers.append(("Prefer", f"wait={wait}"))
    return headers


def _each(name: str, read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    return lambda body: [read(one) for one in body[name]]
