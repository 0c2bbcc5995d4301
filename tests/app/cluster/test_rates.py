"""Rates over several nodes, on a real Postgres server: told once a second, never waited for."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.postgres import run

from openfang.app.cluster.rates import NODES, Rates
from openfang.core.errors import HomeError
from openfang.guard.rate import Granted, Limited, Limiter, Quota
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import PostgresStorage
from openfang.storage.postgres.rates import drop_paid

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C12.3")
MINUTELY = Quota(cells_per_minute=60, burst=60)


@dataclass(slots=True)
class Hands:
    """A clock that began at another moment than that of the other nodes."""

    off: float = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.off

    def time_ns(self) -> int:
        return time.time_ns() + int(self.off * 1e9)


@dataclass(slots=True)
class Node:
    rates: Rates
    limiter: Limiter

    @property
    def now(self) -> float:
        return self.rates.clock.monotonic()

    def charge(self, quota: Quota = MINUTELY, cost: int = 1, key: str = "key:a") -> bool:
        return isinstance(self.limiter.charge(key, cost, quota, self.now), Granted)

    def owed(self, quota: Quota = MINUTELY, key: str = "key:a") -> float:
        """Seconds until one cell is free; nothing if one is."""
        charge = self.limiter.look(key, 1, quota, self.now)
        return (charge.retry_after or 0.0) if isinstance(charge, Limited) else 0.0

    async def exchange(self) -> bool:
        return await self.rates.exchange()


def node_of(storage: PostgresStorage, off: float = 0.0) -> Node:
    limiter = Limiter()
    return Node(Rates(storage=storage, clock=Hands(off), limiters={"caller": limiter}), limiter)


@asynccontextmanager
async def nodes(url: str, *off: float) -> AsyncGenerator[list[Node]]:
    async with AsyncExitStack() as stack:
        opened = [PostgresStorage(Address(url)) for _ in off]
        for one in opened:
            await stack.enter_async_context(aclosing(one))
        yield [node_of(one, late) for one, late in zip(opened, off, strict=True)]


async def test_what_is_used_on_one_node_is_used_on_all(postgres: str) -> None:
    async with nodes(postgres, 0.0, 0.0) as (first, second):
        assert all(first.charge() for _ in range(60))
        assert second.charge()
        assert await first.exchange()
        assert await second.exchange()
        assert 0 < second.owed() <= 2.0
        assert not second.charge()


async def test_a_clock_ten_seconds_off_changes_nothing(postgres: str) -> None:
    async with nodes(postgres, 0.0, 10.0, -86_400.0) as (right, ahead, behind):
        right.charge(cost=40)
        ahead.charge(cost=10)
        behind.charge(cost=10)
        for node in (right, ahead, behind, right, ahead):
            node.charge(cost=0)
            await node.exchange()
        behind.charge()
        await behind.exchange()
        left = behind.limiter.look("key:a", 0, MINUTELY, behind.now)
        assert isinstance(left, Limited) or left.remaining <= 1


async def test_three_nodes_hammered_in_turn_stay_within_the_stated_bound(postgres: str) -> None:
    quota = Quota(cells_per_minute=12_000, burst=40)
    every, most, longest = 0.05, 1.0, 0.0
    passed, exact, apart = 0, 0, 0
    alone, strangers = Limiter(), [Limiter() for _ in range(3)]
    async with nodes(postgres, 0.0, 3.0, -7.0) as three:
        began = exchanged = time.monotonic()
        while (now := time.monotonic()) - began < most:
            for node, stranger in zip(three, strangers, strict=True):
                passed += node.charge(quota)
                exact += isinstance(alone.charge("key:a", 1, quota, now), Granted)
                apart += isinstance(stranger.charge("key:a", 1, quota, now), Granted)
            if now - exchanged >= every:
                for node in three:
                    assert await node.exchange()
                longest, exchanged = max(longest, time.monotonic() - exchanged), time.monotonic()
        took, longest = time.monotonic() - began, max(longest, time.monotonic() - exchanged)
    bound = (took + len(three) * (quota.window + longest)) / quota.interval
    latest = longest / quota.interval  # what is heard of may be as old as a statement is slow
    assert exact - 1 - latest <= passed <= min(bound + 1, apart)


async def test_a_debt_to_many_nodes_is_paid_back_before_anybody_passes(postgres: str) -> None:
    async with nodes(postgres, 0.0, 0.0, 0.0) as three:
        for node in three:
            assert node.charge(cost=60)
        for node in (*three, *three[:2]):
            await node.exchange()
        last = three[2]
        assert 60 * 2 - 5 < last.owed() <= 60 * 2 + 1
        assert not last.charge()


async def test_nobody_waits_while_another_node_is_at_it(postgres: str) -> None:
    other = await cast("Any", asyncpg).connect(postgres)
    async with nodes(postgres, 0.0) as (node,):
        node.charge(cost=30)
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock(x'72617465'::int)")
            with anyio.fail_after(30):
                assert not await node.exchange()
        node.charge(cost=10)
        assert await node.exchange()
        (((used,),),) = await run(postgres, "SELECT used FROM rates WHERE subject = 'caller/key:a'")
    await other.close()
    assert used == pytest.approx(40.0)


async def test_a_node_without_its_database_goes_on_and_tells_later(postgres: str) -> None:
    async with nodes(postgres, 0.0) as (node,):
        node.charge(cost=20)
        reachable = node.rates.storage
        gone = PostgresStorage(Address("postgresql://nobody@127.0.0.1:1/none"))
        node.rates.storage = gone
        with pytest.raises(HomeError):
            await node.exchange()
        assert node.charge(cost=40)
        assert not node.charge()
        node.rates.storage = reachable
        assert await node.exchange()
        (((used,),),) = await run(postgres, "SELECT used FROM rates")
        assert used == pytest.approx(60.0)


async def test_nothing_used_is_no_statement_and_what_came_back_is_forgotten(postgres: str) -> None:
    async with nodes(postgres, 0.0) as (node,):
        storage = node.rates.storage
        assert await node.exchange()
        assert storage.statements == 0
        node.charge(Quota(cells_per_minute=60_000_000, burst=1))
        await node.exchange()
        await drop_paid(storage)
        assert await run(postgres, "SELECT * FROM rates") == [[]]


@pytest.mark.parametrize("key", ["k" * 100_000, "a\0b", "\ud800", "caller/with/slashes"])
async def test_whatever_a_caller_is_called_its_rate_is_shared(postgres: str, key: str) -> None:
    async with nodes(postgres, 0.0, 0.0) as (first, second):
        first.charge(cost=60, key=key)
        first.charge(cost=1, key="another")
        second.charge(key=key)
        for node in (first, second):
            assert await node.exchange()
        assert not second.charge(key=key)
        assert second.charge(key="another")


async def test_a_servers_clock_set_back_locks_nobody_out_for_ever(postgres: str) -> None:
    async with nodes(postgres, 0.0) as (node,):
        node.charge()
        await node.exchange()
        await run(postgres, "UPDATE rates SET tat = tat + 1e9")
        node.charge()
        await node.exchange()
        short = replace(MINUTELY, burst=1)
        assert node.owed() <= NODES * 60.0
        assert node.owed(short) <= NODES
