"""A model that may write its calls as text: they are read, and not shown to anybody as words."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from openfang.agents.models.wishes import MOST, wishes
from openfang.agents.models.written import Holding, calls_in
from openfang.core.agents import Spent, Wanted, Words
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from openfang.core.agents import Model, Prompt, Said


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads what a model writes; where no tools are offered there is nothing to read."""

    model: Model

    @property
    def name(self) -> str:
        """How it is named to people."""
        return self.model.name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the model does; calls that it wrote are calls."""
        holding, wanted = Holding(), False
        async with aclosing(self.model.answer(prompt)) as answer:
            async for said in answer:
                match said:
                    case Words(text) if prompt.tools:
                        if now := holding.feed(text):
                            yield Words(now)
                        continue
                    case Wanted():
                        wanted = True
                    case _:
                        pass
                if isinstance(said, Wanted | Spent):
                    for held in _held(holding.rest(), prompt, reads=not wanted):
                        yield held
                yield said
        if rest := holding.rest():
            yield Words(rest)


def _held(text: str, prompt: Prompt, *, reads: bool) -> Iterator[Said]:
    """Give what was held: who makes calls as they should be made writes none."""
    words, heard = text, []
    if reads:
        words, heard = calls_in(text, frozenset(tool.wire_name for tool in prompt.tools))
    if words and (words.strip() or not heard):
        yield Words(words)
    for wish in wishes(heard[:MOST], prompt):
        yield Wanted(wish)
