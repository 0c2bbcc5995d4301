"""Slots: never more than the limit, everybody in turn, nothing left behind."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint

from openfang.guard.concurrency import Slots

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C3.5", "C8.3")


@asynccontextmanager
async def held(slots: Slots, key: str, limit: int, who: str = "") -> AsyncGenerator[None]:
    await slots.acquire(key, limit, who)
    try:
        yield
    finally:
        slots.release(key)


async def until_waiting(slots: Slots, key: str, count: int) -> None:
    with anyio.fail_after(30):
        while slots.waiting(key) != count:
            await checkpoint()


async def test_never_more_than_the_limit_are_in_and_all_get_their_turn() -> None:
    slots, now, most, done = Slots(), 0, 0, 0

    async def work() -> None:
        nonlocal now, most, done
        async with held(slots, "server", 10):
            now += 1
            most = max(most, now)
            await checkpoint()
            now -= 1
            done += 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(work)
    assert (most, done, slots.size) == (10, 200, 0)


async def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    slots, served = Slots(), list[int]()

    async def work(number: int) -> None:
        async with held(slots, "server", 1):
            served.append(number)
            await checkpoint()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, held(slots, "server", 1):
            for number in range(50):
                group.start_soon(work, number)
                await until_waiting(slots, "server", number + 1)
    assert served == list(range(50))


async def test_whoever_waits_with_many_does_not_starve_the_others() -> None:
    slots, served = Slots(), list[str]()

    async def work(who: str) -> None:
        async with held(slots, "server", 1, who):
            served.append(who)
            await checkpoint()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, held(slots, "server", 1):
            for number, who in enumerate(("a",) * 100 + ("b", "b", "c")):
                group.start_soon(work, who)
                await until_waiting(slots, "server", number + 1)
    assert served[:6] == ["a", "b", "c", "a", "b", "a"]
    assert (served.count("a"), slots.size) == (100, 0)


async def test_whoever_gives_up_leaves_the_turn_to_the_next() -> None:
    slots, served = Slots(), list[str]()

    async def work(who: str) -> None:
        async with held(slots, "server", 1, who):
            served.append(who)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, held(slots, "server", 1):
            async with anyio.create_task_group() as impatient:
                for _ in range(3):
                    impatient.start_soon(work, "a")
                await until_waiting(slots, "server", 3)
                group.start_soon(work, "b")
                await until_waiting(slots, "server", 4)
                impatient.cancel_scope.cancel()
            assert slots.waiting("server") == 1
    assert (served, slots.size) == (["b"], 0)


async def test_a_newcomer_does_not_overtake() -> None:
    slots, served = Slots(), list[str]()

    async def wait() -> None:
        async with held(slots, "server", 1):
            served.append("waited")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            async with held(slots, "server", 1):
                group.start_soon(wait)
                await until_waiting(slots, "server", 1)
            async with held(slots, "server", 1):
                served.append("newcomer")
    assert served == ["waited", "newcomer"]


async def test_a_free_slot_is_taken_without_yielding() -> None:
    slots, others = Slots(), list[str]()

    async def other() -> None:
        await checkpoint()
        others.append("ran")

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        async with held(slots, "server", 1):
            assert others == []


async def test_one_who_gives_up_leaves_no_gap_and_no_slot_taken() -> None:
    slots, served = Slots(), list[str]()
    scope = anyio.CancelScope()

    async def give_up() -> None:
        with scope:
            async with held(slots, "server", 1):
                served.append("must not run")

    async def wait() -> None:
        async with held(slots, "server", 1):
            served.append("waited")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, held(slots, "server", 1):
            group.start_soon(give_up)
            await until_waiting(slots, "server", 1)
            group.start_soon(wait)
            await until_waiting(slots, "server", 2)
            scope.cancel()
            await until_waiting(slots, "server", 1)
    assert served == ["waited"]
    assert slots.size == 0


async def test_a_slot_handed_to_one_who_is_cancelled_in_that_moment_is_passed_on() -> None:
    slots, served = Slots(), list[str]()
    scope = anyio.CancelScope()

    async def give_up() -> None:
        with scope:
            async with held(slots, "server", 1):
                await anyio.sleep_forever()

    async def wait() -> None:
        async with held(slots, "server", 1):
            served.append("waited")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            async with held(slots, "server", 1):
                group.start_soon(give_up)
                await until_waiting(slots, "server", 1)
                group.start_soon(wait)
                await until_waiting(slots, "server", 2)
            scope.cancel()
    assert served == ["waited"]
    assert slots.size == 0


async def test_a_slot_handed_to_a_task_that_is_cancelled_before_it_wakes_is_passed_on() -> None:
    slots, served = Slots(), list[str]()

    async def work(name: str) -> None:
        async with held(slots, "server", 1):
            served.append(name)

    with anyio.fail_after(30):
        await slots.acquire("server", 1)
        tasks = [asyncio.create_task(work(name)) for name in ("cancelled", "next")]
        await until_waiting(slots, "server", 2)
        slots.release("server")
        # Not by a scope: anyio waits until a task that was woken has run, asyncio does not.
        tasks[0].cancel()
        await asyncio.wait(tasks)
    assert (served, slots.size) == (["next"], 0)


async def test_one_who_gives_up_at_the_head_lets_a_wider_limit_in() -> None:
    slots, served = Slots(), list[str]()
    scope = anyio.CancelScope()

    async def narrow() -> None:
        with scope:
            async with held(slots, "server", 1):
                served.append("must not run")

    async def wide() -> None:
        async with held(slots, "server", 2):
            served.append("wide")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, held(slots, "server", 1):
            group.start_soon(narrow)
            await until_waiting(slots, "server", 1)
            group.start_soon(wide)
            await until_waiting(slots, "server", 2)
            scope.cancel()
            await until_waiting(slots, "server", 0)
            assert slots.used("server") == 2
    assert served == ["wide"]


async def test_an_error_inside_gives_the_slot_back() -> None:
    slots = Slots()
    with pytest.raises(LookupError):
        async with held(slots, "server", 1):
            raise LookupError
    assert (slots.used("server"), slots.size) == (0, 0)


async def test_keys_do_not_wait_for_each_other() -> None:
    slots = Slots()
    with anyio.fail_after(30):
        async with held(slots, "a", 1), held(slots, "b", 1):
            assert (slots.used("a"), slots.used("b")) == (1, 1)


async def test_a_limit_of_nothing_is_a_mistake() -> None:
    slots = Slots()
    with pytest.raises(ValueError, match="at least one slot"):
        async with held(slots, "server", 0):
            pass
    assert slots.size == 0
