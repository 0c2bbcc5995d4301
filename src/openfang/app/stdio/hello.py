"""What `openfang mcp` and whoever serves the home say to each other before and around the protocol.

Each is one line with the one key `openfang`, which no message of the protocol has.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.app.environment import incoming_chain
from openfang.core.errors import HomeError, NotFound, OpenFangError
from openfang.core.trace import read_chain
from openfang.core.values import dataclass
from openfang.protocols.hops.words import read_told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.trace import Chain

DAEMON_SOCKET: Final = "daemon.sock"
HOST_SOCKET: Final = "mcp.sock"
READY: Final = b'{"openfang":{"ready":true}}'
FAREWELL: Final = b'{"openfang":{"leaving":true}}'
_KEY: Final = "openfang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a client wants to be served, and as part of whose chain."""

    toolset: str = ""
    agent: str = ""
    traceparent: str = ""
    starry_id: str = ""
    ancestors: str = ""

    @property
    def chain(self) -> Chain | None:
        """The chain that it goes on with, if there is one."""
        chain = read_chain(
            traceparent=self.traceparent,
            starry_id=self.starry_id,
            told=read_told(self.ancestors),
        )
        return chain if chain.shared else None


def hello_of(environ: Mapping[str, str], *, toolset: str, agent: str) -> Hello:
    """Say what is wanted, in the name of whoever started us."""
    chain = incoming_chain(environ)
    return Hello(
        toolset=toolset,
        agent=agent,
        traceparent=chain.traceparent if chain.shared else "",
        starry_id=chain.starry_id or "",
        ancestors=",".join(chain.ancestors),
    )


def hello_line(hello: Hello) -> bytes:
    """Write it down."""
    return orjson.dumps({_KEY: asdict(hello)})


def read_hello(body: bytes) -> Hello | None:
    """Read it; None if it is something else. A newer client may say more."""
    fields = _inside(body)
    if fields is None:
        return None
    texts = {name: fields.get(name, "") for name in Hello.__slots__}
    return Hello(**texts) if all(isinstance(text, str) for text in texts.values()) else None


def refusal_line(error: OpenFangError) -> bytes:
    """Say why somebody is not served."""
    body = {"code": error.code, "message": error.message, "way_out": error.way_out}
    return orjson.dumps({_KEY: {"refused": body}})


def read_refusal(body: bytes) -> OpenFangError | None:
    """Read why one is not served; None if one is."""
    if body == READY:
        return None
    found = (_inside(body) or {}).get("refused")
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    kind = NotFound if fields.get("code") == NotFound.code else HomeError
    message = str(fields.get("message") or "What listens in the home is no node.")
    return kind(message, way_out=str(fields.get("way_out") or "openfang doctor"))


def _inside(body: bytes) -> dict[str, Any] | None:
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    inside: object = cast("dict[str, Any]", value).get(_KEY) if isinstance(value, dict) else None
    return cast("dict[str, Any]", inside) if isinstance(inside, dict) else None
