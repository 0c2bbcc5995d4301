"""MCP messages over HTTP that somebody got wrong; the same seed gives the same ones."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tests.edges.mcp.talking import BOTH, META, modern_headers, request

if TYPE_CHECKING:
    from random import Random

VERSIONS = ("2026-07-28", "2025-11-25", "2025-03-26", "2024-11-05", "2099-01-01", "", "\xff")
SIMPLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/call", {"name": "system_time", "arguments": {}}),
    ("tools/call", {"name": "no_such_tool", "arguments": {"a": [1]}}),
    ("tools/call", {"name": "mcp_teller_marked", "arguments": {"where": "é"}}),
    ("tools/call", {"name": "mcp_teller_tell", "arguments": {}, "_meta": {"progressToken": 1}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "test://nothing"}),
    ("prompts/get", {"name": "nothing"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {}}),
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": []}),
    ("resources/subscribe", {"uri": "test://nothing"}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
    ("initialize", {"protocolVersion": 7}),
    ("ping", {}),
    ("logging/setLevel", {"level": "loud"}),
    ("notifications/cancelled", {"requestId": 1}),
    ("no/such", {}),
)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, "", "x" * 3000, "\x00", "é", [], [[]], {}, {"a": {"b": []}},
    "2026-07-28", {"_meta": 7}, [1, "a", None],
)  # fmt: skip
RAW = (
    b"", b"{", b"}", b"nul", b"\xff\xfe", b"\x00", b"[" * 3000, b'{"a":1,"a":2}', b"1e999", b"NaN",
    b"[]", b"7", b'"x"', b"\xef\xbb\xbf{}", b'{"id":99999999999999999999999}', b"{}" * 3,
)  # fmt: skip
ELSEWHERE = (
    ("Host", "evil.example"), ("Origin", "http://evil.example"), ("Origin", "null"),
    ("Content-Type", "text/plain"), ("Content-Type", "application/json; charset=x"),
    ("Content-Encoding", "gzip"), ("Authorization", "Bearer nothing"), ("Authorization", "Basic x"),
    ("Accept", "text/html"), ("Accept", "text/event-stream"), ("Accept", "\xff"),
    ("Last-Event-ID", "0-99"), ("traceparent", "00-zz"), ("X-Api-Key", "x"),
)  # fmt: skip
MCP_HEADERS = (
    "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Mcp-Param-Where",
)  # fmt: skip
VALUES = ("", " ", "x", "tools/call", "=?base64?!?=", "=?base64?eA==?=", "é", "0" * 32, "a" * 3000)


@dataclass(slots=True)
class Odd:
    """A maker of messages. `sessions` are those that answers named."""

    random: Random
    key: str
    sessions: list[str] = field(default_factory=list[str])

    def wire(self) -> bytes:
        """The next request, as it is sent."""
        body, headers = self._message()
        method = self.random.choices(["POST", "GET", "DELETE", "PUT"], [92, 3, 3, 2])[0]
        pairs = [(name, value) for name, value in headers if self.random.random() > 0.01]
        if method == "GET":
            pairs.append(("Last-Event-ID", "99-99"))  # as below
        pairs += [("Host", "localhost")] if all(name != "Host" for name, _ in pairs) else []
        path = self.random.choices(["/mcp", "/mcp/x", "/mcp/agents/y"], [96, 2, 2])[0]
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        lines += [f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def _message(self) -> tuple[bytes, list[tuple[str, str]]]:
        random = self.random
        method, params = random.choice(SIMPLE)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        era = random.randrange(3)
        if era == 0:
            params = {**params, "_meta": {**META, **params.get("_meta", {})}}
            headers |= modern_headers(method, {"name": "", "uri": "", **params})
        elif era == 1 and self.sessions:
            session = random.choice(self.sessions)
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        headers.setdefault("Accept", BOTH)
        message: Any = request(method, deepcopy(params), random.randrange(3))
        if method.startswith("notifications/"):
            del message["id"]
        return self._body(message), self._changed(headers)

    def _body(self, message: dict[str, Any]) -> bytes:
        random = self.random
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            self._bend(message)
        params: Any = message.get("params")
        if isinstance(params, dict) and "notifications" in params:
            params["notifications"] = 7  # a stream would have no end
        whole = json.dumps([message] * 2 if random.random() < 0.05 else message).encode()
        match random.randrange(12):
            case 0:
                return random.choice(RAW)
            case 1:
                at = random.randrange(len(whole))
                return whole[:at] + random.randbytes(1) + whole[at + random.randrange(2) :]
            case 2:
                return whole[: random.randrange(len(whole))]
            case _:
                return whole

    def _bend(self, message: dict[str, Any]) -> None:
        """Put something odd somewhere, or take something away."""
        random, place = self.random, message
        while random.random() < 0.6:
            inner = [cast("dict[str, Any]", v) for v in place.values() if isinstance(v, dict) and v]
            if not inner:
                break
            place = random.choice(inner)
        key = random.choice([*place, "id", "method", "params", "_meta"])
        if random.random() < 0.3:
            place.pop(key, None)
        else:
            place[key] = deepcopy(random.choice(ODD))

    def _changed(self, headers: dict[str, str]) -> list[tuple[str, str]]:
        random, pairs = self.random, list(headers.items())
        if random.random() < 0.2:
            name, value = random.choice(ELSEWHERE)
            pairs = [(one, of) for one, of in pairs if one != name] + [(name, value)]
        if random.random() < 0.2:
            pairs.append((random.choice(MCP_HEADERS), random.choice(VALUES)))
        if random.random() < 0.1:
            versions = [(n, v) for n, v in pairs if n != "MCP-Protocol-Version"]
            pairs = [*versions, ("MCP-Protocol-Version", random.choice(VERSIONS))]
        return pairs
