"""An edge that is mounted beside the API: it is handed what the shared checks have let in."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from openfang.core.calls import Caller
from openfang.core.values import value
from openfang.edges.api.exchange import send_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.core.errors import OpenFangError, Rejected
    from openfang.core.trace import Chain
    from openfang.edges.api.exchange import Answer, Headers, Receive, Scope, Send
    from openfang.edges.api.node import Node

NOBODY: Final = Caller(id="nobody")


@value
class Came:
    """A request from a known caller. `still` says whether that one would be let in again.

    What is public is asked by `NOBODY`, where everybody else must show a key.

    `raw` are the headers as they came, of which `headers` has each name once. `begin` notes that an
    answer is on its way, and gives what sends it; `left` says what is left of the caller's rate.
    `enter` finds who holds a key that was not in the headers, or refuses on record.
    """

    node: Node
    caller: Caller
    chain: Chain
    method: str
    path: str
    query: bytes
    headers: Headers
    raw: Sequence[tuple[bytes, bytes]]
    body: bytes
    receive: Receive
    begin: Callable[[int], Send]
    left: Callable[[], tuple[tuple[bytes, bytes], ...]]
    still: Callable[[], bool]
    enter: Callable[[str], Awaitable[Caller]]

    async def answer(self, answer: Answer) -> None:
        """Answer with a whole."""
        head = self.method == "HEAD"
        await send_answer(self.begin(answer.status), answer, self.left(), head=head)


class Mount(Protocol):
    """An edge under paths of its own. `edge` is its name, which keys are scoped to."""

    edge: ClassVar[str]

    def route(self, path: str) -> str:
        """Name what is at this path, for the counters; nothing if that is not its own."""
        ...

    def public(self, route: str, *, signed: bool) -> bool:
        """Whether no key is asked for there; `signed` says whether the request has one."""
        ...

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say in its own words why what was sent is not taken in."""
        ...

    def fault(self, error: OpenFangError) -> Answer:
        """Say in its own words why a request ends here, whoever found it out."""
        ...

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        ...


class Fellows(Protocol):
    """The edge for other nodes of the same cluster, who are known by their signature alone."""

    def route(self, path: str) -> str:
        """Name what is at this path, for the counters; nothing if that is not its own."""
        ...

    async def serve(
        self, scope: Scope, receive: Receive, headers: Headers, begin: Callable[[int], Send]
    ) -> None:
        """Answer one request, or refuse whoever has not signed it."""
        ...


class Pages(Mount, Protocol):
    """The edge for people with a browser, which names its holder by a cookie and not by a key."""

    def asked(self, path: str, headers: Headers) -> str:
        """Name the page that a browser asks for; nothing to whoever is no browser."""
        ...

    async def secret(self, headers: Headers) -> str | None:
        """Return the key that the browser signed in with, if it did."""
        ...
