"""What a caller could ever be offered in a place, whether or not it is there at this moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openfang.app.offering.federation import skills_of
from openfang.core.ids import Kind, tool_id, wire_name
from openfang.core.tools import Tool
from openfang.edges.mcp.ports import COMPLETIONS, PROMPTS, SUBSCRIPTIONS
from openfang.policy.selection import Selection
from openfang.sources.mcp.abilities import COMPLETE, OPERATIONS, PROMPT, SUBSCRIBE
from openfang.sources.skills.tools import READ as SKILL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openfang.app.offering.terms import Terms
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller

_SPECIAL: Final = re.compile(r"[*?\[]")
_NEEDS: Final = {SUBSCRIPTIONS: SUBSCRIBE, PROMPTS: PROMPT, COMPLETIONS: COMPLETE}
_ANY_OTHER: Final = ""


def features(parts: Parts, bound: Caller) -> frozenset[str]:
    """Say which features some server or skill could bring to who is bound to a place."""
    found = frozenset(
        feature for feature, operation in _NEEDS.items() if _could(parts, bound, operation)
    )
    return found | {PROMPTS} if _could_read(parts, bound) else found


def _could_read(parts: Parts, bound: Caller) -> bool:
    """Whether the caller could read a skill that is there, or is added later."""
    names = (*(skill.name for skill in skills_of(parts)), _ANY_OTHER)
    return any(parts.catalog.sees(bound, _reader(name)) for name in names)


def _reader(skill: str) -> Tool:
    found = tool_id(Kind.EXTENSION, skill, SKILL)
    return Tool(id=found, kind=Kind.EXTENSION, source=skill, name=SKILL)


def _could(parts: Parts, bound: Caller, operation: str) -> bool:
    """Whether the caller could use this operation of a server that is known, or is added later."""
    names = (*(server.name for server in parts.config.mcp_servers), _ANY_OTHER)
    return any(parts.catalog.sees(bound, _operation(name, operation)) for name in names)


def _operation(server: str, operation: str) -> Tool:
    found = tool_id(Kind.MCP, server, operation)
    return Tool(id=found, kind=Kind.MCP, source=server, name=operation, operation=True)


def may_hold_any(parts: Parts, caller: Caller, terms: Terms) -> bool:
    """Whether anything of a toolset can be there for who sees none of its tools now.

    A server that has not answered yet may have what the caller is granted.
    """
    if "*" in caller.grants.tools:
        return True
    bound = terms.bound(caller)
    if any(parts.catalog.sees(bound, tool) for tool in _operations(parts)):
        return True
    return any(_reaches(caller, terms, server) for server in _silent(parts))


def _operations(parts: Parts) -> Iterator[Tool]:
    servers = parts.servers.running if parts.servers else ()
    found = (
        parts.registry.find(tool_id(Kind.MCP, server, operation))
        for server in servers
        for operation in OPERATIONS
    )
    return (tool for tool in found if tool is not None)


def _silent(parts: Parts) -> list[str]:
    """Name the servers that have not said yet what they have."""
    tools = parts.registry.snapshot.tools.values()
    known = {tool.source for tool in tools if tool.kind is Kind.MCP}
    servers = parts.config.mcp_servers
    return [one.name for one in servers if one.enabled and one.name not in known]


def _reaches(caller: Caller, terms: Terms, server: str) -> bool:
    """Whether both the caller's grants and the toolset may name tools of a server."""
    if not _named(caller.grants.tools, server):
        return False
    match terms.selection:
        case Selection(servers=servers, tools=tools):
            return server in servers or _named(tools, server)
        case _:
            return False


def _named(globs: Iterable[str], server: str) -> bool:
    """Whether any of the globs may stand for a tool of the server, as far as it is literal."""
    beginnings = (tool_id(Kind.MCP, server, ""), f"{wire_name('mcp', server)}_")
    heads = [_SPECIAL.split(glob, maxsplit=1)[0] for glob in globs]
    return any(one.startswith(head) or head.startswith(one) for head in heads for one in beginnings)
