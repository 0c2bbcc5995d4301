"""What the HTTP API is handed: a node, seen from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractContextManager

    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller, Role
    from openfang.core.keys import Question
    from openfang.core.session import Session
    from openfang.core.trace import Chain
    from openfang.edges.api.oauth import Authority
    from openfang.guard.rate import Granted


EDGE = "api"


class Node(Protocol):
    """One node. Everything that an answer may depend on is asked anew: a reload may change it."""

    def recent(self, secret: str, edge: str) -> Caller | None:
        """Return who used this key a moment ago: such a one has no need to sign in."""
        ...

    async def who(self, secret: str, edge: str) -> Caller | None:
        """Return who holds this key, if it is in force and good for this edge."""
        ...

    async def sign_in(self, address: str, secret: str, edge: str) -> Caller:
        """Return who holds this key, or refuse: on record, but for an address of many guesses."""
        ...

    def still(self, caller: Caller, secret: str, edge: str) -> Callable[[], bool]:
        """Give what says whether one who was let in would be so again; it awaits nothing."""
        ...

    def authority(self) -> Authority | None:
        """Say whose access tokens are accepted beside our own keys, if anybody's are."""
        ...

    def anybody(self) -> Caller | None:
        """Return who calls without a key, where the operator allows that."""
        ...

    async def require(self, caller: Caller, *roles: Role) -> None:
        """Refuse, on record, whoever has none of these roles."""
        ...

    async def answer_with(self, question_id: str, token: str, by: str) -> Question:
        """Answer a question with a token that stands in for a key, or refuse on record."""
        ...

    def session(self, caller: Caller, chain: Chain, edge: str = EDGE) -> Session:
        """Let this caller use the node, over this edge."""
        ...

    def charge(self, caller: Caller, work: str) -> Granted:
        """Take the cells of such a request from the caller's rate, or refuse."""
        ...

    def allowance(self, caller: Caller) -> Granted:
        """Say what is left of the caller's rate."""
        ...

    def check_call(self, caller: Caller, work: str = "call") -> None:
        """Refuse a call that its rate would refuse, before its body is read."""
        ...

    def allowance_of_address(self, address: str) -> Granted:
        """Say what is left of the rate of an address."""
        ...

    def charge_address(self, address: str, work: str) -> Granted:
        """Take the cells from the rate of an address, or refuse."""
        ...

    def hosts(self) -> frozenset[str]:
        """Names and addresses under which the node is reached."""
        ...

    def public_origin(self) -> str | None:
        """The origin of `public_url`, if there is one."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the node goes on; else it is ending."""
        ...

    @property
    def state(self) -> str:
        """`ready`, or why no calls are taken."""
        ...

    def now(self) -> int:
        """The time, in nanoseconds since the epoch."""
        ...

    def counted(self, route: str, status: int) -> None:
        """Tell that a request was answered."""
        ...

    async def status(self, caller: Caller) -> dict[str, Any]:
        """Say how the node is; details for who may see them."""
        ...

    def config(self) -> Mapping[str, Any]:
        """Show the configuration in force, without what is secret, and how it came about."""
        ...

    async def reload(self) -> Mapping[str, Any]:
        """Read the configuration anew; a bad one is an error, and the old one stays in force."""
        ...

    async def metrics(self, accept: str) -> tuple[bytes, str]:
        """Write the counters, and say in which format."""
        ...

    def events(
        self, caller: Caller, after: Bookmark | None, still: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Stream what happens, as server-sent events; ends when the node or the key does."""
        ...

    def place(self, caller: Caller) -> AbstractContextManager[None]:
        """Let the caller have one more stream open, of whatever kind, or refuse."""
        ...
