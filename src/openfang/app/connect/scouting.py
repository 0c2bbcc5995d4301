"""Servers of other programs, looked at before they are taken: reached or not, and what they offer.

Each is started as it would be later: confined, with a home of its own, and given what its entry
says. Nothing of it is written down, and no stored secret reaches it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import anyio
import orjson

from openfang.app.confine import Confiner
from openfang.app.servers.entries import server_of
from openfang.app.servers.sealing import handed_over
from openfang.app.servers.translate import reached_of, rules_of, spec_of
from openfang.app.servers.trial import Trial, try_out
from openfang.config.home import user_home
from openfang.core.bodies import tool_body
from openfang.core.errors import OpenFangError
from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.safety.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from openfang.config.models import Config

_SECONDS: Final = 30.0
_AT_ONCE: Final = 8
_BYTES_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was seen of a server; where nobody looked, nothing is known."""

    reachable: bool | None = None
    tools: int | None = None
    tokens: int | None = None
    critical: tuple[str, ...] = ()
    problem: str = ""
    way_out: str = ""

    def body(self) -> dict[str, Any]:
        """Say it as JSON."""
        return {
            "reachable": self.reachable,
            "tools": self.tools,
            "schema_tokens": self.tokens,
            "critical": list(self.critical),
            "problem": self.problem,
            "way_out": self.way_out,
        }


UNSEEN: Final = Sight()


@dataclass(slots=True)
class Scout:
    """Looks at servers, some at a time."""

    home: Path
    config: Config
    environ: Mapping[str, str]
    _confiner: Confiner = field(init=False)

    def __post_init__(self) -> None:
        self._confiner = Confiner(self.home, user_home(self.environ))

    async def look(
        self, entries: Iterable[Mapping[str, Any]], seen: Callable[[], None]
    ) -> dict[str, Sight]:
        """Look at each, and say so by `seen` when one is done; what was seen of it, by name."""
        sights: dict[str, Sight] = {}
        room = anyio.CapacityLimiter(_AT_ONCE)

        async def one(entry: Mapping[str, Any]) -> None:
            async with room:
                sights[entry["name"]] = await self._sight(entry)
            seen()

        async with anyio.create_task_group() as group:
            for entry in entries:
                group.start_soon(one, entry)
        return sights

    async def _sight(self, entry: Mapping[str, Any]) -> Sight:
        redactor = Redactor(bytes(16))
        try:
            trial = await self._tried(entry, redactor)
        except OpenFangError as error:
            trial = Trial(problem=error.message, way_out=error.way_out)
        if trial.problem:
            problem = redactor.text(_told(trial)).text
            return Sight(reachable=False, problem=problem, way_out=trial.way_out)
        return sight_of(map(tool_body, trial.tools))

    async def _tried(self, entry: Mapping[str, Any], redactor: Redactor) -> Trial:
        server = server_of(entry)
        reached = reached_of(server, self.environ, self.home)
        redactor.learn(handed_over(reached))
        async with AsyncExitStack() as stack:
            ready = await self._confiner.prepared(spec_of(server, reached), stack)
            return await try_out(ready.spec, rules=rules_of(self.config), seconds=_SECONDS)


def _told(trial: Trial) -> str:
    """Say why it was not reached, with the last that it said itself."""
    last = trial.stderr[-1].strip() if trial.stderr else ""
    return f"{trial.problem.rstrip('.')}: {last}" if last else trial.problem


def sight_of(tools: Iterable[Mapping[str, Any]]) -> Sight:
    """Sum up what a server offers, from its tools as lists show them."""
    offered = list(tools)
    return Sight(
        reachable=True,
        tools=len(offered),
        tokens=sum(map(_tokens, offered)),
        critical=tuple(_name(one) for one in offered if one["risk"] == Risk.CRITICAL.name),
    )


def _tokens(tool: Mapping[str, Any]) -> int:
    """Estimate what a definition costs in every prompt that carries it."""
    keys = ("description", "input_schema")
    shown = {"name": _name(tool), **{key: tool[key] for key in keys}}
    return -(-len(orjson.dumps(shown)) // _BYTES_PER_TOKEN)


def _name(tool: Mapping[str, Any]) -> str:
    """What the server itself calls it."""
    return str(tool["id"]).split(":", 2)[-1]
