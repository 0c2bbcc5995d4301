"""A model that may write its calls as text: they are read, and not shown to anybody as words."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.agents import Model, Prompt, Said


@dataclass(frozen=True, slots=True)
class Reading:
    """Passes on what a model says."""

    model: Model

    @property
    def name(self) -> str:
        """How it is named to people."""
        return self.model.name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the model does."""
        async with aclosing(self.model.answer(prompt)) as answer:
            async for said in answer:
                yield said
