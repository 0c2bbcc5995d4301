"""One connection to a server, made to see whether it works: connect, list, ask whether it is there.

The server's own connection, if it has one, is left alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.meta import ClientInfo
from openfang.registry.rules import DEFAULT_RULES
from openfang.sources.mcp.adapter import tools_of
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.transport import AuthNeeded, Lost
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.oauth.sign_in import SignIns
    from openfang.sources.mcp.spec import ServerSpec

_SECONDS: Final = 45.0
_LAST_LINES: Final = 20


class _Stranger:
    """What the other side reaches of us while it is tried: nothing."""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own."""
        del params
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not served here")

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Hear what belongs to no call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it. `problem` is empty when all went well; `offered` are the tools."""

    seconds: float = 0.0
    protocol_version: str = ""
    server_info: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    rejected: Mapping[str, str] | None = None
    problem: str = ""
    way_out: str = ""
    stderr: tuple[str, ...] = ()

    def body(self, server: str) -> dict[str, Any]:
        """Say it as JSON."""
        return {
            "server": server,
            "ok": not self.problem,
            "seconds": round(self.seconds, 3),
            "protocol_version": self.protocol_version or None,
            "server_info": dict(self.server_info or {}),
            "tools": [tool.name for tool in self.tools],
            "offers": [_offer(tool) for tool in self.tools],
            "rejected_tools": [
                {"name": name, "reason": why} for name, why in (self.rejected or {}).items()
            ],
            "problem": self.problem,
            "way_out": self.way_out,
            "stderr": list(self.stderr),
        }


async def try_out(
    spec: ServerSpec,
    sign_ins: SignIns | None = None,
    *,
    rules: Rules = DEFAULT_RULES,
    seconds: float = _SECONDS,
) -> Trial:
    """Connect, list the tools and ask whether it is still there; whatever is wrong is told."""
    said: deque[str] = deque(maxlen=_LAST_LINES)
    reach = Reach(
        client=ClientInfo(name="openfang", version=__version__),
        complained=lambda _, line: said.append(line),
        sign_ins=sign_ins,
    )
    began = anyio.current_time()
    try:
        with anyio.fail_after(seconds):
            async with reach(spec, _Stranger()) as connection:
                return await _looked(spec, connection, rules, began)
    except (Lost, RpcError, OpenFangError, OSError, TimeoutError) as error:
        return Trial(
            seconds=anyio.current_time() - began,
            problem=_problem(error, seconds),
            way_out=_way_out(spec, error, complained=bool(said)),
            stderr=tuple(dict.fromkeys(said)),  # it may have been started more than once
        )


async def _looked(spec: ServerSpec, connection: Connection, rules: Rules, began: float) -> Trial:
    rejected: dict[str, str] = {}
    tools = tools_of(spec, await connection.tools(), rules, rejected)
    await connection.ping()
    return Trial(
        seconds=anyio.current_time() - began,
        protocol_version=connection.version,
        server_info=connection.server_info,
        tools=tuple(tools),
        rejected={**connection.rejected, **rejected},
    )


def _offer(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "risk": tool.risk.name,
        "side_effects": sorted(tool.tags),
        "description": tool.description,
    }


def _problem(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"It did not answer within {seconds:g} s."
    return str(error) or type(error).__name__


def _way_out(spec: ServerSpec, error: Exception, *, complained: bool) -> str:
    match error:
        case OpenFangError(way_out=str(way_out)) if way_out:
            return way_out
        case AuthNeeded():
            return error.way_out or "look at the header Authorization of its entry"
        case Lost(reason=reason) if "allow_private" in reason:
            return "set allow_private = true in its entry"
        case _ if spec.remote:
            return "look at the address, and whether the server runs"
        case _:
            return _by_hand(error, complained=complained)


def _by_hand(error: Exception, *, complained: bool) -> str:
    if isinstance(error, TimeoutError):
        return "try it once more: what it has downloaded so far stays in its own home"
    if complained:
        return (
            "its last words say why; in its entry, fs_read and fs_write open files to it, "
            "allow_private addresses of your network"
        )
    return "start its command by hand, and read what it says"
