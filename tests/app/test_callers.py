"""Who is known by a key: for a second, for as long as something is open, and never too long."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tests.app.patient import Patient

from openfang.app.auth import callers as module
from openfang.app.auth import shared
from openfang.app.auth.callers import UNSEEN_SECONDS, Callers
from openfang.app.auth.credentials import Credentials
from openfang.app.auth.doors import Doors, RightKeys
from openfang.app.auth.issuer import TrustedIssuer
from openfang.config.models import Config
from openfang.core.errors import GuardTripped, Rejected
from openfang.core.keys import Key
from openfang.guard.rate import Quota
from openfang.storage.database import open_home
from openfang.storage.keys import KeyStore
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from openfang.core.calls import Caller

pytestmark = pytest.mark.requirement("C18.1")
FAILURES = 20
HERE = "127.0.0.1"


@dataclass(slots=True)
class House:
    """Callers and doors on a database that may be slow."""

    clock: ManualClock
    reader: Patient
    keys: KeyStore
    callers: Callers
    doors: Doors

    def make(self, name: str, **fields: Any) -> str:
        """Store a key."""
        secret = f"of_{name}"
        key = Key(id=f"key_{name}", name=name, **fields)
        self.reader.database.connection.execute(*self.keys.insert_key(key, secret))
        return secret

    def revoke(self, name: str) -> None:
        """Revoke it as another process does."""
        sql = "UPDATE keys SET revoked_at = 1 WHERE name = ?"
        self.reader.database.connection.execute(sql, (name,))

    async def sign_in(self, secret: str, edge: str = "api") -> Caller | None:
        return await self.doors.sign_in(HERE, secret, lambda: self.callers.find(secret, edge))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        clock, reader, config = ManualClock(), Patient(database), Config()
        keys, issuer = KeyStore(reader, b"pepper", clock.time_ns), TrustedIssuer(clock)
        callers = Callers(Credentials(keys, issuer, lambda: config), clock)
        right = RightKeys(keys, clock, issuer)
        doors = Doors(clock=clock, quota=Quota(cells_per_minute=60, burst=60), right=right)
        yield House(clock, reader, keys, callers, doors)


async def many(house: House, secrets: list[str]) -> list[object]:
    """Let them all sign in while the database keeps them waiting; say what each was told."""
    said: dict[int, object] = {}

    async def one(number: int, secret: str) -> None:
        try:
            said[number] = await house.sign_in(secret)
        except (GuardTripped, Rejected) as error:
            said[number] = error.rule

    async with anyio.create_task_group() as group:
        with house.reader.held():
            for number, secret in enumerate(secrets):
                group.start_soon(one, number, secret)
            await anyio.wait_all_tasks_blocked()
    return [said[number] for number in range(len(secrets))]


@pytest.mark.requirement("C12.3")
async def test_guesses_side_by_side_get_no_further_than_one_after_the_other(house: House) -> None:
    told = await many(house, [f"of_guess-{number}" for number in range(100)])
    assert [told.count(None), told.count("sign_in_limit")] == [FAILURES, 100 - FAILURES]
    assert sum("digest = ?" in sql for sql in house.reader.asked) == FAILURES
    with pytest.raises(GuardTripped):
        await house.sign_in("of_guess")


@pytest.mark.requirement("C12.3")
async def test_right_keys_side_by_side_are_all_let_in_and_leave_nothing(house: House) -> None:
    secrets = [house.make(f"k{number}") for number in range(50)]
    told = await many(house, secrets)
    assert [getattr(one, "id", one) for one in told] == [f"key:k{n}" for n in range(50)]
    assert await many(house, ["of_guess"] * 1) == [None]


@pytest.mark.requirement("C12.3")
async def test_who_does_not_wait_for_the_answer_has_guessed_all_the_same(house: House) -> None:
    for number in range(FAILURES):
        with house.reader.held():
            async with anyio.create_task_group() as group:
                group.start_soon(house.sign_in, f"of_guess-{number}")
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
    with pytest.raises(GuardTripped):
        await house.sign_in("of_guess")


async def test_one_key_that_many_use_at_once_is_looked_up_once(house: House) -> None:
    secret = house.make("busy")
    told = await many(house, [secret] * 10)
    assert {getattr(one, "id", one) for one in told} == {"key:busy"}
    assert len(house.reader.asked) == 1
    assert house.callers.recent(secret, "api") is not None
    assert len(house.reader.asked) == 1


async def test_one_who_gives_up_leaves_the_look_to_the_next(house: House) -> None:
    secret, found = house.make("k"), list[object]()

    async def look() -> None:
        found.append(await house.callers.find(secret, "api"))

    async with anyio.create_task_group() as group:
        with house.reader.held():
            first = anyio.CancelScope()

            async def cancelled() -> None:
                with first:
                    await look()

            group.start_soon(cancelled)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(look)
            await anyio.wait_all_tasks_blocked()
            first.cancel()
            await anyio.wait_all_tasks_blocked()
    assert [getattr(one, "id", one) for one in found] == ["key:k"]


async def test_a_key_that_is_ended_while_it_is_looked_up_is_not_let_in(house: House) -> None:
    secret, found = house.make("k"), list[object]()

    async def look() -> None:
        found.append(await house.callers.find(secret, "api"))

    async with anyio.create_task_group() as group:
        with house.reader.held():
            group.start_soon(look)
            await anyio.wait_all_tasks_blocked()
            house.revoke("k")
            house.callers.end("key_k")
    assert found == [None]
    assert house.callers.recent(secret, "api") is None


async def test_a_database_that_does_not_answer_is_an_error_within_its_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "LOOK_SECONDS", 0.05)
    secret, said = house.make("k"), list[str]()

    async def one() -> None:
        with pytest.raises(Rejected) as caught:
            await house.sign_in(secret)
        said.append(caught.value.rule)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            with house.reader.held():
                for _ in range(5):
                    group.start_soon(one)
                while len(said) < 5:
                    await checkpoint()
    assert said == ["keys_unavailable"] * 5
    assert (await house.sign_in(secret)) is not None  # nobody was blamed for it


async def still_of(house: House, secret: str, edge: str = "mcp") -> Any:
    caller = await house.callers.find(secret, edge)
    assert caller is not None
    return house.callers.still(caller, secret, edge)


@pytest.mark.requirement("C7.1")
async def test_what_is_open_is_judged_by_memory_and_seen_to_by_one_query(house: House) -> None:
    stills = [await still_of(house, house.make(f"k{number}")) for number in range(40)]
    house.reader.asked.clear()
    assert all(still() for still in stills)
    assert house.reader.asked == []
    house.revoke("k3")
    await house.callers._see_to_them()
    assert len(house.reader.asked) == 1
    assert [number for number, still in enumerate(stills) if not still()] == [3]
    assert house.callers.recent("of_k3", "mcp") is None
    assert house.callers.recent("of_k4", "mcp") is not None


@pytest.mark.requirement("C7.1")
async def test_what_is_ended_here_is_known_at_once(house: House) -> None:
    one, other = [await still_of(house, house.make(name)) for name in ("one", "other")]
    house.callers.end("key_one")
    assert (one(), other()) == (False, True)
    assert house.callers.recent("of_other", "mcp") is None  # it is looked up anew


@pytest.mark.requirement("C7.1")
async def test_a_key_that_expires_ends_what_is_open_and_so_does_blindness(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    soon = house.make("soon", expires_at=house.clock.time_ns() + 5_000_000_000)
    short, lasting = await still_of(house, soon), await still_of(house, house.make("lasting"))
    house.clock.advance(5)
    assert (short(), lasting()) == (False, True)
    with house.reader.held():
        await house.callers._see_to_them()
        house.clock.advance(UNSEEN_SECONDS - 5)
        assert lasting()
        house.clock.advance(0.1)
        assert not lasting()
    await house.callers._see_to_them()
    assert lasting()


async def test_what_nobody_has_open_is_forgotten_and_costs_nothing(house: House) -> None:
    still = await still_of(house, house.make("k"))
    house.clock.advance(60)
    house.reader.asked.clear()
    del still
    await house.callers._see_to_them()
    await house.callers._see_to_them()
    assert house.reader.asked == []


async def test_a_key_made_while_the_others_are_seen_to_is_not_taken_for_ended(
    house: House,
) -> None:
    old = await still_of(house, house.make("old"))
    async with anyio.create_task_group() as group:
        with house.reader.held():
            group.start_soon(house.callers._see_to_them)
            await anyio.wait_all_tasks_blocked()
            house.clock.advance(0.1)
            group.start_soon(house.callers.find, house.make("new"), "mcp")
            await anyio.wait_all_tasks_blocked()
    assert old()
    assert house.callers.recent("of_new", "mcp") is not None
