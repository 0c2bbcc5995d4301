"""Asking again: how often, how long in between, and never after a word was heard."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.fallback import Fallback
from openfang.agents.models.patient import Patient
from openfang.core.agents import Prompt, Spent, Usage, Words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.agents import Model, Said

pytestmark = pytest.mark.requirement("C6.5")
ANSWER: list[Said] = [Words("hi"), Spent(Usage(requests=1))]


class Tries:
    """A model of which each try is written down: what it says, and how it fails."""

    name = "tries"

    def __init__(self, *tries: list[Said] | ModelFailed | Exception) -> None:
        self.tries = list(tries)

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        del prompt
        one = self.tries.pop(0)
        if isinstance(one, Exception):
            raise one
        for said in one:
            yield said


def failed(trouble: Trouble, after: float | None = None) -> ModelFailed:
    return ModelFailed(f"{trouble.value}.", trouble=trouble, retry_after=after)


async def heard(model: Model) -> list[Said]:
    with anyio.fail_after(30):
        return [said async for said in model.answer(Prompt())]


@pytest.mark.parametrize("trouble", [Trouble.RATE, Trouble.BUSY, Trouble.LOST])
async def test_what_may_pass_is_tried_again(trouble: Trouble) -> None:
    tries = Tries(failed(trouble, 0), failed(trouble, 0), ANSWER)
    assert await heard(Patient(model=tries)) == ANSWER


@pytest.mark.parametrize("trouble", [one for one in Trouble if not failed(one).passes])
async def test_what_does_not_pass_is_not(trouble: Trouble) -> None:
    tries = Tries(failed(trouble), ANSWER)
    with pytest.raises(ModelFailed) as failure:
        await heard(Patient(model=tries))
    assert (failure.value.trouble, len(tries.tries)) == (trouble, 1)


async def test_an_error_of_our_own_is_neither_tried_again_nor_passed_over() -> None:
    broken, next_one = Tries(ValueError("a bug"), ANSWER), Tries(ANSWER)
    with pytest.raises(ValueError, match="a bug"):
        await heard(Fallback([Patient(model=broken), next_one]))
    assert (len(broken.tries), len(next_one.tries)) == (1, 1)


async def test_what_a_failed_try_cost_is_counted() -> None:
    spent = Spent(Usage(requests=1, output_tokens=3))

    class Costly(Tries):
        async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
            if len(self.tries) == 2:
                yield spent
            async for said in super().answer(prompt):
                yield said

    tries = Costly(failed(Trouble.LOST, 0), ANSWER)
    assert await heard(Patient(model=tries)) == [spent, *ANSWER]


def test_pauses_grow_are_spread_and_bounded_and_what_is_told_is_kept() -> None:
    patient = Patient(model=Tries(), chance=Random(1))  # noqa: S311 - so that it comes again
    pauses = [patient._pause(failed(Trouble.BUSY), tried) for tried in range(12)]
    assert all(0.25 * 2**n <= pause <= 45 for n, pause in enumerate(pauses[:6]))
    assert max(pauses) <= 45
    assert len(set(pauses)) == len(pauses)
    told = patient._pause(failed(Trouble.RATE, 7), 0)
    assert 7 <= told <= 7.5


async def test_the_next_is_asked_only_if_nothing_was_said() -> None:
    class Half(Tries):
        async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
            del prompt
            yield Words("half")
            raise failed(Trouble.LOST)

    next_one = Tries(ANSWER)
    with pytest.raises(ModelFailed, match="lost"):
        await heard(Fallback([Half(), next_one]))
    assert len(next_one.tries) == 1


async def test_one_of_several_that_could_not_read_it_all_gets_less() -> None:
    first, second = Tries(failed(Trouble.WINDOW)), Tries(failed(Trouble.NO_KEY))
    with pytest.raises(ModelFailed) as failure:
        await heard(Fallback([first, second]))
    assert failure.value.trouble is Trouble.WINDOW
    assert failure.value.message == "window. no_key."
