from __future__ import annotations

import asyncio
import math

import anyio
import pytest

from openfang.core.deadline import Deadline

pytestmark = pytest.mark.requirement("C7.11")


async def test_what_runs_too_long_is_cancelled_and_the_task_goes_on() -> None:
    deadline = Deadline(0.01)
    with anyio.fail_after(30), pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(60)
    assert deadline.expired
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_what_is_in_time_is_left_alone() -> None:
    deadline = Deadline(60)
    with deadline:
        await asyncio.sleep(0)
    assert not deadline.expired


async def test_an_endless_deadline_is_none() -> None:
    with Deadline(math.inf):
        await asyncio.sleep(0)


async def test_somebody_elses_cancellation_stays_one() -> None:
    deadline = Deadline(60)
    with anyio.move_on_after(0.01) as scope, deadline:
        await asyncio.sleep(60)
    assert scope.cancelled_caught
    assert not deadline.expired


async def test_an_error_of_the_body_comes_through() -> None:
    with pytest.raises(KeyError), Deadline(60):
        raise KeyError


async def test_a_sign_of_life_begins_the_count_anew() -> None:
    deadline = Deadline(0.5)

    async def busy_and_then_silent() -> None:
        for _ in range(4):
            await asyncio.sleep(0.2)
            deadline.again()
        assert not deadline.expired
        await asyncio.sleep(60)

    with anyio.fail_after(30), pytest.raises(TimeoutError), deadline:
        await busy_and_then_silent()
