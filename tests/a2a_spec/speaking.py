"""A2A 1.0 by hand, over both bindings, so that what is on the wire can be seen."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

from tests.faults.daemon import Answered, read
from tests.peers.a2a.house import AGENT

from openfang.core.ids import new_id

if TYPE_CHECKING:
    import http.client
    from collections.abc import Generator, Iterator, Mapping

    from tests.peers.a2a.house import House

BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
MEDIA: Final = {"JSONRPC": "application/json", "HTTP+JSON": "application/a2a+json"}
EVENTS: Final = "text/event-stream"
_PUSHES: Final = "/tasks/{taskId}/pushNotificationConfigs"
# How each operation is asked for: the method of JSON-RPC, or the verb and the path.
OPERATIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "send": ("SendMessage", "POST", "/message:send"),
    "stream": ("SendStreamingMessage", "POST", "/message:stream"),
    "get": ("GetTask", "GET", "/tasks/{id}"),
    "list": ("ListTasks", "GET", "/tasks"),
    "cancel": ("CancelTask", "POST", "/tasks/{id}:cancel"),
    "subscribe": ("SubscribeToTask", "POST", "/tasks/{id}:subscribe"),
    "watch": ("SubscribeToTask", "GET", "/tasks/{id}:subscribe"),
    "push_set": ("CreateTaskPushNotificationConfig", "POST", _PUSHES),
    "push_get": ("GetTaskPushNotificationConfig", "GET", _PUSHES + "/{id}"),
    "push_list": ("ListTaskPushNotificationConfigs", "GET", _PUSHES),
    "push_delete": ("DeleteTaskPushNotificationConfig", "DELETE", _PUSHES + "/{id}"),
    "extended": ("GetExtendedAgentCard", "GET", "/extendedAgentCard"),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of the protocol, as the binding writes it."""

    status: int
    code: int
    message: str
    details: tuple[Mapping[str, Any], ...]
    kind: str

    @property
    def reason(self) -> str:
        """Its name in the specification."""
        named = [one["reason"] for one in self.details if str(one["@type"]).endswith("ErrorInfo")]
        return named[0] if named else ""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Somebody who asks an agent of a node."""

    house: House
    binding: str
    version: str | None = "1.0"
    key: str | None = ""
    agent: str = AGENT
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, **changes: Any) -> Speaker:
        """Somebody who differs in this."""
        return replace(self, **changes)

    @property
    def path(self) -> str:
        return f"/a2a/agents/{self.agent}{'/rest' if self.binding == 'HTTP+JSON' else ''}"

    @property
    def headers(self) -> dict[str, str]:
        signed = (
            {} if self.key is None else {"Authorization": f"Bearer {self.key or self.house.key}"}
        )
        version = {} if self.version is None else {"A2A-Version": self.version}
        return {"Content-Type": MEDIA[self.binding], **version, **signed, **self.more}

    # What is asked

    def request(self, op: str, params: Mapping[str, Any]) -> tuple[str, str, bytes | None]:
        """The verb, the path and the body of a request."""
        method, verb, path = OPERATIONS[op]
        if self.binding == "JSONRPC":
            asked = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
            return "POST", self.path, json.dumps(asked).encode()
        inside = {name: value for name, value in params.items() if f"{{{name}}}" in path}
        rest = {name: value for name, value in params.items() if name not in inside}
        path = path.format(**{name: quote(value, safe="") for name, value in inside.items()})
        if verb == "POST":
            return verb, self.path + path, json.dumps(rest).encode()
        query = urlencode({name: _query(value) for name, value in rest.items()})
        return verb, f"{self.path}{path}{'?' if query else ''}{query}", None

    def raw(self, verb: str, path: str, body: bytes | None) -> Answered:
        with closing(self.house.daemon.connect()) as connection:
            connection.request(verb, path, body, self.headers)
            return read(connection)

    def answer(self, op: str, params: Mapping[str, Any] | None = None) -> Answered:
        """Ask, and give what came back as it is."""
        return self.raw(*self.request(op, params or {}))

    # What comes back

    def ask(self, op: str, params: Mapping[str, Any] | None = None) -> Any:
        """Ask for something that must be granted."""
        answer = self.answer(op, params)
        assert answer.status in {200, 201, 204}, answer.body
        if self.binding == "HTTP+JSON":
            return answer.json if answer.body else None
        body = answer.json
        assert (body["jsonrpc"], body["id"]) == ("2.0", "r1")
        assert "error" not in body, body
        return body["result"]

    def refused(self, op: str, params: Mapping[str, Any] | None = None) -> Failure:
        """Ask for something that must not be granted."""
        return failure(self.binding, self.answer(op, params))

    @contextmanager
    def stream(self, op: str, params: Mapping[str, Any]) -> Generator[Iterator[Any]]:
        """Ask for a stream, and give its events as they come."""
        with closing(self.house.daemon.connect()) as connection:
            connection.request(*self.request(op, params), self.headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.headers.get_content_type() == EVENTS
            yield self._events(response)

    def _events(self, response: http.client.HTTPResponse) -> Iterator[Any]:
        for line in response:
            if line.startswith(b"data:"):
                body = json.loads(line[5:])
                if self.binding == "JSONRPC":
                    assert (body["jsonrpc"], body["id"]) == ("2.0", "r1")
                    body = body["result"]
                yield body

    # In short

    def say(self, text: str, **fields: Any) -> Any:
        """Send a message, and give the task."""
        return self.ask("send", message(text, **fields))["task"]

    def start(self, text: str, **fields: Any) -> Any:
        """The same, without waiting for its end."""
        return self.ask("send", message(text, wait=False, **fields))["task"]

    def told(self, op: str, params: Mapping[str, Any]) -> list[Any]:
        """All events of a stream that ends."""
        with self.stream(op, params) as events:
            return list(events)

    def hold(self, **fields: Any) -> tuple[str, str]:
        """Start a task that goes on until it is let go by this name; give its id and the name."""
        name = new_id("hold")
        task = self.start(f"hold {name}", **fields)
        self.house.begun(name)
        return task["id"], name


def _query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def message(text: str = "say hi", *, wait: bool = True, **fields: Any) -> dict[str, Any]:
    """A request with a message: `configuration` beside it, all else in it."""
    configuration = {"returnImmediately": not wait, **fields.pop("configuration", {})}
    parts = fields.pop("parts", [{"text": text}])
    said = {"messageId": new_id("msg"), "role": "ROLE_USER", "parts": parts, **fields}
    return {"message": said, "configuration": configuration}


def filled(value: Any) -> Any:
    """Leave out what is empty: where a default may be written or not, it means the same."""
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            return {name: filled(one) for name, one in members.items() if one not in ("", [], {})}
        case list():
            return [filled(one) for one in cast("list[Any]", value)]
        case _:
            return value


def failure(binding: str, answer: Answered) -> Failure:
    """Read the error that it must be, and see that it is written as the binding wants it."""
    body = answer.json
    kind = answer.headers["content-type"].partition(";")[0]
    error = body["error"]
    if binding == "JSONRPC":
        assert body["jsonrpc"] == "2.0"
        assert "result" not in body
        details = error.get("data", ())
    else:
        assert error["code"] == answer.status
        details = error.get("details", ())
    assert all("@type" in one for one in details)
    return Failure(answer.status, error["code"], error["message"], tuple(details), kind)
