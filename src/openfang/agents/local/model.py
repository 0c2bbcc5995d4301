"""A model file that is asked: the process that serves it is held meanwhile."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from openfang.agents.local.serving import Serving
    from openfang.agents.models.providers import Endpoint
    from openfang.agents.models.remote import Asks
    from openfang.core.agents import Prompt, Said

_LAST_WORD: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """Asks a model file once: `held` gives the process that serves it."""

    name: str
    held: Callable[[], AbstractAsyncContextManager[Serving]]
    library: Callable[[], Awaitable[Asks]]
    pace: Callable[[], Awaitable[None]]
    learn: Callable[[Endpoint], None]

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Answer as the model does."""
        library = await self.library()
        await self.pace()
        async with self.held() as serving:
            assert serving.endpoint is not None  # noqa: S101 - it serves
            await to_thread.run_sync(self.learn, serving.endpoint)
            try:
                async with aclosing(library.answer(serving.endpoint, prompt)) as answer:
                    async for said in answer:
                        yield said
            except ModelFailed as failure:
                raise await _explained(failure, serving) from failure

    async def sees(self) -> bool:
        """Whether it can be shown pictures: the file of a model alone cannot."""
        return False


async def _explained(failure: ModelFailed, serving: Serving) -> ModelFailed:
    """Say that the process ended, where that is why the connection was lost."""
    if failure.trouble is not Trouble.LOST:
        return failure
    with anyio.move_on_after(_LAST_WORD):
        await serving.over.wait()
    return again(serving.failure) if serving.failure is not None else failure


def again(failure: ModelFailed) -> ModelFailed:
    """The same failure for one more who hears of it."""
    return ModelFailed(failure.message, trouble=failure.trouble, way_out=failure.way_out)
