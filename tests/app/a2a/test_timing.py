"""Tasks that got stuck are looked for at a start, and then whenever the service says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.app.a2a.pushing import House, pushing, receiving, running

from openfang.app.a2a.timing import TASKS, register_task_timers
from openfang.core.tasks import Push
from openfang.storage.timers import TimerStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5.6")
HOUR = 3600


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with pushing(tmp_path) as made:
        yield made


@dataclass
class Asked:
    """Notes when it is asked, and wants to be asked again an hour later."""

    at: list[int] = field(default_factory=list[int])

    async def expire(self, now: int) -> int:
        self.at.append(now)
        return now + HOUR * 1_000_000_000


async def test_it_is_asked_at_each_start_and_whenever_it_says(house: House) -> None:
    service, begun = Asked(), house.clock.time_ns()
    loop, store = house.loop(), TimerStore(house.tasks.database)
    await register_task_timers(loop, service, house.delivery)
    async with running(loop.run):
        for count in range(1, 4):
            due = begun + count * HOUR * 1_000_000_000
            with anyio.fail_after(30):
                while [row.due for row in await store.soonest(TASKS, 9)] != [due]:
                    await anyio.lowlevel.checkpoint()
            if count < 3:
                house.clock.advance(HOUR)
                loop.wake()
    await register_task_timers(house.loop(), service, house.delivery)
    assert [round((at - begun) / 1e9) for at in service.at] == [0, HOUR, 2 * HOUR]
    assert [row.due for row in await store.soonest(TASKS, 9)] == [house.clock.time_ns()]


async def test_notifications_go_by_the_same_loop(house: House) -> None:
    loop = house.loop()
    await register_task_timers(loop, Asked(), house.delivery)
    async with receiving() as receiver, running(loop.run):
        await house.begin(Push(id="", task="", url=receiver.url()))
        await house.told()
    assert len(receiver.taken) == 1
