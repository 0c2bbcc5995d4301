"""What this edge is handed: who signed a request, and the server that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.protocols.mcp.messages import Answer, Ask, Failure


class Claim(Protocol):
    """A request as far as its head shows it."""

    @property
    def node(self) -> str:
        """Who signed it."""
        ...

    def check(self, body: bytes) -> None:
        """Refuse another body than the one that was signed."""
        ...


class Lent(Protocol):
    """A server of this node, for another one."""

    @property
    def session(self) -> str:
        """Another one whenever the server was connected anew."""
        ...

    async def ask(self, node: str, ask: Ask, send: Callable[[bytes], None]) -> bytes:
        """Do what a node asks, and write the answer; what is said before goes to `send`."""
        ...

    async def hear(self, send: Callable[[bytes], None]) -> None:
        """Have a node told what changes, until it goes."""
        ...

    def answered(self, node: str, answer: Answer | Failure) -> None:
        """Take a node's answer to a question of the server's."""
        ...


class Lender(Protocol):
    """This node, as the others see it."""

    def claim(self, header: bytes | None, method: str, target: str) -> Claim:
        """Name the living member that signed it, or refuse."""
        ...

    def alive(self, node: str) -> bool:
        """Whether a node is still there."""
        ...

    def lent(self, server: str, term: int) -> Lent:
        """Find a server that runs here, under this very term, or refuse."""
        ...

    async def noted(self, node: str, server: str, term: int, ask: Ask) -> None:
        """Put on record that a call of another node is executed here, before it is."""
        ...
