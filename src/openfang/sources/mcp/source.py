"""A server as a source of tools: what it offers, and calls of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import orjson
from anyio import to_thread

from openfang.core.deadline import Deadline
from openfang.core.errors import CallTimedOut, SourceFailed
from openfang.core.results import error_result
from openfang.host.chatter import LONGEST_LINE, Chatter
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, BadAnswer, RpcError
from openfang.sources.mcp.adapter import progress_of, result_of, tools_of
from openfang.sources.mcp.health import in_short
from openfang.sources.mcp.keeper import Connect, Keeper, Pace
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.ports import Clock
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.spec import ServerSpec

_log = logging.getLogger("openfang.mcp")
_LIST_CHANGED: Final = "notifications/tools/list_changed"
_MESSAGE: Final = "notifications/message"
_PROGRESS: Final = "notifications/progress"
# Each name is remembered for ever (C1.3): a server that makes up new ones all the time must not.
_MOST_NAMES: Final = 20_000


def _nothing(source: McpSource) -> None:
    del source


def _as_it_is(offered: dict[str, Any]) -> dict[str, Any]:
    return offered


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every source of this kind is handed.

    `back` hears of each connection that was made; `clean` takes secrets out of what is offered.
    """

    connect: Connect
    check: Callable[[Admitted], None]
    changed: Callable[[McpSource], None]
    clock: Clock
    rules: Rules
    back: Callable[[McpSource], None] = _nothing
    clean: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    pace: Pace = field(default_factory=Pace)


class McpSource(Keeper):
    """One server and its tools. `rejected` are those that cannot be used, and why."""

    def __init__(self, spec: ServerSpec, around: Surroundings, *, fault: str = "") -> None:
        super().__init__(spec, around.connect, around.pace, fault)
        self.rejected: Mapping[str, str] = {}
        self._around = around
        self._offered: Sequence[Mapping[str, Any]] = ()
        self._tools: list[Tool] | None = None
        self._names = set[str]()
        self._voice = Chatter(lambda line: _log.info("%s says: %s", spec.name, line))

    @property
    def fault(self) -> str:
        """Why it is not even tried, if so."""
        return self._fault

    def tools(self) -> Sequence[Tool]:
        """List what the server offered when it was last asked."""
        return self._tools or ()

    def inherit(self, former: McpSource) -> None:
        """Take over what was offered before: what the operator now says of it holds at once."""
        if former._tools is not None:
            self.recall(former._offered)

    def judge(self, rules: Rules) -> None:
        """Tell risk and effects by other words from now on."""
        if rules != self._around.rules:
            self._around = replace(self._around, rules=rules)
            if self._tools is not None:
                self.recall(self._offered)

    def recall(self, offered: Sequence[Mapping[str, Any]]) -> None:
        """Offer what is known to have been offered, until the server itself is asked."""
        self._offered = offered
        self._take(self._familiar(tools_of(self.spec, offered, self._around.rules), {}))

    async def execute(self, admitted: Admitted) -> Result:
        """Make the call; what the server itself refuses is an answer, not a failure."""
        self._around.check(admitted)
        with self._busy():
            try:
                connection = await self._ready()
                return result_of(await self._call(connection, admitted))
            except BadAnswer as wrong:
                raise SourceFailed(
                    f"The MCP server {self.name} answered wrongly: {in_short(wrong.message)}",
                    way_out=f"openfang servers logs {self.name}",
                ) from wrong
            except RpcError as error:
                text = f"{self.name} answered with error {error.code}: {error.message}"
                return error_result(text)
            except Lost as lost:
                raise self._unreachable(str(lost)) from lost

    async def _call(self, connection: Connection, admitted: Admitted) -> Mapping[str, Any]:
        """Wait for the answer for as long as the server lets us know that it works on it."""
        seconds = self.spec.timeout if admitted.tool.timeout is None else admitted.tool.timeout
        patience = Deadline(seconds)

        def progressed(method: str, params: Mapping[str, Any]) -> None:
            self._heard = anyio.current_time()
            patience.again()
            if admitted.progress is not None and method == _PROGRESS:
                admitted.progress(progress_of(params))

        try:
            with patience:
                answer = await connection.call(
                    admitted.tool.name,
                    admitted.call.arguments,
                    meta=_meta(admitted),
                    told=progressed,
                )
        except TimeoutError:
            raise self._late(admitted, seconds) from None
        self._heard = anyio.current_time()
        return answer

    def _late(self, admitted: Admitted, seconds: float) -> CallTimedOut:
        _log.warning("Request timed out: tools/call (id=%s)", admitted.call.id)
        return CallTimedOut(
            f"{self.name} did not answer within {seconds:g} s.",
            way_out=f"raise timeout_secs of the server {self.name}",
        )

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own."""
        del params
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not served here")

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Hear what belongs to no call."""
        if method == _LIST_CHANGED:
            self.refresh()
        elif method == _MESSAGE:
            self._voice.feed(_said(params.get("data"))[:LONGEST_LINE] + b"\n")

    async def _list(self, connection: Connection) -> None:
        # Thousands of long descriptions take seconds to judge: the loop does not wait for that.
        offered = await connection.tools()
        offered, tools, rejected = await to_thread.run_sync(self._judged, offered)
        for name, why in connection.rejected.items():
            rejected.setdefault(in_short(name), why)
        self._offered, self.rejected = offered, rejected
        self._take(self._familiar(tools, rejected))

    def _judged(
        self, offered: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[Tool], dict[str, str]]:
        clean = [self._around.clean(one) for one in offered]
        rejected: dict[str, str] = {}
        return clean, tools_of(self.spec, clean, self._around.rules, rejected), rejected

    def _familiar(self, tools: list[Tool], rejected: dict[str, str]) -> list[Tool]:
        """Leave out what would be one name too many."""
        kept: list[Tool] = []
        for tool in tools:
            if tool.name in self._names or len(self._names) < _MOST_NAMES:
                self._names.add(tool.name)
                kept.append(tool)
            else:
                rejected[tool.name] = f"the server has offered {_MOST_NAMES} other tools before"
        return kept

    def _take(self, tools: list[Tool]) -> None:
        if tools != self._tools:
            self._tools = tools
            self._around.changed(self)

    def _arrived(self) -> None:
        self._around.back(self)


def _meta(admitted: Admitted) -> dict[str, str]:
    chain = admitted.call.chain
    meta = {"traceparent": chain.traceparent}
    if chain.starry_id is not None:
        meta["X-OpenStarry-Trace-ID"] = chain.starry_id
    return meta


def _said(data: object) -> bytes:
    """What a message says, as one line."""
    text = data.encode(errors="replace") if isinstance(data, str) else orjson.dumps(data)
    return text.replace(b"\n", b" ")
