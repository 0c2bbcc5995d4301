"""A model that is asked again: after a rate limit, an error of the server or a lost connection.

Only as long as it has said nothing yet: words that somebody has heard are not taken back.
"""

from __future__ import annotations

import logging
import random
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.agents import Spent
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.agents import Model, Prompt, Said

_log = logging.getLogger("openfang.agents")
_FIRST: Final = 0.5
_LONGEST: Final = 30.0
_CHANCE: Final = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """Asks up to `retries` times more. All of a step has `seconds`, the pauses included."""

    model: Model
    retries: int = 3
    seconds: float = 120.0
    chance: random.Random = _CHANCE

    @property
    def name(self) -> str:
        """How it is named to people."""
        return self.model.name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the model does, in one of its tries."""
        until = anyio.current_time() + self.seconds
        for tried in range(self.retries + 1):
            told = False
            try:
                async with aclosing(self._by(until, prompt)) as answer:
                    async for said in answer:
                        told = told or not isinstance(said, Spent)
                        yield said
            except ModelFailed as failure:
                if told:
                    raise broken_off(failure) from failure
                pause = self._pause(failure, tried)
                if tried == self.retries or anyio.current_time() + pause >= until:
                    raise
                _log.info("%s is asked again in %.1f s: %s", self.name, pause, failure.message)
                await anyio.sleep(pause)
            else:
                return

    async def _by(self, until: float, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer until a moment: the time that listeners take counts, too."""
        async with aclosing(self.model.answer(prompt)) as answer:
            while True:
                try:
                    with anyio.fail_after(max(until - anyio.current_time(), 0)):
                        said = await anext(answer)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise self._too_slow() from None
                yield said

    def _pause(self, failure: ModelFailed, tried: int) -> float:
        """Wait as long as it was told, else longer each time; infinitely where it is of no use."""
        if not failure.passes:
            return float("inf")
        if failure.retry_after is not None:
            return failure.retry_after + self.chance.uniform(0, _FIRST)
        return min(_FIRST * 2**tried, _LONGEST) * self.chance.uniform(0.5, 1.5)

    def _too_slow(self) -> ModelFailed:
        return ModelFailed(
            f"{self.name} did not answer within {self.seconds:g} s.",
            trouble=Trouble.TIME,
            way_out="limits.model_timeout_secs",
        )


def broken_off(failure: ModelFailed) -> ModelFailed:
    """The same failure, where the model had begun to speak."""
    return ModelFailed(
        f"The answer broke off: {failure.message}",
        trouble=failure.trouble,
        way_out=failure.way_out,
        detail=failure.detail,
    )
