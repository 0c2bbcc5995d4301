"""While a client is asked, neither the call that asks nor the one around it runs out of time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from openfang.core.deadline import Deadline
from openfang.core.results import Result, text_result
from openfang.guard.concurrency import Slots
from openfang.pipeline.patience import Patient
from openfang.pipeline.slot import Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.requirement("C7.11")
SECONDS = 0.02


@dataclass
class Person:
    """A client that takes several times as long as the call has."""

    key: str = "me"
    connection: str = "mine"
    level: str = ""
    has_person: bool = True
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    heard: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    meanwhile: Callable[[], object] = field(default=lambda: None)

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        del params
        self.heard.append((method, name))
        self.meanwhile()
        await anyio.sleep(3 * SECONDS)
        return text_result("yes")

    def together(self, count: int) -> Callable[[], None]:
        del count
        return lambda: None

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


async def test_the_time_of_a_person_is_not_the_calls() -> None:
    person, deadline = Person(), Deadline(SECONDS)
    with deadline:
        answer = await Patient(person, deadline).ask("elicitation/create", {}, "a name")
    assert (answer.text, person.heard) == ("yes", [("elicitation/create", "a name")])
    with pytest.raises(TimeoutError), deadline:
        await person.ask("elicitation/create", {})


async def test_the_slot_of_a_call_that_asks_is_free_meanwhile() -> None:
    slots, used = Slots(), list[int]()
    person = Person(meanwhile=lambda: used.append(slots.used("server")))
    deadline = Deadline(SECONDS)
    slot = Slot(slots, "server", 1, "me")
    async with slot:
        with deadline:
            await Patient(person, deadline, slot).ask("roots/list", {})
        assert slots.used("server") == 1
    assert (used, slots.size) == ([0], 0)


@pytest.mark.parametrize("inner_too", [True, False])
async def test_where_a_call_stands_still_so_does_the_one_around_it(*, inner_too: bool) -> None:
    outer, inner = Deadline(SECONDS), Deadline(SECONDS if inner_too else 60)
    around = Patient(Person(), outer)
    with outer, inner, Patient(around, inner).held():
        await asyncio.sleep(3 * SECONDS)
    assert not outer.expired
    assert not inner.expired
