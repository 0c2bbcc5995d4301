"""All of trust at once: what chain, flow and pins add to a call, and a call with everything on.

A call with trust on is one of a peer: it says where it comes from, belongs to a run that has seen a
page, reaches a foreign tool whose definition is pinned, and names a target that stands in what
somebody trusted said. The plain one beside it is of the same tool and belongs to a run as well: one
that has seen nothing, of somebody of whom nothing is told.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from bench.daemon import CALLS, ROUNDS, Target, daemon
from bench.figures import Figure, cpu_seconds
from bench.rules import CONDITION
from openfang.core.calls import Call
from openfang.core.ids import Kind, random_hex
from openfang.core.labels import Labels
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.trace import read_chain
from openfang.protocols.hops.words import read_told
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

CALLERS = 50
RULES, LEFT = 100, 3
TOOL = "mcp:bench:note"
SAID = "Keep what you find in notes/figs.md, and write to bob@home.example about it."
CLAIM = '{"depth":2,"ancestors":["agent:far@elsewhere"],"calls":32,"left_ms":60000}'
_KEY = urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
_NODE = f'[[nodes]]\nname = "b"\nurl = "https://b.example"\npublic_key = "{_KEY}"\n'
_CONFIG = f"{_NODE}[guard]\ntool_calls = 100_000_000\n"


def policy(tool: str) -> str:
    """Rules of which so many are about the tool; none of their conditions holds."""
    return "".join(
        f'[[rules]]\nname = "rule-{number}"\neffect = "deny"\nreason = "no"\n'
        f'tools = ["{tool if number < LEFT else f"mcp:s{number}:*"}"]\n'
        f'condition = "{CONDITION.format(number=number)}"\n'
        for number in range(RULES)
    )


@dataclass(slots=True)
class Calls:
    """Makes the calls of one home, each with arguments of its own: none is a loop."""

    app: OpenApp
    made: int = 0
    context: Any = field(init=False)

    def __post_init__(self) -> None:
        self.context = self.app.make(TOOL, {}).context

    def plain(self) -> Call:
        """One of which nothing is told, in a run that has seen nothing."""
        return Call(
            tool=TOOL,
            caller=self.app.caller,
            context=self.context,
            arguments=self._arguments(),
            run="plain",
        )

    def of_peer(self) -> Call:
        """One of a peer's, in a run that has seen a page."""
        chain = read_chain(
            traceparent=f"00-{random_hex(16)}-{random_hex(8)}-01", told=read_told(CLAIM)
        )
        arrived = self.app.parts.hops.arrive(chain, self.app.caller)
        return Call(
            tool=TOOL,
            caller=self.app.caller,
            context=self.context,
            arguments=self._arguments(),
            chain=arrived.chain,
            labels=Labels.USER_INPUT | arrived.labels,
            run="bench",
        )

    def _arguments(self) -> dict[str, str]:
        self.made += 1
        return {"path": "notes/figs.md", "text": f"fig {self.made}"}


async def cpu_of(app: OpenApp, make: Callable[[], Call]) -> float:
    """Microseconds of CPU for each call, and for the making of it."""
    invoke = app.parts.pipeline.invoke

    async def calls() -> None:
        for _ in range(CALLS // CALLERS):
            await invoke(make())

    before = cpu_seconds()
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(calls)
    return (cpu_seconds() - before) / CALLS * 1e6


def source() -> TableSource:
    """A foreign tool that writes where it is told."""

    async def noted(arguments: Mapping[str, Any]) -> str:
        return f"noted {arguments['text']}"

    sink = Sink(effect=Effect.LOCAL_WRITE, targets=("path",))
    facts = {"risk": Risk.LOW, "tags": frozenset({"fs.write"}), "sink": sink}
    return TableSource(Kind.MCP, "bench", {"note": (facts, noted)})


async def _in_process(folder: Path) -> list[Figure]:
    ruled = folder / "ruled"
    ruled.mkdir(parents=True)
    (ruled / "policy.toml").write_text(policy(TOOL))
    sources = source(), source()
    async with (
        open_test_app(folder / "trust", config=_CONFIG, sources=sources[:1]) as app,
        open_test_app(ruled, config=_CONFIG, sources=sources[1:]) as whole,
    ):
        for one in (app, whole):
            scope = f"{one.caller.id}/bench"
            one.parts.pipeline.flow.trusted.hear_in(one.caller.id, scope, SAID)
        few, all_of_it, made = Calls(app), Calls(whole), iter(list[Call]())
        makers = {"plain": (app, few.plain), "peer": (app, few.of_peer)}
        makers["whole"] = (whole, lambda: next(made))
        least = dict.fromkeys(makers, float("inf"))
        for _ in range(ROUNDS):
            made = iter([all_of_it.of_peer() for _ in range(CALLS)])
            for name, (at, make) in makers.items():
                least[name] = min(least[name], await cpu_of(at, make))
                for one in sources:
                    one.calls.clear()  # it keeps them all, which is the test's and no node's cost
    beside = f"{least['plain']:.0f} us without, {least['peer']:.0f} us with them"
    return [
        Figure("chain, flow and pins add", least["peer"] - least["plain"], "us", 60, beside=beside),
        Figure(f"invoke, everything on, {CALLERS} callers", least["whole"], "us", 230),
    ]


async def _over_http(folder: Path) -> Figure:
    home = folder / "served"
    home.mkdir(parents=True)
    (home / "policy.toml").write_text(policy("builtin:system_time"))
    with daemon(home, _NODE, made=True) as (target, _):
        costs = [await _round(target) for _ in range(ROUNDS)]
    return Figure(f"POST, everything on, {CALLERS} callers", min(costs), "us", 450)


async def _round(target: Target) -> float:
    before = target.cpu
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(_posts, target, CALLS // CALLERS)
    return (target.cpu - before) / CALLS * 1e6


async def _posts(target: Target, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    plain = target.request("/api/tools/system_time/call")
    for _ in range(count):
        trace = f"00-{random_hex(16)}-{random_hex(8)}-01"
        told = f"\r\nTraceparent: {trace}\r\nOpenFang-Chain: {CLAIM}\r\nContent-Type".encode()
        writer.write(plain.replace(b"\r\nContent-Type", told, 1))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        start = head.lower().index(b"content-length: ") + 16
        await reader.readexactly(int(head[start : head.index(b"\r", start)]))
    writer.close()


async def figures(folder: Path) -> list[Figure]:
    """Measure it in the process, and over HTTP."""
    return [*await _in_process(folder / "within"), await _over_http(folder / "over")]
