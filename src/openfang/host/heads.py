"""Reads the head of a request strictly: whatever two servers could read in two ways is refused.

Most of it llhttp refuses by itself; here is what it lets pass, and the limits it does not have.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from openfang.host.refusals import (
    HEAD_TOO_LARGE,
    NO_UPGRADE,
    URI_TOO_LONG,
    Refusal,
    Refused,
    malformed,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.config import Config
    from uvicorn.server import ServerState

HEAD_BYTES: Final = 65_536
_HEADERS: Final = 100
_URL_BYTES: Final = 8192
_SPACE: Final = b" \t"


class Phase(Enum):
    """What is read now."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    # Nothing more is taken; answers are still owed.
    DEAF = auto()
    # Nothing is owed; the client has only to hang up.
    LEAVING = auto()


# As names of the module: the lookup of a member costs as much as a header.
IDLE: Final = Phase.IDLE
HEAD: Final = Phase.HEAD
BODY: Final = Phase.BODY
DEAF: Final = Phase.DEAF
LEAVING: Final = Phase.LEAVING


class HeadReader(HttpToolsProtocol):
    """The parser's callbacks as far as a head goes. A callback refuses by raising `Refused`."""

    # In slots: beyond thirty attributes a dictionary of them becomes slow.
    __slots__ = ("fed", "hosts", "midway", "phase")

    # As uvicorn has them while there is a connection and a request.
    parser: httptools.HttpRequestParser  # type: ignore[reportIncompatibleVariableOverride]
    app: ASGI3Application  # type: ignore[reportIncompatibleVariableOverride]
    url: bytes

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.phase: Phase = IDLE
        # Bytes given to the parser since the head began, then since the body began.
        self.fed = 0
        # Whether the head began in the middle of a read, so that `fed` does not have all of it.
        self.midway = False
        self.hosts = 0

    def begin_head(self, *, midway: bool = False) -> None:
        """Take what comes now for a new request."""
        self.phase = HEAD
        self.fed = 0
        self.midway = midway

    def on_message_begin(self) -> None:
        """Begin a scope."""
        if self.phase is IDLE:
            self.begin_head(midway=True)
        self.hosts = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        self.url += url
        if len(self.url) > _URL_BYTES:
            raise Refused(URI_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that comes after the body is dropped, for the app has read its own."""
        if self.phase is not HEAD:
            return
        name = name.lower()
        value = value.strip(_SPACE)
        if name == b"host":
            self.hosts += 1
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            raise Refused(malformed("Transfer-Encoding other than chunked"))
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def complete_head(self) -> str:
        """Check the head as a whole, complete the scope, and give the version of HTTP."""
        if len(self.headers) > _HEADERS or self._is_too_large():
            raise Refused(HEAD_TOO_LARGE)
        if self.parser.should_upgrade():
            raise Refused(NO_UPGRADE)
        version = self.parser.get_http_version()
        if version != "1.1" or self.hosts != 1:
            self._check_version(version)
        self._complete_scope(version)
        return version

    def _is_too_large(self) -> bool:
        if self.fed <= HEAD_BYTES and not self.midway:
            return False
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        return size + len(self.url) > HEAD_BYTES

    def _check_version(self, version: str) -> None:
        match version:
            case "1.1":
                raise Refused(malformed("There must be one Host header"))
            case "1.0" if self.hosts <= 1 and self._header(b"transfer-encoding") is None:
                return
            case _:
                raise Refused(malformed(f"This is not the way of HTTP/{version}"))

    def _complete_scope(self, version: str) -> None:
        target = httptools.parse_url(self.url)
        if self.url[0] != ord("/") and not self._is_ours():
            raise Refused(malformed("The target is not on the host of the Host header"))
        scope = self.scope
        path = target.path.decode("ascii")
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = target.path
        scope["query_string"] = target.query or b""

    def _is_ours(self) -> bool:
        host = self._header(b"host") or b""
        return self.url == b"*" or self.url.lower().startswith(b"http://%s/" % host.lower())

    def _header(self, wanted: bytes) -> bytes | None:
        return next((value for name, value in self.headers if name == wanted), None)


def refusal_of(error: httptools.HttpParserError) -> Refusal | None:
    """Read what the parser found, or what a callback of ours raised; None is a mistake of ours."""
    if not isinstance(error, httptools.HttpParserCallbackError):
        return malformed(str(error))
    cause = error.__context__
    if isinstance(cause, Refused):
        return cause.refusal
    if isinstance(cause, httptools.HttpParserInvalidURLError):
        return malformed("Invalid request target")
    return None
