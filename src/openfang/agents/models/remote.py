"""A provider's model, found and asked anew each time: its library is loaded when it is needed."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from anyio import to_thread

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from openfang.agents.models.providers import Endpoint
    from openfang.core.agents import Prompt, Said


class Asks(Protocol):
    """Speaks with providers."""

    def answer(self, endpoint: Endpoint, prompt: Prompt) -> AsyncGenerator[Said]:
        """Ask one model once; `ModelFailed` if it does not answer."""
        ...

    async def sees(self, endpoint: Endpoint) -> bool:
        """Whether a model can be shown pictures, as far as is known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Asks once. `find` says how it is reached, and may block; `library` is opened once."""

    name: str
    find: Callable[[], Endpoint]
    library: Callable[[], Awaitable[Asks]]
    pace: Callable[[], Awaitable[None]]

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the provider does."""
        endpoint = await to_thread.run_sync(self.find)
        library = await self.library()
        await self.pace()
        async with aclosing(library.answer(endpoint, prompt)) as answer:
            async for said in answer:
                yield said

    async def sees(self) -> bool:
        """Whether it can be shown pictures, as far as is known."""
        endpoint = await to_thread.run_sync(self.find)
        return await (await self.library()).sees(endpoint)
