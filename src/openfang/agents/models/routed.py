"""Which of an agent's models answers, by the length of what was asked. Pure but for the asking."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from openfang.agents.compact import size
from openfang.core.agents import Speaker
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from openfang.core.agents import Message, Model, Prompt, Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Names of models; an empty one is the agent's own. The bounds are in tokens."""

    simple: str = ""
    medium: str = ""
    long: str = ""
    short_below: int = 100
    long_from: int = 500

    def chosen(self, asked: Message) -> str:
        """Name the model for what a person said last."""
        length = size((asked,))
        if length < self.short_below:
            return self.simple
        return self.long if length >= self.long_from else self.medium


NO_ROUTES = Routes()


@dataclass(frozen=True, slots=True)
class Routed:
    """Asks the model that fits; a run stays with it, because what was asked stays the same."""

    routes: Routes
    model: Callable[[str], Model]

    @property
    def name(self) -> str:
        """How the agent's own is named to people."""
        return self.model("").name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the model that fits."""
        people = (one for one in reversed(prompt.messages) if one.speaker is Speaker.USER)
        asked = next(people, None)
        chosen = self.model(self.routes.chosen(asked) if asked else "")
        async with aclosing(chosen.answer(prompt)) as answer:
            async for said in answer:
                yield said
