"""What a server sent until it hung up, read strictly: whole answers, and nothing between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_FINAL = 200
_WITHOUT_BODY = frozenset({204, 304})
EVENTS = "text/event-stream"


class BrokenError(AssertionError):
    """It is not HTTP, or only half of it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def problem(self) -> Any:
        """The problem that it must be, with what every problem has."""
        assert self.kind == "application/problem+json", self
        body = json.loads(self.body)
        assert body["status"] == self.status, self
        assert {"type", "title", "detail", "rule", "way_out"} <= set(body), self
        return body


def replies(data: bytes, *, head_only: bool = False) -> Iterator[Reply]:
    """Read one answer after the other; a stream of events has no end, and is the last."""
    at = 0
    while at < len(data):
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            raise BrokenError(data[at:][:500])
        status, headers = _head(data[at:end])
        at = end + 4
        if status < _FIRST_FINAL:
            continue
        if headers.get("content-type", "").startswith(EVENTS):
            yield Reply(status, headers, data[at:])
            return
        body = b""
        if not head_only and status not in _WITHOUT_BODY:
            body, at = _body(data, at, headers)
        yield Reply(status, headers, body)


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, _ = first.split(" ", 2)
    if version != "HTTP/1.1":
        raise BrokenError(head[:500])
    pairs = (line.split(": ", 1) for line in lines)
    return int(status), {name.lower(): value for name, value in pairs}


def _body(data: bytes, at: int, headers: dict[str, str]) -> tuple[bytes, int]:
    if "content-length" in headers:
        end = at + int(headers["content-length"])
        if end > len(data):
            raise BrokenError(data[at:][:500])
        return data[at:end], end
    body = bytearray()
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            raise BrokenError(data[at:][:500])
        size = int(data[at:line], 16)
        at = line + 2 + size + 2
        if at > len(data):
            raise BrokenError(data[line:][:500])
        if not size:
            return bytes(body), at
        body += data[line + 2 : at - 2]
