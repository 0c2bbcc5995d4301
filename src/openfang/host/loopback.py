"""HTTP/1.1 to our own daemon, for commands: asyncio streams and httptools, bounded, kept alive.

Small on purpose: a command that talks to a daemon pays for no HTTP library. Only plain `http://` to
an address that the home itself wrote down; what others serve is reached by `host.http`.
"""

from __future__ import annotations

import asyncio
import re
import select
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.host.answer import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from types import TracebackType

MOST_BYTES: Final = 64 << 20
_LONGEST_HEAD: Final = 65_536
_CHUNK: Final = 65_536
_KEPT: Final = 32
_SAFE: Final = frozenset({"GET"})
_METHOD = re.compile(r"\A(?!HEAD\Z|CONNECT\Z)[A-Z]{1,16}\Z")
_PATH = re.compile(r"\A/[\x21-\x7e]*\Z")
_NAME = re.compile(r"\A[A-Za-z0-9-]{1,128}\Z")
_VALUE = re.compile(r"\A[\t\x20-\x7e]*\Z")


class DaemonUnreachable(HomeError):  # noqa: N818 - it reads as what it is
    """The daemon did not answer, or not as it should; `sent` says whether it may have acted."""

    code = "daemon_unreachable"

    def __init__(self, message: str, *, way_out: str = "openfang status", sent: bool) -> None:
        super().__init__(message, way_out=way_out)
        self.sent = sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer. The names of its headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """An answer whose body is read as it comes."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def read(self) -> bytes:
        """Read all of it, for an answer that turned out to be a refusal."""
        body = bytearray()
        async for chunk in self.chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                break
        return bytes(body[:MOST_BYTES])


class Loopback:
    """A client of one daemon. Requests side by side take a connection each; idle ones are kept."""

    def __init__(
        self,
        base_url: str,
        *,
        connect_seconds: float = 1.0,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._host, self._port = _address(self.base_url)
        self._connect_seconds = connect_seconds
        self._headers = tuple(headers)
        self._idle: list[_Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections that are kept."""
        while self._idle:
            self._idle.pop().close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        timeout: float | None,  # noqa: ASYNC109 - a deadline with words of its own
    ) -> Reply:
        """Send a request and read the whole answer, at most 64 MB."""
        message = self._message(method, path, body, headers)
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout):
                return await self._answer(method, message, progress)
        except TimeoutError:
            raise self._late(timeout, sent=progress.sent) from None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        timeout: float | None = None,  # noqa: ASYNC109 - a deadline with words of its own
    ) -> AsyncGenerator[Streamed]:
        """Read the answer as it comes, on a connection of its own; its head within `timeout`."""
        message = self._message(method, path, body, headers)
        with ExitStack() as at_last:
            try:
                async with asyncio.timeout(timeout):
                    connection = await self._connect()
                    at_last.callback(connection.close)
                    connection.send(message)
                    answer = await connection.read_head()
            except TimeoutError:
                raise self._late(timeout, sent=True) from None
            except _Unanswered as error:
                raise self._lost() from error
            chunks = connection.chunks(answer)
            yield Streamed(status=answer.status, headers=answer.headers, chunks=chunks)

    async def _answer(self, method: str, message: bytes, progress: _Progress) -> Reply:
        kept = self._take()
        if kept is not None:
            try:
                return await self._exchange(kept, message, progress)
            except _Unanswered as error:
                # The daemon may have closed it while the request was on its way, or have acted.
                if method not in _SAFE:
                    raise self._lost() from error
        try:
            return await self._exchange(await self._connect(), message, progress)
        except _Unanswered as error:
            raise self._lost() from error

    async def _exchange(
        self, connection: _Connection, message: bytes, progress: _Progress
    ) -> Reply:
        with ExitStack() as unless_kept:
            unless_kept.callback(connection.close)
            progress.sent = True
            connection.send(message)
            answer = await connection.read_head()
            body = await connection.read_body(answer)
            if answer.keep and len(self._idle) < _KEPT:
                unless_kept.pop_all()
                self._idle.append(connection)
        return Reply(status=answer.status, headers=answer.headers, body=body)

    def _take(self) -> _Connection | None:
        """Take a kept connection that nobody has closed meanwhile."""
        while self._idle:
            connection = self._idle.pop()
            if connection.quiet:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_seconds):
                reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            why = _reason(error, self._connect_seconds)
            raise DaemonUnreachable(
                f"The daemon at {self.base_url} does not answer: {why}.", sent=False
            ) from error
        return _Connection(self.base_url, reader, writer)

    def _message(
        self, method: str, path: str, body: bytes | None, headers: Sequence[tuple[str, str]]
    ) -> bytes:
        if not _METHOD.match(method) or not _PATH.match(path):
            raise ValueError(f"{method} {path!r} is no request")
        host = f"[{self._host}]" if ":" in self._host else self._host
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{self._port}"]
        lines += [_line(name, value) for name, value in (*self._headers, *headers)]
        if body is not None or method not in _SAFE:
            lines.append(f"Content-Length: {len(body or b'')}")
        return "\r\n".join((*lines, "", "")).encode() + (body or b"")

    def _late(self, seconds: float | None, *, sent: bool) -> DaemonUnreachable:
        return DaemonUnreachable(
            f"The daemon at {self.base_url} did not answer within {seconds:g} s.", sent=sent
        )

    def _lost(self) -> DaemonUnreachable:
        return DaemonUnreachable(
            f"The daemon at {self.base_url} closed the connection without an answer.",
            way_out="openfang status; what was done is in: openfang audit tail",
            sent=True,
        )


class _Unanswered(Exception):  # noqa: N818 - what happened
    """The connection ended before the first byte of an answer."""


@dataclass(slots=True)
class _Progress:
    """Whether any of the request may have reached the daemon."""

    sent: bool = False


@dataclass(slots=True)
class _Connection:
    """One connection to the daemon, used for one request at a time."""

    base_url: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _reset: bool = False

    @property
    def quiet(self) -> bool:
        """Whether it is open and silent: an idle one with anything to read has been ended."""
        if self.reader.at_eof() or self.writer.is_closing():
            return False
        handle = select.poll()
        handle.register(self.writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not handle.poll(0)

    def send(self, message: bytes) -> None:
        """Hand a request to the kernel, as fast as it takes it; reading the answer waits for it."""
        self.writer.write(message)

    def close(self) -> None:
        self.writer.transport.abort()

    async def read_head(self) -> Answer:
        """Read up to the first byte of the body."""
        answer = Answer()
        received = 0
        while not answer.begun:
            data = await self._read()
            if not data and not received:
                raise _Unanswered
            if not data:
                raise self._broken("the head of its answer ends in the middle")
            received += len(data)
            self._feed(answer, data)
            if not answer.begun and received > _LONGEST_HEAD:
                raise self._broken(f"its answer begins with more than {_LONGEST_HEAD} bytes")
        return answer

    async def read_body(self, answer: Answer) -> bytes:
        """Read all of the body, within bounds."""
        while not answer.complete and max(answer.size, answer.announced) <= MOST_BYTES:
            await self._read_more(answer)
        if max(answer.size, answer.announced) > MOST_BYTES:
            raise self._broken(f"its answer has more than {MOST_BYTES} bytes")
        return answer.take()

    async def chunks(self, answer: Answer) -> AsyncGenerator[bytes]:
        """Read the body piece by piece."""
        while True:
            if piece := answer.take():
                yield piece
            if answer.complete:
                return
            await self._read_more(answer)

    async def _read_more(self, answer: Answer) -> None:
        data = await self._read()
        if data:
            self._feed(answer, data)
        elif answer.until_closed and not self._reset:
            answer.complete = True
        else:
            raise self._broken("its answer ends in the middle")

    async def _read(self) -> bytes:
        try:
            return await self.reader.read(_CHUNK)
        except OSError:
            self._reset = True
            return b""

    def _feed(self, answer: Answer, data: bytes) -> None:
        try:
            answer.feed(data)
        except ValueError as error:
            raise self._broken(f"it does not speak HTTP ({error})") from error

    def _broken(self, why: str) -> DaemonUnreachable:
        return DaemonUnreachable(
            f"What answers at {self.base_url} is no daemon of ours, or it ended: {why}.", sent=True
        )


def _address(base_url: str) -> tuple[str, int]:
    parts = urlsplit(base_url)
    if parts.scheme != "http" or not parts.hostname or parts.port is None or parts.path:
        raise ValueError(f"{base_url!r} is not http://host:port")
    return parts.hostname, parts.port


def _line(name: str, value: str) -> str:
    if not _NAME.match(name) or not _VALUE.match(value):
        raise HomeError(
            f"The header {name[:40]!r} would hold what HTTP does not carry.",
            way_out="a key is plain text in one line: look at OPENFANG_API_KEY",
        )
    return f"{name}: {value}"


def _reason(error: OSError, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {seconds:g} s"
    return (error.strerror or str(error)).lower()
