"""One request on its way through the library: who asks what of which agent, in which version."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Final, cast

from openfang.core.values import dataclass
from openfang.edges.a2a.aside import Aside
from openfang.edges.a2a.sdk import ServerCallContext, ServerCallContextBuilder
from openfang.edges.a2a.versions import HEADER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

    from openfang.core.tasks import Seen, Tasks
    from openfang.core.trace import Chain
    from openfang.edges.a2a.ports import House
    from openfang.edges.api.mount import Came

KEY: Final = "openfang"


@dataclass(slots=True, kw_only=True)
class Asked:
    """A request that was understood so far. `reached` says whether anything was done about it.

    `taken` is what the library does not read of it, `given` what it does not write of the answer.
    """

    house: House
    came: Came
    agent: str
    version: str
    extensions: frozenset[str] = frozenset()
    reached: bool = False
    taken: Aside = field(default_factory=Aside)
    given: Aside = field(default_factory=Aside)
    _watching: AsyncGenerator[Seen] | None = field(default=None)

    def tasks(self, chain: Chain | None = None) -> Tasks:
        """What the caller can do with tasks; who uses it pays for it further in."""
        self.reached = True
        return self.house.tasks(self.came.caller, chain or self.came.chain)

    def watches(self, watching: AsyncGenerator[Seen]) -> AsyncGenerator[Seen]:
        """Note what is watched: the library's own streams forget to close what they read."""
        self._watching = watching
        return watching

    def context(self) -> ServerCallContext:
        """Show it as the library hands requests on."""
        return ServerCallContext(
            state={KEY: self, "headers": {HEADER: self.version}},
            requested_extensions=set(self.extensions),
        )

    async def leave(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            async with aclosing(self._watching):
                self._watching = None


class Contexts(ServerCallContextBuilder):
    """Hands a request through to the handler."""

    def build(self, request: Request) -> ServerCallContext:
        """Make the context of one request."""
        return asked_by(request).context()


def asked_by(request: Request) -> Asked:
    """Find what stands behind a request that the library sees."""
    return cast("Asked", request.scope[KEY])


def asked_in(context: ServerCallContext) -> Asked:
    """Find the request again."""
    return cast("Asked", context.state[KEY])
