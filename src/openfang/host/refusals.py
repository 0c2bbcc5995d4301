"""What the server answers itself, without the app: RFC 9457 problems on a connection that ends."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, Final

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer of our own."""

    status: int
    code: str
    detail: str
    way_out: str
    retry_after: int = 0

    def answer(
        self, default_headers: Iterable[tuple[bytes, bytes]], *, with_body: bool = True
    ) -> bytes:
        """Give the whole response as it goes over the wire."""
        body = self._body()
        lines = [
            b"HTTP/1.1 %d %s" % (self.status, http.HTTPStatus(self.status).phrase.encode()),
            *(b"%s: %s" % header for header in default_headers),
            b"content-type: application/problem+json",
            b"content-length: %d" % len(body),
            b"connection: close",
            *([b"retry-after: %d" % self.retry_after] if self.retry_after else []),
        ]
        return b"\r\n".join([*lines, b"", body if with_body else b""])

    def _body(self) -> bytes:
        body: dict[str, str | int] = {
            "type": f"urn:openfang:problem:{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "detail": self.detail,
            "rule": self.code,
            "way_out": self.way_out,
        }
        return orjson.dumps(body | ({"retry_after": self.retry_after} if self.retry_after else {}))


class Refused(Exception):  # noqa: N818 - it reads as what it is
    """Raised from a parser's callback, it ends the request with this answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


REQUEST_TIMEOUT: Final = Refusal(
    status=408,
    code="request_timeout",
    detail="The request did not arrive in time",
    way_out="send the whole request without pauses",
)
URI_TOO_LONG: Final = Refusal(
    status=414,
    code="uri_too_long",
    detail="The address in the request is longer than 8192 bytes",
    way_out="send large values in the body",
)
HEAD_TOO_LARGE: Final = Refusal(
    status=431,
    code="head_too_large",
    detail="The head of the request has more than 65536 bytes or 100 headers",
    way_out="send fewer or shorter headers",
)
INTERNAL: Final = Refusal(
    status=500,
    code="internal",
    detail="The request failed for a reason that stands in the log of the node",
    way_out="ask the operator of the node to read its log",
)
NO_UPGRADE: Final = Refusal(
    status=400,
    code="no_upgrade",
    detail="This server speaks HTTP/1.1 and changes to no other protocol",
    way_out="send the request without Upgrade, and never CONNECT",
)
OVERLOADED: Final = Refusal(
    status=503,
    code="overloaded",
    detail="The server has as many connections as it may have",
    way_out="try again later, and use a connection more than once",
    retry_after=1,
)
STOPPING: Final = Refusal(
    status=503,
    code="stopping",
    detail="The server is stopping",
    way_out="try again later",
    retry_after=5,
)


def malformed(reason: str) -> Refusal:
    """Refuse what two servers could read in two ways."""
    return Refusal(
        status=400,
        code="bad_request",
        detail=f"The request is not well-formed HTTP/1.1: {reason}",
        way_out="send a request as RFC 9112 has it",
    )
