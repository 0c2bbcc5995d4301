"""A meter: counts what a run uses up, from the model it asks to the calls it makes."""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import orjson

from openfang.core.agents import Asked, Spent, Usage
from openfang.core.usage import NOTHING, Spending, of_model
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable

    from openfang.core.agents import Model, Prompt, Said
    from openfang.core.tools import Tool

_MOST_KNOWN = 10_000


@dataclass(slots=True)
class Meter:
    """Holds what was counted and is not written down yet."""

    unkept: Spending = NOTHING

    def count(self, spending: Spending) -> None:
        """Count it."""
        self.unkept += spending

    @contextmanager
    def keeping(self) -> Generator[Spending]:
        """Hand out what is to be written down; if that fails it is still to be."""
        taken, self.unkept = self.unkept, NOTHING
        try:
            yield taken
        except BaseException:
            self.unkept += taken
            raise


@dataclass(frozen=True, slots=True)
class Metered:
    """A model of which each request is counted."""

    model: Model
    meter: Meter
    asked: Callable[[Asked], None] | None = None

    @property
    def name(self) -> str:
        """How it is named to people."""
        return self.model.name

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Let the model answer; what it was shown counts whether it does or not."""
        self.meter.count(Spending(schema_bytes=shown_bytes(prompt.tools)))
        began, usage, error = monotonic(), Usage(), ""
        try:
            async with aclosing(self.model.answer(prompt)) as answer:
                async for said in answer:
                    if isinstance(said, Spent):
                        self.meter.count(of_model(said.usage))
                        usage = said.usage
                    yield said
        except Exception as failure:
            error = type(failure).__name__
            raise
        finally:
            if self.asked is not None:
                took = monotonic() - began
                self.asked(Asked(model=self.name, seconds=took, usage=usage, error=error))


def shown_bytes(tools: Iterable[Tool]) -> int:
    """How long the names, descriptions and schemas of tools are, as JSON without spaces."""
    return sum(map(_bytes_of, tools))


_known: dict[str, tuple[Tool, int]] = {}


def _bytes_of(tool: Tool) -> int:
    """Measure a tool once: the same ones are shown again and again."""
    known = _known.get(tool.id)
    if known is None or known[0] is not tool:
        shown = {
            "name": tool.wire_name,
            "description": tool.description,
            "input_schema": tool.input_schema,
        }
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[tool.id] = tool, len(orjson.dumps(shown, default=str))
    return known[1]
