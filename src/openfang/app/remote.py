"""A session over HTTP: one caller, the daemon of this home.

What the daemon refuses is raised as the same error that a session in process raises. What was sent
is never sent again: if no answer came, the error says that it may have been done.
"""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode

from openfang.app.asking import in_doubt
from openfang.core.errors import NotFound, Parked, UnknownTool
from openfang.core.keys import AdminToken, Key, Scope
from openfang.core.session import NO_OPTIONS, Options
from openfang.core.wire import (
    key_body,
    read_event,
    read_explanation,
    read_key,
    read_question,
    read_result,
    read_session,
    read_sessions,
    read_spec,
    read_tool,
    read_turn,
    read_verification,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from openfang.app.asking import Asking
    from openfang.core.decisions import Explanation
    from openfang.core.events import AuditEvent
    from openfang.core.ids import Kind
    from openfang.core.keys import Question, Spec
    from openfang.core.log import Search, Table, Verification
    from openfang.core.results import Result
    from openfang.core.sessions import SessionPage, SessionSummary, SessionTurn
    from openfang.core.tools import Risk, Tool
    from openfang.host.loopback import Reply

T = TypeVar("T")
K = TypeVar("K", Key, AdminToken)
_LONGEST_WAIT: Final = 600
_SERVERS: Final = "/api/mcp/servers"
_RESULTS: Final = "openfang://results/"
_SECOND: Final = 1_000_000_000
_LAST_OF_SECOND: Final = 999_999_000
_GIVEN: Final = frozenset({"id", "state", "created_at", "expires_at", "revoked_at"})


@dataclass(frozen=True, slots=True)
class Remote:
    """The daemon, asked as one caller."""

    daemon: Asking

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
        path, body = f"{_tool(tool)}/call", _call_body(arguments, options)
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
        path, body = f"{_tool(tool)}/explain", _call_body(arguments, options)
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
        return await self.daemon.get(f"/api/tools{_query(wanted)}", _each("tools", read_tool))

    async def tool(self, name: str) -> tuple[Tool, str]:
        """Find a tool by any name, and how one that is held back differs from what was accepted."""
        return await self.daemon.get(_tool(name), lambda body: (read_tool(body), body["diff"]))

    async def accept_tool(self, name: str) -> Tool:
        """Take a tool that changed as it is now."""
        return await self.daemon.act("POST", f"{_tool(name)}/accept", read_tool, {})

    async def whole_result(self, uri: str) -> bytes | None:
        """Read the whole of a result that was cut, as JSON, while it is kept."""
        try:
            path = f"/api/results/{_segment(uri.removeprefix(_RESULTS))}"
            return (await self.daemon.reply("GET", path)).body
        except NotFound:
            return None

    async def questions(self, *, answered: bool = False) -> list[Question]:
        """List what waits for a person, newest first."""
        query = _query({"all": "true" if answered else None})
        return await self.daemon.get(f"/api/approvals{query}", _each("approvals", _question))

    async def question(self, question_id: str) -> Question:
        """Find one question; another caller's does not exist."""
        return await self.daemon.get(f"/api/approvals/{_segment(question_id)}", _question)

    async def answer(
        self, question_id: str, *, approve: bool, scope: Scope = Scope.ONCE
    ) -> Question:
        """Answer a question."""
        body = {"answer": "approve" if approve else "deny", "scope": scope.value}
        return await self.daemon.act(
            "POST", f"/api/approvals/{_segment(question_id)}", _question, body
        )

    async def specs(self) -> list[Spec]:
        """List the frozen specs, oldest first."""
        return await self.daemon.get("/api/specs", _each("specs", read_spec))

    async def freeze_spec(self, name: str, content: bytes, project: str) -> Spec:
        """Freeze a plan; freezing the same content again changes nothing."""
        body = {"name": name, "project": project, **_content(content)}
        return await self.daemon.act("POST", "/api/specs", read_spec, body)

    async def keys(self) -> list[Key | AdminToken]:
        """List all keys and tokens, never their secrets."""
        return await self.daemon.get("/api/keys", _each("keys", _key))

    async def create_key(self, key: Key, *, ttl: float | None = None) -> tuple[Key, str]:
        """Make a key; its secret is returned once and kept nowhere."""
        return await self.daemon.act("POST", "/api/keys", _made(Key), _wanted(key, ttl))

    async def create_token(
        self, token: AdminToken, *, ttl: float | None = None
    ) -> tuple[AdminToken, str]:
        """Make an admin token, for gate 6."""
        return await self.daemon.act("POST", "/api/keys", _made(AdminToken), _wanted(token, ttl))

    async def revoke_key(self, name: str) -> Key | AdminToken:
        """End a key or token, by name or id."""
        return await self.daemon.act("DELETE", f"/api/keys/{_segment(name)}", _key)

    async def servers(self) -> Mapping[str, Any]:
        """Show the MCP servers: `configured`, and `connected` with the tools of each."""
        return await self.daemon.get(_SERVERS, _object)

    async def server(self, name: str) -> Mapping[str, Any]:
        """Show everything that is known of one MCP server."""
        return await self.daemon.get(_server(name), _object)

    async def server_health(self) -> Mapping[str, str]:
        """Say of each MCP server that is enabled: healthy, degraded or unhealthy."""
        return await self.daemon.get("/api/mcp/health", _object)

    async def server_log(self, name: str) -> Sequence[str]:
        """Read what an MCP server last wrote for people."""
        return await self.daemon.get(f"{_server(name)}/logs", _each("lines", str))

    async def try_server(self, name: str) -> Mapping[str, Any]:
        """Connect to an MCP server once more, to see what is wrong; it need not be enabled."""
        return await self.daemon.act("POST", f"{_server(name)}/test", _object, {})

    async def refresh_servers(self) -> Mapping[str, Any]:
        """Ask the MCP servers for their tools again: how many answered, and who did not."""
        return await self.daemon.act("POST", f"{_SERVERS}/refresh", _object, {})

    async def change_server(self, name: str, act: str) -> Mapping[str, Any]:
        """Enable, disable or restart an MCP server."""
        return await self.daemon.act("POST", f"{_server(name)}/{_segment(act)}", _object, {})

    async def add_server(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a new MCP server down; it waits until it is enabled."""
        return await self.daemon.act("POST", _SERVERS, _object, dict(entry))

    async def remove_server(self, name: str) -> Mapping[str, Any]:
        """Take an MCP server out of the configuration."""
        return await self.daemon.act("DELETE", _server(name), _object)

    async def secrets(self) -> Sequence[Mapping[str, Any]]:
        """List the names that are stored, and those that servers miss; never a value."""
        return await self.daemon.get("/api/secrets", _each("secrets", _object))

    async def set_secret(self, name: str, value: str) -> Mapping[str, Any]:
        """Store or replace a secret; servers that refer to it get it at once."""
        return await self.daemon.act("PUT", _secret(name), _object, {"value": value})

    async def remove_secret(self, name: str, *, force: bool = False) -> Mapping[str, Any]:
        """Delete a secret; one that a server refers to only with `force`."""
        query = _query({"force": "true" if force else None})
        return await self.daemon.act("DELETE", f"{_secret(name)}{query}", _object)

    async def agents(self) -> Sequence[Mapping[str, Any]]:
        """Describe the agents that this caller may call, by name."""
        return await self.daemon.get("/api/agents", _each("agents", _object))

    async def agent(self, name: str) -> Mapping[str, Any]:
        """Describe one; another does not exist."""
        return await self.daemon.get(_agent(name), _object)

    async def sessions(self, *, agent: str = "", after: str = "", limit: int = 50) -> SessionPage:
        """List conversations with agents, newest first: one's own, or all for who watches."""
        query = _query({"agent": agent or None, "after": after or None, "limit": limit})
        return await self.daemon.get(f"/api/sessions{query}", read_sessions)

    async def session(self, session_id: str) -> tuple[SessionSummary, Sequence[SessionTurn]]:
        """Read one whole conversation; another caller's does not exist."""
        turns = _each("turns", read_turn)
        return await self.daemon.get(
            _session(session_id), lambda body: (read_session(body), turns(body))
        )

    async def export_session(self, session_id: str, form: str) -> AsyncGenerator[bytes]:
        """Write one out, however long it is: as lines of JSON (`jsonl`) or Markdown (`md`)."""
        return self.daemon.pieces(f"{_session(session_id)}/export{_query({'format': form})}")

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Delete one and all that was said in it."""
        return await self.daemon.act("DELETE", _session(session_id), read_session)

    async def search(self, wanted: Search) -> list[AuditEvent]:
        """Find the newest entries that match, oldest first."""
        query = _query({name: getattr(wanted, name) or None for name in wanted.__slots__})
        return await self.daemon.get(
            f"/api/audit{query}", _each("records", read_event), timeout=None
        )

    def after(self, seq: int) -> AsyncIterator[AuditEvent]:
        """Read every entry after this one, in order."""
        return self.daemon.lines(f"/api/audit/export?after={seq}", read_event)

    async def sql(self, text: str) -> list[Table]:
        """Run queries that only read: of each the columns' names and the first rows."""
        body = {"query": text or " "}  # an empty one is no query to the API
        reply = await self.daemon.reply("POST", "/api/audit/sql", body, timeout=None)
        return self.daemon.read(
            reply, _each("tables", lambda body: (body["columns"], body["rows"]))
        )

    async def verify(self) -> Verification:
        """Check the whole log against its hashes and its signed checkpoints."""
        return await self.daemon.get("/api/audit/verify", read_verification, timeout=None)


def _tool(name: str) -> str:
    if not name:
        raise UnknownTool(name)
    return f"/api/tools/{_segment(name)}"


def _server(name: str) -> str:
    if not name:
        raise NotFound("A server without a name does not exist.", way_out="openfang servers list")
    return f"{_SERVERS}/{_segment(name)}"


def _secret(name: str) -> str:
    if not name:
        raise NotFound("A secret without a name does not exist.", way_out="openfang secrets list")
    return f"/api/secrets/{_segment(name)}"


def _agent(name: str) -> str:
    if not name:
        raise NotFound("No agent .", way_out="openfang agents list")
    return f"/api/agents/{_segment(name)}"


def _session(session_id: str) -> str:
    if not session_id:
        raise NotFound("No session .", way_out="openfang sessions list")
    return f"/api/sessions/{_segment(session_id)}"


def _object(body: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON
    if not isinstance(body, dict):
        raise TypeError(type(body).__name__)
    return cast("dict[str, Any]", body)


def _segment(name: str) -> str:
    return quote(name, safe="")


def _query(values: Mapping[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


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


def _key(body: Mapping[str, Any]) -> Key | AdminToken:
    key = read_key(body)
    return key if key.expires_at is None else replace(key, expires_at=_late(key.expires_at))


def _question(body: Mapping[str, Any]) -> Question:
    question = read_question(body)
    return replace(question, expires_at=_late(question.expires_at))


def _late(moment: int) -> int:
    """Let what ends within a second end with it: never here before it does there."""
    return moment if moment % _SECOND else moment + _LAST_OF_SECOND


def _made(kind: type[K]) -> Callable[[Any], tuple[K, str]]:
    def read(body: Mapping[str, Any]) -> tuple[K, str]:
        key = _key(body)
        if not isinstance(key, kind):
            raise TypeError(body["kind"])
        return key, body["secret"]

    return read


def _wanted(key: Key | AdminToken, ttl: float | None) -> dict[str, Any]:
    """Say what is wanted of a key; what is not said is as a new one has it."""
    fields = {**key_body(key, 0), "ttl_secs": ttl}
    if fields.get("edges") == ["*"]:
        del fields["edges"]
    return {n: value for n, value in fields.items() if value is not None and n not in _GIVEN}


def _content(content: bytes) -> dict[str, str]:
    try:
        return {"content": content.decode()}
    except UnicodeDecodeError:
        return {"content_base64": b64encode(content).decode()}
