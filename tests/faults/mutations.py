"""Requests that somebody got wrong: valid ones of every endpoint, and then something is changed.

The same seed gives the same requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from openfang.edges.api.table import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from openfang.edges.api.endpoint import Endpoint

Headers = list[tuple[bytes, bytes]]
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

# Looks at the whole log take longer the longer it is.
_HEAVY = frozenset({"export_audit", "verify_audit", "events", "metrics", "search_audit"})
_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("system_time", {}),
    ("memory_store", {"key": "k", "value": {"a": [1, 2.5, None, True]}}),
    ("memory_recall", {"key": "k"}),
    ("file_write", {"path": "notes/one.txt", "content": "héllo"}),
    ("file_read", {"path": "notes/one.txt"}),
    ("file_list", {"path": "."}),
    ("shell_exec", {"command": ["true"]}),
    ("builtin:web_fetch", {"url": "http://127.0.0.1:1/"}),
    ("no_such_tool", {}),
)
_CONTEXTS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "planning"},
    {"project_id": "default", "task_id": "t1"},
    {"project_id": "another"},
    {"spec_hash": "0" * 64},
    {"run": "r1"},
    {"blacklist": ["fs.write"]},
)
_BODIES: dict[str, Callable[[Random], Any]] = {
    "answer_approval": lambda _: {"answer": "deny", "scope": "once"},
    "freeze_spec": lambda random: {"name": "plan", "content": f"plan {random.random()}"},
    "create_key": lambda random: {
        "name": f"k{random.randrange(10**9)}",
        "role": random.choice(["user", "auditor", "approver"]),
        "ttl_secs": 60,
    },
    "query_audit": lambda _: {"query": "SELECT event_type, payload FROM task_audits LIMIT 3"},
}
_QUERIES = {"after": "3", "limit": "5", "all": "true", "risk": "LOW", "tag": "fs.read"}
_PIECES = (
    b"..", b"%2e%2e", b"%2E%2e%2f", b"%00", b"\0", b"//", b"/", b"%2F", b"%", b"%zz", b"%ff%fe",
    b"%c0%af", b"\xff", b"\xc3\xa9", b"?", b"#", b";", b"&a=b", b" ", b"\t", b"*", b"{}", b"'",
    b'"', b"%0d%0a", b"a" * 9000, b"%F0%9F%98%80", b":", b"@", b"\\",
)  # fmt: skip
_METHODS = (
    b"GET", b"PUT", b"POST", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"get",
    b"QUERY", b"", b"G\0T", b"GET GET", b"X" * 300, b"\xff",
)  # fmt: skip
_VERSIONS = (
    b"HTTP/0.9", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/3", b"HTTP/11", b"http/1.1", b"",
    b"HTTP/1.1 ", b"HTTP/1.1\0", b"ICE/1.0", b"RTSP/1.0",
)  # fmt: skip
_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"Host", b"evil.example"), (b"Host", b""), (b"Host", b"localhost:99999"), (b"Host", b"[::1"),
    (b"Origin", b"http://evil.example"), (b"Origin", b"null"), (b"Origin", b"http://localhost"),
    (b"Authorization", b"Bearer not-a-key"), (b"Authorization", b"Basic YTpi"),
    (b"Authorization", b"Bearer \xff\xfe"), (b"Authorization", b"Bearer"), (b"X-Api-Key", b"x"),
    (b"X-Admin-Token", b"oft_nothing"), (b"Content-Type", b"text/plain"),
    (b"Content-Type", b"application/json; charset=utf-16"), (b"Content-Type", b"\xff"),
    (b"Content-Encoding", b"gzip"), (b"Content-Encoding", b"identity"),
    (b"Expect", b"100-continue"), (b"Expect", b"202-maybe"), (b"Upgrade", b"websocket"),
    (b"Connection", b"Upgrade"),
    (b"Connection", b"keep-alive, close"), (b"Transfer-Encoding", b"chunked"),
    (b"Transfer-Encoding", b"gzip, chunked"), (b"Transfer-Encoding", b"chunked, chunked"),
    (b"Transfer-Encoding", b"\x0bchunked"), (b"Content-Length", b"0"), (b"Content-Length", b"-1"),
    (b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"), (b"traceparent", b"00-zz"),
    (b"X-OpenStarry-Trace-ID", b"trace-1"), (b"X-OpenStarry-Trace-ID", b"\x7f" * 200),
    (b"OpenFang-Chain", b"a,b,c"), (b"OpenFang-Chain", b"a," * 500), (b"Prefer", b"wait=0"),
    (b"Prefer", b"wait=-1; wait=99999999"), (b"Last-Event-ID", b"9" * 40), (b"Accept", b"\xff"),
    (b"Cookie", b"a" * 70_000), (b"X\0Y", b"z"), (b"X Y", b"z"), (b"", b"z"), (b"X", b"a\r\n b"),
    (b"X", b"\0"), (b"Range", b"bytes=0-1"), (b"If-None-Match", b"*"),
    (b"Accept-Encoding", b"gzip"),
)  # fmt: skip
_LENGTHS = (
    b"-5", b"+5", b"0x10", b"1e3", b"", b" ", b"5, 5", b"5, 6", b"99999999999999999999999999",
    b"18446744073709551616", b"10000001", b"abc", b"5 5", b"\xff", b"007",
)  # fmt: skip
_CHUNKS = (
    b"zz\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhel",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"fffffffffffffffff\r\n",
    b"5;" + b"x" * 70_000 + b"\r\nhello\r\n0\r\n\r\n",
    b"0\r\nX-Trailer: " + b"y" * 70_000 + b"\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"2\r\n{}\r\n0\r\nContent-Length: 100\r\n\r\n",
    b"2\r\n{}\r\n0\r\n\r\n",
    b"\r\n\r\n\r\n",
)
_VALUES: tuple[bytes, ...] = (
    b"null", b"true", b"[]", b"{}", b'""', b"0", b"-0", b"1e999", b"-1e-999", b"1" * 400,
    b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"NaN", b"Infinity",
    b'"\\ud800"', b'"\\u0000"', b'"\xff"', b'"' + b"x" * 5000 + b'"', b"[" * 2000,
    b"[" * 400 + b"]" * 400,
    b'{"a":' * 300 + b"1" + b"}" * 300, b'{"a":1,"a":2}', b'"../../etc/passwd"', b'"/etc/passwd"',
    b'"a\\u0000b"', b'"\\u202e"', b"1.7976931348623157e309", b"01",
    b'{"$ref":"file:///etc/passwd"}',
    b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", b"'a'", b"[1,]", b"{,}", b"\0",
)  # fmt: skip


@dataclass(slots=True)
class Draft:
    """A request that can still be changed, part by part."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes = b""
    version: bytes = b"HTTP/1.1"
    length: bytes | None = None
    framed: bool = True

    def wire(self) -> bytes:
        """The request as it is sent."""
        headers = list(self.headers)
        if self.framed and (self.body or self.length is not None):
            length = b"%d" % len(self.body) if self.length is None else self.length
            headers.append((b"Content-Length", length))
        first = b" ".join(part for part in (self.method, self.target, self.version) if part)
        lines = [first, *(b"%b: %b" % header for header in headers), b"", b""]
        return b"\r\n".join(lines) + self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one connection sends, in these pieces. Who hangs up waits for no answer."""

    pieces: tuple[bytes, ...]
    requests: int
    hangs_up: bool
    head_only: bool


@dataclass(slots=True)
class Fuzz:
    """Makes requests for whoever holds this key."""

    key: str
    random: Random
    most: int = 6
    _drafts: list[Endpoint] = field(init=False)

    def __post_init__(self) -> None:
        light = [endpoint for endpoint in ENDPOINTS if endpoint.name not in _HEAVY]
        heavy = [endpoint for endpoint in ENDPOINTS if endpoint.name in _HEAVY]
        calls = [endpoint for endpoint in ENDPOINTS if endpoint.name == "call_tool"]
        self._drafts = [*heavy, *light * 4, *calls * 40]

    def batch(self) -> Batch:
        """Make the next batch: several requests on one connection, and one that must be answered.

        A request for the head alone is asked by itself, since its answer has a length and no body.
        """
        random = self.random
        if random.random() < 0.02:
            draft = self.draft()
            draft.method = b"HEAD"
            draft.headers.append((b"Connection", b"close"))
            return Batch(pieces=(draft.wire(),), requests=1, hangs_up=False, head_only=True)
        count = random.randint(1, self.most)
        data = b"".join(self.request() for _ in range(count))
        hangs_up = random.random() < 0.05
        if hangs_up:
            data = data[: random.randrange(len(data) + 1)]
        else:
            data += HEALTH
        return Batch(pieces=self._cut(data), requests=count, hangs_up=hangs_up, head_only=False)

    def _cut(self, data: bytes) -> tuple[bytes, ...]:
        if self.random.random() < 0.7:
            return (data,)
        at = sorted(self.random.randrange(len(data) + 1) for _ in range(3))
        return tuple(data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True) if a < b)

    def request(self) -> bytes:
        """Make one request: mostly with one thing wrong, at times with none or several."""
        random, draft = self.random, self.draft()
        changes = random.choice((0, 1, 1, 1, 2, 3))
        for _ in range(changes):
            random.choices(_CHANGES, _WEIGHTS)[0](random, draft)
        data = draft.wire()
        return _scratched(random, data) if random.random() < 0.06 else data

    def draft(self) -> Draft:
        """Make a request that is right."""
        random = self.random
        endpoint = random.choice(self._drafts)
        tool, arguments = random.choice(_CALLS)
        name = f"k{random.randrange(10)}"
        names = {"{id}": tool, "{name}": name, "{toolset}": name, "{key}": name}
        path = re.sub(r"{\w+}", lambda found: quote(names[found[0]], safe=""), endpoint.path)
        headers: Headers = [(b"Host", b"localhost")]
        if random.random() < 0.97:
            headers.append((b"Authorization", f"Bearer {self.key}".encode()))
        draft = Draft(endpoint.method.encode(), (path + self._query(endpoint)).encode(), headers)
        if endpoint.body is not None:
            draft.body = json.dumps(self._body(endpoint, arguments)).encode()
            headers.append((b"Content-Type", b"application/json"))
        return draft

    def _query(self, endpoint: Endpoint) -> str:
        known = [name for name in endpoint.query if self.random.random() < 0.4]
        pairs = [f"{name}={_QUERIES.get(name, 'x')}" for name in known]
        return f"?{'&'.join(pairs)}" if pairs else ""

    def _body(self, endpoint: Endpoint, arguments: dict[str, Any]) -> dict[str, Any]:
        if endpoint.name in {"call_tool", "explain_call"}:
            context = self.random.choice(_CONTEXTS)
            return {"arguments": arguments, **({"context": context} if context else {})}
        return _BODIES.get(endpoint.name, lambda _: {})(self.random)


def _method(random: Random, draft: Draft) -> None:
    draft.method = random.choice(_METHODS)


def _target(random: Random, draft: Draft) -> None:
    at = random.randrange(len(draft.target) + 1)
    draft.target = draft.target[:at] + random.choice(_PIECES) + draft.target[at:]


def _other_target(random: Random, draft: Draft) -> None:
    path = draft.target
    draft.target = random.choice(
        (
            b"*",
            b"http://localhost" + path,
            b"http://evil.example" + path,
            b"localhost:1",
            b"/" + path,
        )
    )


def _version(random: Random, draft: Draft) -> None:
    draft.version = random.choice(_VERSIONS)


def _header(random: Random, draft: Draft) -> None:
    draft.headers.insert(random.randrange(len(draft.headers) + 1), random.choice(_HEADERS))


def _replaced_header(random: Random, draft: Draft) -> None:
    new = random.choice(_HEADERS)
    draft.headers = [header for header in draft.headers if header[0].lower() != new[0].lower()]
    draft.headers.append(new)


def _no_header(random: Random, draft: Draft) -> None:
    if draft.headers:
        draft.headers.pop(random.randrange(len(draft.headers)))


def _many_headers(random: Random, draft: Draft) -> None:
    draft.headers += [(b"X-%d" % number, b"y" * random.randrange(900)) for number in range(120)]


def _length(random: Random, draft: Draft) -> None:
    size = len(draft.body)
    lies = (b"%d" % (size + 7), b"%d" % max(0, size - 3), b"%d" % (size + 100_000))
    draft.length = random.choice((*lies, random.choice(_LENGTHS)))


def _chunked(random: Random, draft: Draft) -> None:
    draft.framed = random.random() < 0.1
    draft.headers.append((b"Transfer-Encoding", b"chunked"))
    whole = b"%x\r\n%b\r\n0\r\n\r\n" % (len(draft.body), draft.body)
    draft.body = whole if draft.body and random.random() < 0.5 else random.choice(_CHUNKS)


def _noise(random: Random, draft: Draft) -> None:
    draft.body = random.randbytes(random.choice((1, 20, 500, 5000)))


def _json_value(random: Random, draft: Draft) -> None:
    """Put something else where a value of the body was."""
    places = [
        found.span() for found in re.finditer(rb'"[^"]*"|[0-9.]+|\[\]|{}|null|true', draft.body)
    ]
    start, end = random.choice(places) if places else (0, len(draft.body))
    draft.body = draft.body[:start] + random.choice(_VALUES) + draft.body[end:]


def _json_whole(random: Random, draft: Draft) -> None:
    draft.body = random.choice(_VALUES)


def _large(random: Random, draft: Draft) -> None:
    size = random.choice((70_000, 1_100_000))
    draft.body = b'{"arguments": {"key": "k", "value": "%b"}}' % (b"x" * size)


def _too_large(_: Random, draft: Draft) -> None:
    draft.length = b"11000000"


def _scratched(random: Random, data: bytes) -> bytes:
    """Change, remove or double some bytes anywhere."""
    scratched = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(scratched))
        match random.randrange(3):
            case 0:
                scratched[at] = random.randrange(256)
            case 1:
                del scratched[at : at + random.randint(1, 8)]
            case _:
                scratched[at:at] = scratched[max(0, at - 8) : at]
        if not scratched:
            break
    return bytes(scratched)


_CHANGES: Sequence[Callable[[Random, Draft], None]] = (
    _method, _target, _other_target, _version, _header, _replaced_header, _no_header, _many_headers,
    _length, _chunked, _noise, _json_value, _json_whole, _large, _too_large,
)  # fmt: skip
_WEIGHTS = (8, 20, 3, 3, 14, 14, 4, 1, 3, 6, 4, 24, 8, 0.3, 0.5)
