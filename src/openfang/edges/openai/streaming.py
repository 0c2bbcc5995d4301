"""A completion piece by piece: begun with its first word, ended with the run, or with who hears it.

What refuses a call before it has said anything is no stream, but an answer with its own status.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.core.agents import Ended, Made, Wanted, Words
from openfang.core.errors import CallCancelled, OpenFangError
from openfang.core.telling import told_body, told_name
from openfang.edges.api.exchange import Stream
from openfang.edges.api.serving import go_on
from openfang.edges.openai.faults import fault_body
from openfang.edges.openai.written import read_reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from openfang.core.progress import Listener, Told
    from openfang.core.results import Result
    from openfang.edges.openai.written import Reply, Writer

Make: TypeAlias = "Callable[[Listener], Awaitable[Result]]"
_EVENTS: Final = b"text/event-stream"
_BEAT: Final = b": still at it\n\n"
_MOST_UNREAD: Final = 4_000_000
_BETWEEN: Final = "\n\n"


class Chunks:
    """What was told and not sent yet. `theirs` are the client's own tools.

    What is wanted of those is said at the end, which comes at once. Who does not read at all cannot
    have the rest: no word may be missing in the middle.
    """

    def __init__(self, writer: Writer, theirs: frozenset[str] = frozenset()) -> None:
        self.some = asyncio.Event()
        self.lost = False
        self._writer = writer
        self._theirs = theirs
        self._unread = bytearray(writer.begun())
        self._said = ""
        self._step = ""

    def take(self, told: Told) -> None:
        """Keep something until it is sent."""
        match told:
            case Words(text):
                self._say(text)
            case Wanted(wish) if wish.tool in self._theirs:
                return
            case Ended():
                return
            case _:
                self._put(self._writer.noted({"event": told_name(told), **told_body(told)}))
        if isinstance(told, Made):
            self._step = ""

    def _say(self, text: str) -> None:
        """Say it; what follows on a call begins a paragraph of its own."""
        apart = _BETWEEN if self._said and not self._step else ""
        self._step += text
        self._said += text
        self._put(self._writer.said(apart + text))

    def _put(self, piece: bytes) -> None:
        self.lost = self.lost or len(self._unread) + len(piece) > _MOST_UNREAD
        if not self.lost:
            self._unread += piece
        self.some.set()

    def give(self) -> bytes:
        """All that is here, as it goes over the wire."""
        piece = bytes(self._unread)
        self._unread.clear()
        self.some.clear()
        return piece

    def end(self, reply: Reply) -> bytes:
        """The last of it: what of the answer was not said on the way, and why it ends."""
        if rest := self._unsaid(reply.text):
            self._put(self._writer.said(rest))
        for number, call in enumerate(reply.calls):
            self._put(self._writer.wanted(number, call))
        return self.give() + self._writer.ended(reply)

    def _unsaid(self, text: str) -> str:
        """What of the answer was not said; a space at its end makes no other answer."""
        if self._said.rstrip().endswith(text.strip()):
            return ""
        for said in filter(None, (self._said, self._step)):
            if text.startswith(said):
                return text[len(said) :]
        return _BETWEEN + text if self._said else text

    def fail(self, error: OpenFangError) -> bytes:
        """The last of it, if it went wrong."""
        return self.give() + self._writer.broken(fault_body(error))


async def streamed(make: Make, chunks: Chunks, beat: float) -> Stream:
    """Make a call, and answer when it has told anything; until then it may be refused."""
    call = asyncio.ensure_future(make(chunks.take))
    try:
        await _more(call, chunks, beat)
    except asyncio.CancelledError:
        call.cancel()
        await asyncio.wait((call,))
        raise
    if call.done():
        read_reply(call.result())
    return Stream(pieces=_pieces(call, chunks, beat), content_type=_EVENTS)


async def _pieces(
    call: asyncio.Future[Result], chunks: Chunks, beat: float
) -> AsyncGenerator[bytes]:
    try:
        while not call.done() and not chunks.lost:
            yield chunks.give() or _BEAT
            await _more(call, chunks, beat)
        yield _ending(call, chunks)
    except asyncio.CancelledError:
        call.cancel()
        await asyncio.wait((call,))
        go_on()
        yield _ending(call, chunks)
    finally:
        # Also if nobody hears it any more: then the run ends here.
        call.cancel()
        await asyncio.wait((call,))


async def _more(call: asyncio.Future[Result], chunks: Chunks, beat: float) -> None:
    """Wait for a word or the end, but not for long."""
    word = asyncio.ensure_future(chunks.some.wait())
    try:
        await asyncio.wait((call, word), timeout=beat, return_when=asyncio.FIRST_COMPLETED)
    finally:
        word.cancel()


def _ending(call: asyncio.Future[Result], chunks: Chunks) -> bytes:
    if not call.done():
        return chunks.fail(_too_slow())
    if call.cancelled():
        return chunks.fail(cut_short())
    try:
        return chunks.end(read_reply(call.result()))
    except OpenFangError as error:
        return chunks.fail(error)


def cut_short() -> CallCancelled:
    """Say that a run was ended from outside: it was begun, and nobody may think otherwise."""
    return CallCancelled(
        "The run was ended before it had answered, and may have had an effect.",
        way_out="openfang audit tail shows how far it got",
    )


def _too_slow() -> CallCancelled:
    return CallCancelled(
        f"The client left {_MOST_UNREAD} bytes unread: the run was ended.",
        way_out="read the stream as it comes",
    )
