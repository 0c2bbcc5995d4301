"""Models that stand in for one another: the next is asked when the one before cannot answer."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.agents import Spent
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from openfang.core.agents import Model, Prompt, Said

_log = logging.getLogger("openfang.agents")


@dataclass(frozen=True, slots=True)
class Fallback:
    """Asks one after the other, until one says something. Errors of our own are not passed over."""

    models: Sequence[Model]

    @property
    def name(self) -> str:
        """How the first is named to people."""
        return self.models[0].name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the first model that can."""
        failures: list[ModelFailed] = []
        for model in self.models:
            told = False
            try:
                async with aclosing(model.answer(prompt)) as answer:
                    async for said in answer:
                        told = told or not isinstance(said, Spent)
                        yield said
            except ModelFailed as failure:
                if told or len(failures) + 1 == len(self.models):
                    raise _all(failures, failure) from failure
                _log.warning("%s cannot answer: %s", model.name, failure.detail or failure.message)
                failures.append(failure)
            else:
                return


def _all(before: Sequence[ModelFailed], last: ModelFailed) -> ModelFailed:
    """Tell of all of them; one that could not read it all is asked again with less."""
    if not before:
        return last
    every = [*before, last]
    window = next((one for one in every if one.trouble is Trouble.WINDOW), None)
    return ModelFailed(
        " ".join(one.message for one in every),
        trouble=window.trouble if window else last.trouble,
        way_out=next((one.way_out for one in every if one.way_out), ""),
        detail=last.detail,
    )
