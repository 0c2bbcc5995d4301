"""Requests to a daemon, and what its answers mean: a value, or the error that it stands for."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import orjson

from openfang.app.remote.problems import read_failure, read_problem
from openfang.core.errors import InvalidArguments
from openfang.core.telling import read_told
from openfang.core.values import dataclass
from openfang.host.loopback import MOST_BYTES, DaemonUnreachable, Reply
from openfang.protocols.mcp.sse import EventReader
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Generator,
        Mapping,
        Sequence,
    )

    from openfang.core.progress import Listener
    from openfang.host.loopback import Loopback, Streamed
    from openfang.protocols.mcp.sse import Event

T = TypeVar("T")
SECONDS: Final = 60.0
_OK: Final = range(200, 300)
_PROBLEM: Final = "application/problem+json"
_EVENTS: Final = "text/event-stream"
_ENDINGS: Final = frozenset({"result", "failure", "problem"})
_JSON: Final = ("Content-Type", "application/json")


@dataclass(frozen=True, slots=True)
class Asking:
    """One daemon, asked by a client that sends the caller's key and chain."""

    client: Loopback

    async def get(
        self,
        path: str,
        read: Callable[[Any], T],
        *,
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - the client's own
    ) -> T:
        """Read something."""
        return self.read(await self.reply("GET", path, timeout=timeout), read)

    async def act(self, method: str, path: str, read: Callable[[Any], T], body: object = None) -> T:
        """Change something, and read what came of it."""
        with in_doubt("What was asked for was sent: it may have been done", "openfang audit tail"):
            return self.read(await self.reply(method, path, body), read)

    async def reply(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Sequence[tuple[str, str]] = (),
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - the client's own
    ) -> Reply:
        """Ask; what the daemon answers in place of a result is raised."""
        content = None if body is None else _dumped(body)
        return self._checked(
            await self.client.request(
                method, path, body=content, headers=(_JSON, *headers), timeout=timeout
            )
        )

    async def told(
        self,
        path: str,
        body: object,
        told: Listener,
        *,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Ask for something that may tell how far it has got before it is answered."""
        accept = ("Accept", f"application/json, {_EVENTS}")
        async with self.client.stream(
            "POST", path, body=_dumped(body), headers=(_JSON, accept, *headers)
        ) as answer:
            if answer.headers.get("content-type") == _EVENTS:
                return self._checked(await self._last_event(answer, told))
            body_read = await answer.read()
            return self._checked(
                Reply(status=answer.status, headers=answer.headers, body=body_read)
            )

    async def _last_event(self, answer: Streamed, told: Listener) -> Reply:
        reader = EventReader()
        async for chunk in answer.chunks:
            for event in reader.feed(chunk):
                with self._understood():
                    if event.name in _ENDINGS:
                        return _ended(answer.status, event)
                    one = read_told(event.name, orjson.loads(event.data))
                told(one)
        raise self._unreadable("a stream without an end")

    def _checked(self, reply: Reply) -> Reply:
        if reply.status not in _OK or reply.headers.get("content-type") == _PROBLEM:
            self._refuse(reply.status, reply.headers, reply.body)
        if code := reply.headers.get("openfang-failure"):
            raise self.read(reply, lambda failure: read_failure(code, failure))
        return reply

    async def lines(self, path: str, read: Callable[[Any], T]) -> AsyncIterator[T]:
        """Read JSON lines as they come."""
        async with self._streamed(path) as chunks:
            async for line in _lines(chunks):
                with self._understood():
                    value = read(orjson.loads(line))
                yield value

    async def events(self, path: str, read: Callable[[str, Any], T]) -> AsyncGenerator[T]:
        """Read events as they come, by name and body; what is wrong in the middle is raised."""
        reader = EventReader(MOST_BYTES)
        async with self._streamed(path) as chunks:
            async for chunk in chunks:
                with self._understood():
                    events = reader.feed(chunk)
                for event in events:
                    if event.name in _ENDINGS:
                        self._checked(self._read_ending(event))
                        return
                    with self._understood():
                        value = read(event.name, orjson.loads(event.data))
                    yield value

    def _read_ending(self, event: Event) -> Reply:
        with self._understood():
            return _ended(_OK.start, event)

    async def pieces(self, path: str) -> AsyncGenerator[bytes]:
        """Read an answer as it comes."""
        async with self._streamed(path) as chunks:
            async for chunk in chunks:
                yield chunk

    @asynccontextmanager
    async def _streamed(self, path: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self.client.stream("GET", path, timeout=SECONDS) as answer:
            if answer.status not in _OK:
                self._refuse(answer.status, answer.headers, await answer.read())
            yield answer.chunks

    def read(self, reply: Reply, read: Callable[[Any], T]) -> T:
        """Read an answer."""
        with self._understood():
            return read(orjson.loads(reply.body))

    def _refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> NoReturn:
        if headers.get("content-type") != _PROBLEM:
            raise self._unreadable(f"status {status}")
        with self._understood():
            error = read_problem(orjson.loads(body))
        raise error

    @contextmanager
    def _understood(self) -> Generator[None]:
        try:
            yield
        except (LookupError, TypeError, ValueError) as error:
            raise self._unreadable(f"{type(error).__name__}: {error}") from error

    def _unreadable(self, what: str) -> DaemonUnreachable:
        return DaemonUnreachable(
            f"The daemon at {self.client.base_url} answers what OpenFang {__version__} cannot read"
            f" ({what}).",
            way_out="openfang stop, then openfang start: it may be of another version",
            sent=True,
        )


@contextmanager
def in_doubt(doubt: str, look: str) -> Generator[None]:
    """Of what was sent and not answered, say that it may have been done, and how to find out."""
    try:
        yield
    except DaemonUnreachable as error:
        if not error.sent:
            raise
        raise DaemonUnreachable(
            f"{error.message} {doubt}.", way_out=f"openfang status, then: {look}", sent=True
        ) from error


def _ended(status: int, event: Event) -> Reply:
    """What the last event would have been as an answer of its own."""
    headers: dict[str, str] = {}
    match event.name:
        case "failure":
            headers["openfang-failure"] = orjson.loads(event.data)["structured"]["code"]
        case "problem":
            headers["content-type"] = _PROBLEM
        case _:
            pass
    return Reply(status=status, headers=headers, body=event.data)


def _dumped(body: object) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise InvalidArguments(
            f"The arguments are not JSON: {error}", rule="arguments_not_json"
        ) from None


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest
