"""Requests that belong to another node: handed to it whole, and its answer back as it comes.

Only to members that beat, at the address that they gave; with the client's own headers, and a
signature that tells the other node not to hand it on once more.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from openfang.app.cluster.signing import HEADER, PURPOSE, Signing
from openfang.edges.api.watch import Watch
from openfang.edges.mcp.elsewhere import MISDIRECTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.app.cluster.members import Members
    from openfang.app.parts import Parts
    from openfang.edges.api.exchange import Send
    from openfang.edges.api.mount import Came
    from openfang.host.onward import Coming, Onward
    from openfang.storage.members import Member

_LOOK_SECONDS: Final = 1.0
_log = logging.getLogger("openfang.cluster")
# Of one connection, and not of what is sent over it.
_OF_A_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
    | {b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"expect"}
)
# The other node's own are in their place; where a page is from has been checked here.
_NOT_ASKED: Final = _OF_A_CONNECTION | {b"host", b"content-length", b"origin", HEADER}
_NOT_ANSWERED: Final = _OF_A_CONNECTION | {b"date", b"server"}


class Went(Enum):
    """How it went."""

    ANSWERED = auto()
    LOST = auto()
    """It broke after something was sent."""
    REFUSED = auto()
    """Nobody listens there."""
    UNREACHED = auto()
    """Nobody answers there, as far as can be known."""
    MISDIRECTED = auto()
    """The other node has nothing that it belongs to."""


class Passing:
    """Hands requests to other nodes."""

    def __init__(self, parts: Parts, members: Members) -> None:
        self._members = members
        key, me = parts.master.derive(PURPOSE), members.me
        self._signing = Signing(key, me=me, here=me, clock=parts.clock)
        self._onward: Onward | None = None
        self._ready = anyio.Event()
        self._open: dict[anyio.CancelScope, Member] = {}

    async def run(self) -> None:
        """Be ready to, and wait for the answer of none that is dead."""
        # It imports aiohttp, which takes a third of a second.
        onward: Any = await to_thread.run_sync(import_module, "openfang.host.onward")
        async with onward.Onward() as self._onward:
            self._ready.set()
            while True:
                await anyio.sleep(_LOOK_SECONDS)
                for scope in [one for one, who in self._open.items() if self._members.lost(who)]:
                    scope.cancel()

    def passed(self, came: Came) -> bool:
        """Whether another node handed it to us."""
        header = came.headers.get(HEADER)
        if header is None:
            return False
        text, target = header.decode("latin-1"), _target(came)
        self._signing.signer(text, method=came.method, target=target, body=came.body)
        return True

    async def hand(self, came: Came, member: Member) -> Went:
        """Have a member answer; who hangs up meanwhile hangs up there."""
        await self._ready.wait()
        answer, scope = _Answer(came), anyio.CancelScope()
        self._open[scope] = member
        watch = Watch(came.receive)
        try:
            with scope:
                return await self._asked(answer, member)
            return answer.lost(f"{member.node} is gone")
        except anyio.get_cancelled_exc_class():
            if not watch.gone:
                raise
            return Went.ANSWERED
        finally:
            del self._open[scope]
            watch.end()

    async def _asked(self, answer: _Answer, member: Member) -> Went:
        from openfang.host.onward import Broken, Unreached  # noqa: PLC0415 - as above

        assert self._onward is not None  # noqa: S101 - it is ready
        came, target = answer.came, _target(answer.came)
        signed = self._signing.sign(
            to=member.node, method=came.method, target=target, body=came.body
        )
        headers = [*_without(_NOT_ASKED, came.raw), (HEADER, signed.encode())]
        url = member.address.rstrip("/") + target
        try:
            async with self._onward.ask(came.method, url, headers, came.body) as coming:
                if coming.status == MISDIRECTED:
                    return Went.MISDIRECTED
                return await answer.relay(coming)
        except Unreached as error:
            _log.warning("%s cannot be reached at %s: %s", member.node, member.address, error)
            return Went.REFUSED if error.refused else Went.UNREACHED
        except Broken as error:
            return answer.lost(f"{member.node} broke off: {error}")


class _Answer:
    """The answer to a request, as far as it has come."""

    def __init__(self, came: Came) -> None:
        self.came = came
        self._begun = False

    async def relay(self, coming: Coming) -> Went:
        """Pass it on as it comes."""
        send, self._begun = self.came.begin(coming.status), True
        headers = list(_without(_NOT_ANSWERED, coming.headers))
        await send({"type": "http.response.start", "status": coming.status, "headers": headers})
        async for piece in coming.pieces():
            await _body(send, piece, more=True)
        await _body(send, b"", more=False)
        return Went.ANSWERED

    def lost(self, why: str) -> Went:
        """Cut what has begun, so that it is not taken for whole."""
        if self._begun:
            raise ConnectionAbortedError(why)
        _log.warning("A request handed on is lost: %s", why)
        return Went.LOST


async def _body(send: Send, piece: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": more})


def _target(came: Came) -> str:
    return f"{came.path}?{came.query.decode('latin-1')}" if came.query else came.path


def _without(
    names: frozenset[bytes], headers: Sequence[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    return ((name.lower(), value) for name, value in headers if name.lower() not in names)
