"""The addresses of the HTTP API, as its client writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from openfang.core.errors import NotFound, UnknownTool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.installs import InstallKind
    from openfang.core.memory import Wanted

SERVERS: Final = "/api/mcp/servers"
TASKS: Final = "/api/a2a/tasks"
INSTALLS: Final[Mapping[InstallKind, str]] = {
    "extension": "/api/extensions",
    "skill": "/api/skills",
}
_MEMORY: Final = "/api/memory"


def tool_path(name: str) -> str:
    """Where a tool is, by any name."""
    if not name:
        raise UnknownTool(name)
    return f"/api/tools/{segment(name)}"


def server_path(name: str) -> str:
    """Where an MCP server is."""
    return _named(SERVERS, "server", name)


def secret_path(name: str) -> str:
    """Where a secret is."""
    return _named("/api/secrets", "secret", name)


def install_path(kind: InstallKind, install_id: str) -> str:
    """Where an extension or a skill is."""
    if not install_id:
        raise NotFound(f"No {kind} without a name.")
    return f"{INSTALLS[kind]}/{segment(install_id)}"


def agent_path(name: str) -> str:
    """Where an agent is."""
    return _named("/api/agents", "agent", name)


def session_path(session_id: str) -> str:
    """Where a conversation is."""
    return _named("/api/sessions", "session", session_id)


def memories_path(wanted: Wanted) -> str:
    """Where memories are, and which are wanted."""
    chosen = {"query": wanted.query, "after": wanted.after, "limit": wanted.limit}
    return f"{_MEMORY}{_query_in(wanted, chosen)}"


def memory_path(key: str, wanted: Wanted) -> str:
    """Where one memory of such a space is."""
    if not key:
        raise NotFound("No memory without a key.", way_out="openfang memory list")
    return f"{_MEMORY}/{segment(key)}{_query_in(wanted, {})}"


def _query_in(wanted: Wanted, chosen: Mapping[str, object]) -> str:
    where = {"agent": wanted.agent, "space": wanted.space, **chosen}
    return query_of({name: value or None for name, value in where.items()})


def schedule_path(schedule_id: str) -> str:
    """Where a schedule is."""
    return _named("/api/schedules", "schedule", schedule_id)


def task_path(task_id: str) -> str:
    """Where a task is."""
    if not task_id:
        raise NotFound("There is no task without an id.", way_out="openfang a2a tasks")
    return f"{TASKS}/{segment(task_id)}"


def _named(path: str, kind: str, name: str) -> str:
    """The path of one of them: without a name it would be that of all."""
    if not name:
        raise NotFound(f"No {kind} without a name.", way_out=f"openfang {kind}s list")
    return f"{path}/{segment(name)}"


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def query_of(values: Mapping[str, object]) -> str:
    """A query of what is given, if anything is."""
    given = {name: value for name, value in values.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
