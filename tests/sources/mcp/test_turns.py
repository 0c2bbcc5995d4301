"""Who has their turn with a server that does not say whom it means."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import pytest
from tests.sources.mcp.federation import Person

from openfang.core.deadline import Deadline
from openfang.sources.mcp.errand import ClientErrand, PlainErrand
from openfang.sources.mcp.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.core.calls import Admitted
    from openfang.sources.mcp.relay import Relay

pytestmark = pytest.mark.requirement("C3.10")


@dataclass
class Client(Person):
    """One whose time can be held."""

    stands_still: bool = False

    @contextmanager
    def held(self) -> Generator[None]:
        self.stands_still = True
        try:
            yield
        finally:
            self.stands_still = False


RELAY, ADMITTED = cast("Relay", None), cast("Admitted", None)  # no turn depends on them


def errand(key: str, client: Client | None = None) -> ClientErrand:
    person = client or Client(key=key, connection=f"{key}'s")
    return ClientErrand(RELAY, ADMITTED, Deadline(60), person, Turns(60))


def plain() -> PlainErrand:
    return PlainErrand(RELAY, ADMITTED, Deadline(60))


async def test_before_anybody_asks_all_are_there_at_once() -> None:
    turns, ada, bob = Turns(60), errand("ada"), errand("bob")
    for one in (ada, bob):
        await turns.enter(one)
    assert (turns.clients, turns.only()) == (2, None)
    turns.leave(ada)
    assert turns.only() is bob


async def test_of_one_clients_errands_the_newest_is_meant() -> None:
    turns, first, second = Turns(60), errand("ada"), errand("ada")
    for one in (first, second):
        await turns.enter(one)
    assert turns.only() is second
    turns.leave(second)
    assert turns.only() is first


async def test_turns_are_taken_in_order_and_all_errands_of_a_client_come_together() -> None:
    turns, order = Turns(60), list[str]()
    turns.strict = True
    first = errand("ada")
    await turns.enter(first)

    async def come(name: str) -> None:
        one = errand(name[:3])
        await turns.enter(one)
        order.append(name)
        assert turns.clients == 1
        await anyio.lowlevel.checkpoint()
        turns.leave(one)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for name in ("bob-1", "cle-1", "ada-2", "bob-2"):
                group.start_soon(come, name)
            await anyio.wait_all_tasks_blocked()
            assert order == []
            turns.leave(first)
    assert order == ["bob-1", "bob-2", "cle-1", "ada-2"]
    assert turns.clients == 0


async def test_a_client_whose_turn_it_is_comes_again_while_nobody_else_waits() -> None:
    turns = Turns(60)
    turns.strict = True
    for _ in range(2):
        await turns.enter(errand("ada"))
    assert turns.clients == 1


async def test_time_stands_still_for_who_waits() -> None:
    turns, bob = Turns(60), Client(key="bob")
    turns.strict = True
    await turns.enter(errand("ada"))
    async with anyio.create_task_group() as group:
        group.start_soon(turns.enter, errand("bob", bob))
        await anyio.wait_all_tasks_blocked()
        assert bob.stands_still
        group.cancel_scope.cancel()
    assert not bob.stands_still


async def test_who_gives_up_waiting_is_not_waited_for() -> None:
    turns, ada, cleo = Turns(60), errand("ada"), errand("cleo")
    turns.strict = True
    await turns.enter(ada)
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(turns.enter, cleo)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await turns.enter(errand("bob"))
        turns.leave(ada)
    assert turns.only() is cleo


async def test_who_gives_up_when_their_turn_has_come_passes_it_on() -> None:
    turns, ada, cleo = Turns(60), errand("ada"), errand("cleo")
    turns.strict = True
    await turns.enter(ada)
    bob = asyncio.create_task(turns.enter(errand("bob")))
    await anyio.wait_all_tasks_blocked()
    async with anyio.create_task_group() as group:
        group.start_soon(turns.enter, cleo)
        await anyio.wait_all_tasks_blocked()
        turns.leave(ada)
        bob.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bob
    assert turns.only() is cleo


async def test_while_somebody_without_a_client_is_there_nobody_else_is_meant() -> None:
    turns, ada = Turns(60), errand("ada")
    turns.others += 1
    await turns.enter(ada)
    assert (turns.clients, turns.only()) == (1, None)
    turns.leave_others()
    assert turns.only() is ada


async def test_those_without_a_client_take_their_turn_together() -> None:
    turns, others, ada = Turns(60), [plain(), plain()], errand("ada")
    turns.others += 1
    turns.strict = True
    async with anyio.create_task_group() as group:
        for one in (others[0], ada, others[1]):
            group.start_soon(turns.enter, one)
        await anyio.wait_all_tasks_blocked()
        assert turns._present == {}
        turns.leave_others()
        await anyio.wait_all_tasks_blocked()
        assert (turns._present, turns.clients, turns.only()) == ({"": others}, 0, None)
        for one in others:
            turns.leave(one)
    assert turns.only() is ada


async def test_two_connections_of_one_key_are_two() -> None:
    turns = Turns(60)
    for connection in ("one editor", "another"):
        await turns.enter(errand("ada", Client(key="ada", connection=connection)))
    assert (turns.clients, turns.only()) == (2, None)


async def test_who_is_asked_and_takes_their_time_gives_their_turn_up_until_they_answer() -> None:
    turns, ada, bob, cleo = Turns(60), errand("ada"), errand("bob"), errand("cleo")
    turns.strict, turns.grace = True, 0.0
    await turns.enter(ada)
    answered, back = anyio.Event(), anyio.Event()

    async def ask() -> None:
        async with turns.aside(ada):
            await answered.wait()
        back.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await turns.enter(bob)
            assert (turns.clients, turns.only()) == (2, None)
            group.start_soon(turns.enter, cleo)
            answered.set()
            await anyio.wait_all_tasks_blocked()
            assert not back.is_set()
            turns.leave(bob)
            await back.wait()
            assert turns.only() is ada
            turns.leave(ada)
    assert turns.only() is cleo


async def test_who_answers_at_once_keeps_their_turn() -> None:
    turns, ada = Turns(60), errand("ada")
    turns.strict = True
    await turns.enter(ada)
    async with anyio.create_task_group() as group:
        async with turns.aside(ada):
            group.start_soon(turns.enter, errand("bob"))
            await anyio.wait_all_tasks_blocked()
            assert turns.only() is ada
        group.cancel_scope.cancel()


async def test_who_hangs_up_instead_of_answering_is_not_waited_for() -> None:
    turns, ada, bob = Turns(60), errand("ada"), errand("bob")
    turns.strict, turns.grace = True, 0.0
    await turns.enter(ada)
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            async with turns.aside(ada):
                await turns.enter(bob)
                turns.leave(ada)
                scope.cancel()
                await anyio.sleep_forever()
    assert turns.only() is bob
    turns.leave(bob)
    assert (turns._present, turns._asking, turns._waiting) == ({}, [], {})


async def test_nobody_waits_for_their_turn_for_ever() -> None:
    turns, bob = Turns(0.01), errand("bob")
    turns.strict = True
    await turns.enter(errand("ada"))
    with anyio.fail_after(30):
        await turns.enter(bob)
    assert (turns.clients, turns.only()) == (2, None)


async def test_a_server_that_no_longer_asks_serves_all_at_once() -> None:
    turns = Turns(60, lasts=0)
    turns.strict = True
    with anyio.fail_after(30):
        for key in ("ada", "bob"):
            await turns.enter(errand(key))
    assert not turns.strict
    assert turns.clients == 2


async def test_a_question_whose_call_is_known_makes_nobody_take_turns() -> None:
    turns, ada = Turns(60), errand("ada")
    turns.grace = 0.0
    await turns.enter(ada)
    async with turns.aside(ada):
        await anyio.wait_all_tasks_blocked()
        assert not turns.strict
    assert not turns.strict
