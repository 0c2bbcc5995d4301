"""A model that says what a test wrote down, on loopback, in the wire formats of real providers.

    with scripted(Says("It is noon."), Fails(429, after="1")) as server:
        ...  # provider = "openai", base_url = server.openai

One answer for each request, in order; what was asked is in `server.asked`. The path decides which
format is spoken: OpenAI's chat completions, Anthropic's messages or Gemini's, streamed or not as
the request wants it. It runs in threads of its own: tests of either colour can use it.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.agents.models import formats

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A call that the model wants made; arguments that are a string go out as they are."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""


@dataclass(frozen=True, slots=True)
class Says:
    """An answer: words, piece by piece where it is streamed, then calls.

    `stop` is `stop`, `length`, `refusal` or `filter`; with calls it is what the provider says then.
    """

    text: str | Sequence[str] = ""
    wants: Sequence[Want] = ()
    stop: str = "stop"
    thinks: str = ""
    tokens: tuple[int, int] = (11, 7)
    dies: bool = False
    """Whether the connection is cut in the middle of the last piece."""
    ends: bool = False
    """Whether the stream ends in good order, and yet without an end."""
    whole: bool = False
    """Whether it is one JSON object, although a stream was asked for."""

    @property
    def pieces(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else list(self.text)


@dataclass(frozen=True, slots=True)
class Fails:
    """An error, as a provider says it; `after` is what `Retry-After` says."""

    status: int
    message: str = "no"
    code: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Garbage:
    """What is no answer at all."""

    body: bytes = b"<html>It works!</html>"
    kind: str = "text/html"
    status: int = 200
    location: str = ""


@dataclass(frozen=True, slots=True)
class Hangs:
    """Nothing, until `until` is set; then the answer, or a connection that is cut."""

    until: Event
    then: Answer | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return [one.get("function", one)["name"] for one in self.body.get("tools", ())]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]


Answer: TypeAlias = Says | Fails | Garbage | Hangs


@dataclass(slots=True)
class Script:
    """What is answered, and what was asked so far."""

    answers: Sequence[Answer | Callable[[Asked], Answer]]
    port: int = 0
    asked: list[Asked] = field(default_factory=list[Asked])
    came: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai(self) -> str:
        """The address for a client that speaks like OpenAI."""
        return f"{self.root}/v1"

    @property
    def anthropic(self) -> str:
        """The address for a client that speaks like Anthropic."""
        return self.root

    @property
    def google(self) -> str:
        """The address for a client that speaks like Gemini."""
        return self.root

    def next(self, asked: Asked) -> tuple[int, Answer]:
        """Note what was asked, and give the number of the answer and the answer."""
        with self._lock:
            number = next(self._numbers)
            self.asked.append(asked)
        self.came.set()
        if number > len(self.answers):
            return number, Fails(418, "the script is over", code="script_is_over")
        found = self.answers[number - 1]
        return number, found(asked) if callable(found) else found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        asked = Asked(self.path, dict(self.headers), json.loads(body or b"{}"))
        number, answer = self.script.next(asked)
        while isinstance(answer, Hangs):
            answer.until.wait(SECONDS)
            if answer.then is None:
                self._cut()
                return
            answer = answer.then
        self._answer(formats.speaker(asked), asked, number, answer)

    def _answer(
        self, speak: Any, asked: Asked, number: int, answer: Says | Fails | Garbage
    ) -> None:
        if isinstance(answer, Garbage):
            headers = {"Location": answer.location} if answer.location else {}
            self._whole(answer.status, answer.kind, answer.body, headers)
        elif isinstance(answer, Fails):
            said = json.dumps(speak.error(answer.status, answer.message, answer.code)).encode()
            headers = {"Retry-After": answer.after} if answer.after else {}
            self._whole(answer.status, "application/json", said, headers)
        elif speak.streams(asked) and not answer.whole:
            self._stream(list(speak.events(answer, number)), cut=answer.dies)
        else:
            whole = json.dumps(speak.whole(answer, number)).encode()
            self._whole(200, "application/json", whole)

    def _whole(
        self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: list[bytes], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if cut:
            self._cut()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
        del format, args


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no error of ours."""


@contextmanager
def scripted(*answers: Answer | Callable[[Asked], Answer]) -> Generator[Script]:
    """Serve these answers until the end of the block."""
    script = Script(answers)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"script": script}))
    script.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
