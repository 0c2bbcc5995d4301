"""A server as a source: its tools, what else it can be asked, and calls of both."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import orjson
from anyio import to_thread

from openfang.core.clients import QUESTIONS
from openfang.core.errors import SourceFailed
from openfang.core.news import Updated
from openfang.core.results import error_result
from openfang.core.values import dataclass
from openfang.host.chatter import LONGEST_LINE, Chatter
from openfang.protocols.hops.path import from_elsewhere
from openfang.protocols.mcp.errors import INVALID_REQUEST, METHOD_NOT_FOUND, BadAnswer, RpcError
from openfang.registry.spoken import Topic
from openfang.sources.hops import Alone
from openfang.sources.mcp.abilities import COMPLETE, PROMPT
from openfang.sources.mcp.adapter import fault_result, tools_of
from openfang.sources.mcp.calls import Calls
from openfang.sources.mcp.errand import MESSAGE
from openfang.sources.mcp.health import in_short
from openfang.sources.mcp.keeper import Connect, Keeper
from openfang.sources.mcp.lending import Lending
from openfang.sources.mcp.lists import BELIEVING, Entry, Judge, Lists
from openfang.sources.mcp.operations import operations_of
from openfang.sources.mcp.pace import Pace
from openfang.sources.mcp.questions import Unanswered
from openfang.sources.mcp.relay import Relay
from openfang.sources.mcp.stdio import StdioTransport
from openfang.sources.mcp.transport import Lost, Unmade
from openfang.sources.mcp.turns import Turns
from openfang.sources.mcp.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openfang.core.calls import Admitted, Call
    from openfang.core.news import News
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.hops import Hops
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.spec import ServerSpec

_log = logging.getLogger("openfang.mcp")
_LONGEST_INSTRUCTIONS: Final = 20_000
_SHOWN: Final = 200
# A node that died is found out by calls that break, and another that does not reach it.
_AGAIN: Final = 4
_LONGEST_URI: Final = 8_192
# Each name is remembered for ever (C1.3): a server that makes up new ones all the time must not.
_MOST_NAMES: Final = 20_000


def unheard(one: object) -> None:
    """Take what nobody listens to."""
    del one


def _none_held(tool: str) -> bool:
    del tool
    return False


def _as_it_is(offered: dict[str, Any]) -> dict[str, Any]:
    return offered


async def _nobody(call: Call) -> Result:
    return error_result(f"{call.tool} cannot be asked from here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every source of this kind is handed.

    `back` hears of each connection that was made; `clean` takes secrets out of what is offered.
    `invoke` takes the questions of servers to clients, each of which `client_known` hears of first.
    `foresee` and `judge` look at what servers say; `held` says whether a tool waits for a person.
    """

    connect: Connect
    check: Callable[[Admitted], None]
    changed: Callable[[McpSource], None]
    rules: Rules
    back: Callable[[McpSource], None] = unheard
    clean: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    invoke: Callable[[Call], Awaitable[Result]] = _nobody
    client_known: Callable[[str], None] = unheard
    news: Callable[[News], None] = unheard
    foresee: Callable[[Sequence[Tool]], None] = unheard
    judge: Judge = BELIEVING
    held: Callable[[str], bool] = _none_held
    pace: Pace = field(default_factory=Pace)
    hops: Hops = field(default_factory=Alone)


class McpSource(Keeper):
    """One server and its tools. `rejected` are those that cannot be used, and why."""

    def __init__(self, spec: ServerSpec, around: Surroundings, *, fault: str = "") -> None:
        super().__init__(spec, around.connect, around.pace, fault)
        self.rejected: Mapping[str, str] = {}
        self._instructions = ""
        self.lists = Lists(
            spec, around.pace, clean=self._passing, news=around.news, judge=around.judge
        )
        self._around, self._node = around, around.hops.node
        self._offered: Sequence[Mapping[str, Any]] = ()
        self._tools: list[Tool] | None = None
        self._names = set[str]()
        self._voice = Chatter(lambda line: _log.info("%s says: %s", spec.name, line))
        self._watches = Watches()
        # Half of its time is left to who has waited and has nobody to stop the clock.
        self._turns = Turns(spec.timeout / 2)
        relay = Relay(
            spec=spec,
            invoke=around.invoke,
            known=around.client_known,
            clean=around.clean,
            alive=self._alive,
            said=self._said,
        )
        self._calls = Calls(spec, relay, self._turns, self._watches, around.hops)
        self.lending = self._lent() if spec.singleton else None

    def _lent(self) -> Lending:
        return Lending(
            ready=self._ready,
            enter=self._count_in,
            leave=self._count_out,
            turns=self._turns,
            watches=self._watches,
        )

    @property
    def fault(self) -> str:
        """Why it is not even tried, if so."""
        return self._fault

    @property
    def instructions(self) -> str:
        """How the server wants to be used, unless that is held back."""
        held = self._around.judge.holds(Topic.INSTRUCTIONS, self.name)
        return "" if held else self._instructions

    @property
    def resources(self) -> tuple[Entry, ...]:
        """What can be read, as the server lists it."""
        return self.lists.resources

    @property
    def templates(self) -> tuple[Entry, ...]:
        """What can be read once something is filled in."""
        return self.lists.templates

    @property
    def prompts(self) -> tuple[Entry, ...]:
        """What can be said."""
        return self.lists.prompts

    @property
    def pid(self) -> int:
        """The number of its process; 0 if none is connected."""
        transport = self._connection.transport if self._connection is not None else None
        child = transport.child if isinstance(transport, StdioTransport) else None
        return child.process.pid if child is not None else 0

    @property
    def withheld(self) -> tuple[str, ...]:
        """The tools that it lists and that may not be seen."""
        names = (str(one.get("name", "")) for one in self._offered)
        return tuple(sorted(name for name in names if not self.spec.shows(name)))

    def tools(self) -> Sequence[Tool]:
        """List what the server offered when it was last asked, operations included."""
        return self._tools or ()

    def inherit(self, former: McpSource) -> None:
        """Take over what was offered before: what the operator now says of it holds at once."""
        self.capabilities, self._instructions = former.capabilities, former._instructions
        self.lists.inherit(former.lists)
        self._watches.inherit(former._watches)
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

    async def renew(self) -> str:
        """Ask it for its tools again, and for its lists beside."""
        self.lists.refresh()
        return await super().renew()

    async def execute(self, admitted: Admitted) -> Result:
        """Make the call; what the server itself refuses is an answer, not a failure."""
        self._around.check(admitted)
        self._count_in()
        try:
            return await self._made(admitted)
        except BadAnswer as wrong:
            raise SourceFailed(
                f"{self.spec.who} answered wrongly: {in_short(wrong.message)}",
                way_out=self.spec.command("logs"),
            ) from wrong
        except Unanswered as missed:
            text = f"{self.name} asked its client, and was not answered: {missed.message}"
            return error_result(text)
        except RpcError as error:
            return fault_result(self.name, error)
        except Lost as lost:
            raise self._without_answer(lost) from lost
        finally:
            self._count_out()

    async def _made(self, admitted: Admitted) -> Result:
        """Make it; again where the server was lost or has moved, as long as that does no harm."""
        ready, tool = partial(self._ready_for, admitted), admitted.tool
        for _ in range(_AGAIN if self.spec.singleton else 0):
            try:
                return await self._calls.make(admitted, ready)
            except Unmade:
                continue
            except Lost:
                if not (tool.idempotent or tool.only_reads):
                    raise
        return await self._calls.make(admitted, ready)

    def _without_answer(self, lost: Lost) -> SourceFailed:
        """Say what is known of a call whose answer will not come."""
        if isinstance(lost, Unmade) or not self.spec.singleton:
            return self._unreachable(str(lost))
        return SourceFailed(
            f"{self.spec.who} was lost in the middle of the call, which may have been made: "
            f"{in_short(str(lost))}",
            way_out="look whether it was made before you make it again",
        )

    async def _ready_for(self, admitted: Admitted) -> Connection:
        """The connection, if what was admitted is still what a person would be shown."""
        connection = await self._ready()
        held = self._held_in(admitted)
        if held:
            raise SourceFailed(
                f"{held} of {self.name} is held back until a person accepts it.",
                way_out=f"openfang servers held {self.name}",
            )
        return connection

    def _held_in(self, admitted: Admitted) -> str:
        """Name what of a call is held: its tool, or the prompt that it is about."""
        tool, judge = admitted.tool, self._around.judge
        if not tool.operation:
            return tool.name if self._around.held(tool.id) else ""
        arguments: Mapping[str, Any] = admitted.call.arguments
        about = arguments.get("ref", arguments) if tool.name == COMPLETE else arguments
        name = about.get("name") if tool.name in {PROMPT, COMPLETE} else None
        if isinstance(name, str) and judge.holds(Topic.PROMPT, self.name, name):
            return f"The prompt {name[:_SHOWN]}"
        return ""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own, which does not say what call it belongs to."""
        if method == "ping":
            return {}
        connection, turns = self._connection, self._turns
        if method not in QUESTIONS or connection is None or connection.era == "modern":
            raise RpcError(METHOD_NOT_FOUND, f"{method} is not served here")
        if not turns.clients:
            raise RpcError(METHOD_NOT_FOUND, f"No client that could answer {method} waits for you")
        turns.strict = True
        errand = turns.only()
        if errand is None:
            raise RpcError(
                INVALID_REQUEST,
                f"Several callers wait for you, and nothing says whom {method} is meant for; "
                "from now on they take turns",
            )
        return await errand.asked(method, params)

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Hear what belongs to no call, or does not say to which."""
        if self.lending is not None:
            self.lending.told(method, params)
        match method:
            case "notifications/tools/list_changed":
                self.refresh()
            case "notifications/prompts/list_changed" | "notifications/resources/list_changed":
                self.lists.refresh()
            case "notifications/resources/updated":
                self._updated(params.get("uri"))
            case "notifications/subscriptions/acknowledged":
                self._watches.acknowledged()
            case "notifications/message" | "notifications/elicitation/complete":
                self._overheard(method, params)
            case _:
                pass

    def _overheard(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what can only be meant for one."""
        if method == MESSAGE:
            self._said(params)
        errand = self._turns.only()
        if errand is not None:
            errand.tell(method, params)

    def _updated(self, uri: object) -> None:
        if isinstance(uri, str) and len(uri) <= _LONGEST_URI and len(self._watches):
            self._around.news(Updated(self.name, uri))

    def _said(self, params: Mapping[str, Any]) -> None:
        self._voice.feed(_in_a_line(params.get("data"))[:LONGEST_LINE] + b"\n")

    def _alive(self) -> None:
        self._heard = asyncio.get_running_loop().time()  # anyio's clock, without looking for it

    async def _list(self, connection: Connection) -> None:
        # Thousands of long descriptions take seconds to judge: the loop does not wait for that.
        offered = await connection.tools()
        offered, tools, rejected = await to_thread.run_sync(self._judged, offered)
        for name, why in connection.rejected.items():
            rejected.setdefault(in_short(name), why)
        self.capabilities = connection.abilities
        self._offered, self.rejected = offered, rejected
        self._take(self._familiar(tools, rejected))

    def _passing(self, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take out secrets, and whatever has come by this node before: rings end here."""
        return [self._around.clean(one) for one in from_elsewhere(listed, self._node)]

    def _judged(
        self, offered: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[Tool], dict[str, str]]:
        clean = self._passing(offered)
        rejected: dict[str, str] = {}
        tools = tools_of(self.spec, clean, self._around.rules, rejected)
        self._around.foresee(tools)
        return clean, tools, rejected

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
        """Offer these, and what else the server can be asked."""
        offered = [*tools, *operations_of(self.spec, self.capabilities, self._around.rules)]
        if offered != self._tools:
            self._tools = offered
            self._around.changed(self)

    def _arrived(self, connection: Connection) -> None:
        words = {"instructions": connection.instructions[:_LONGEST_INSTRUCTIONS]}
        self._instructions = self._around.clean(words)["instructions"]
        self.sift()
        self._watches.arrive(connection)
        if self.lending is not None:
            self.lending.arrived()
        self._around.back(self)

    def sift(self) -> None:
        """Ask again what of the server's words may be passed on."""
        words = {"": {"instructions": self._instructions}} if self._instructions else {}
        self._around.judge.sifted(Topic.INSTRUCTIONS, self.name, words)

    async def _attend(self, connection: Connection) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.lists.keep, connection)
            group.start_soon(self._watches.keep, connection)


def _in_a_line(data: object) -> bytes:
    """What a message says, as one line."""
    text = data.encode(errors="replace") if isinstance(data, str) else orjson.dumps(data)
    return text.replace(b"\n", b" ")
