"""Stands in front of a node that may come and go, under one address, and shows cards in part.

`/cards/seed.json`, `/cards/0.3-JSONRPC.json` and so on name one interface of the node each, so that
whoever reads one speaks that dialect. All else is passed on as it came.
"""

from __future__ import annotations

import http.client
import json
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from tests.faults.daemon import SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

SEED: Final = "seed"
DIALECTS: Final = (SEED, "0.3-JSONRPC", "0.3-HTTP+JSON", "1.0-JSONRPC", "1.0-HTTP+JSON")
_CARDS: Final = "/cards/"
_OF_THE_WAY: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_SHARED: Final = (
    "name",
    "description",
    "version",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
)


@dataclass(slots=True)
class Front:
    """The address that stays, and where the node is now."""

    address: tuple[str, int]
    node: tuple[str, int] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"

    def card(self, dialect: str) -> str:
        """Where the card with this dialect alone is found."""
        return f"{self.url}{_CARDS}{dialect.replace('+', '-')}.json"

    def moved(self, url: str) -> str:
        """The same path here."""
        assert self.node
        return url.replace(f"http://{self.node[0]}:{self.node[1]}", self.url)

    def connect(self) -> http.client.HTTPConnection:
        if self.node is None:
            raise ConnectionError
        return http.client.HTTPConnection(*self.node, timeout=SECONDS)


def _read(front: Front, path: str) -> dict[str, Any]:
    with closing(front.connect()) as connection:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())


def _in_part(front: Front, dialect: str) -> dict[str, Any]:
    if dialect == SEED:
        card = _read(front, "/.well-known/agent.json")
        return {**card, "url": front.moved(card["url"])}
    version, _, binding = dialect.partition("-")
    card = _read(front, "/.well-known/agent-card.json")
    (one,) = [
        one
        for one in card["supportedInterfaces"]
        if (one["protocolVersion"], one["protocolBinding"].replace("+", "-")) == (version, binding)
    ]
    shared = {name: card[name] for name in _SHARED}
    url = front.moved(one["url"])
    if version == "1.0":
        return {**shared, "supportedInterfaces": [{**one, "url": url}]}
    older = {"preferredTransport": one["protocolBinding"], "protocolVersion": version}
    return {**shared, **older, "url": url}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: Front

    def do_GET(self) -> None:
        self.close_connection = True
        try:
            self._card() if self.path.startswith(_CARDS) else self._pass_on()
        except (OSError, http.client.HTTPException):
            """The node is away, or whoever asks is: hang up."""

    do_POST = do_DELETE = do_GET  # noqa: N815 - the library looks them up by these names

    def _card(self) -> None:
        dialect = self.path.removeprefix(_CARDS).removesuffix(".json")
        body = json.dumps(_in_part(self.front, dialect)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kept = {name: one for name, one in self.headers.items() if name.lower() not in _OF_THE_WAY}
        with closing(self.front.connect()) as connection:
            connection.request(self.command, self.path, body or None, kept)
            response = connection.getresponse()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _OF_THE_WAY:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while piece := response.read1():
                self.wfile.write(piece)
                self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        """Keep quiet."""


@contextmanager
def front() -> Generator[Front]:
    """Stand there for as long as it is held."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        handler.front = Front(("127.0.0.1", server.server_port))
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield handler.front
        finally:
            server.shutdown()
            thread.join()
