"""Leases on a real database: one holder at a time, a term for each, and nobody has them all."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.postgres import run

from openfang.app.cluster.leases import TRUSTED, Leases, uptime
from openfang.storage.postgres.address import address
from openfang.storage.postgres.leases import LeaseTable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping

    from openfang.storage.postgres.leases import Lease

pytestmark = pytest.mark.requirement("C13.3")
NAMES = ("mcp:one", "mcp:two", "mcp:three", "mcp:four")


@dataclass(slots=True)
class Runner:
    """A node that runs what it has, and notes when that began and ended."""

    me: str
    others: Collection[str] = ("a", "b")
    draining: bool = False
    names: Collection[str] = NAMES
    ended: list[str] = field(default_factory=list[str])

    def takers(self) -> Collection[str]:
        return self.others

    def wanted(self) -> Collection[str]:
        return self.names

    def moved(self, name: str) -> None:
        pass

    async def stop(self, name: str) -> None:
        self.ended.append(name)

    def renewed(self, name: str, ends: float) -> None:
        pass


@dataclass(slots=True)
class Cuttable:
    """A table that answers no more once it is cut off."""

    table: LeaseTable
    cut: bool = False

    async def _through(self) -> None:
        if self.cut:
            await anyio.sleep_forever()

    async def look(self) -> dict[str, Lease]:
        await self._through()
        return await self.table.look()

    async def renew(self, terms: Mapping[str, int]) -> set[str]:
        await self._through()
        return await self.table.renew(terms)

    async def take(self, name: str) -> int | None:
        await self._through()
        return await self.table.take(name)

    async def give(self, terms: Mapping[str, int]) -> None:
        await self._through()
        await self.table.give(terms)


@dataclass(slots=True)
class Beside:
    """What can be done to a node from beside."""

    leases: Leases
    runner: Runner
    table: Cuttable
    ahead: list[float]

    def held(self) -> set[str]:
        return {name for name in NAMES if self.leases.held(name)}


@asynccontextmanager
async def node(url: str, me: str) -> AsyncGenerator[Beside]:
    """Run the leases of a node; `ahead` moves its own clock."""
    table, runner, ahead = LeaseTable(address(url), me), Runner(me), [0.0]
    cuttable = Cuttable(table)
    leases = Leases(table=cuttable, fellows=runner, lessee=runner, now=lambda: uptime() + ahead[0])
    async with anyio.create_task_group() as group:
        group.start_soon(leases.run)
        yield Beside(leases, runner, cuttable, ahead)
        group.cancel_scope.cancel()
    await table.aclose()


async def until(met: Callable[[], bool], *nodes: Beside) -> None:
    """Look again whenever a node has; none of them takes longer than its rhythm."""
    with anyio.fail_after(60):
        while not met():
            for one in nodes:
                one.leases.nudge()
            await anyio.sleep(0.02)


async def terms(url: str) -> Mapping[str, tuple[str, int]]:
    [rows] = await run(url, "SELECT name, node, term FROM leases")
    return {row["name"]: (row["node"], row["term"]) for row in rows}


async def test_each_is_had_by_one_node_and_no_node_has_them_all(postgres: str) -> None:
    async with node(postgres, "a") as a, node(postgres, "b") as b:
        await until(lambda: len(a.held() | b.held()) == len(NAMES), a, b)
        assert a.held().isdisjoint(b.held())
        found = await terms(postgres)
        assert Counter(holder for holder, _ in found.values()) == {"a": 2, "b": 2}
        assert {term for _, term in found.values()} == {1}
        await until(lambda: all(a.leases.holder(name) for name in NAMES), a)
        assert {a.leases.holder(name) for name in b.held()} == {("b", 1)}


async def test_a_node_that_is_drained_ends_what_it_has_before_another_gets_it(
    postgres: str,
) -> None:
    async with node(postgres, "a") as a:
        await until(lambda: a.held() == set(NAMES), a)
        async with node(postgres, "b") as b:
            a.runner.draining = True
            await until(lambda: b.held() == set(NAMES), a, b)
            assert sorted(a.runner.ended) == sorted(NAMES)
            assert set((await terms(postgres)).values()) == {("b", 2)}, "a term for each holder"


async def test_who_cannot_renew_believes_in_nothing_before_anybody_else_can_have_it(
    postgres: str,
) -> None:
    async with node(postgres, "a") as a:
        await until(lambda: a.held() == set(NAMES), a)
        a.table.cut = True
        a.ahead[0] = TRUSTED
        assert a.held() == set(), "whoever wakes up late looks at the clock first"
        async with node(postgres, "b") as b:
            await until(lambda: bool(b.leases.holder("mcp:one")), b)
            assert b.held() == set(), "it lasts longer than it is believed in"
            await run(postgres, "UPDATE leases SET until = 0")
            await until(lambda: b.held() == set(NAMES), b)
            a.table.cut = False
            await until(lambda: a.leases.holder("mcp:one") == ("b", 2), a, b)
            assert (a.held(), sorted(a.runner.ended)) == (set(), sorted(NAMES))
