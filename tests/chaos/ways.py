"""The ways to the node's tools: each makes one call after the other, and says how it went."""

from __future__ import annotations

import json
import select
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.chaos.ledger import OK, TAKEN, Answer
from tests.chaos.node import TOOL, tool_of
from tests.faults.daemon import SECONDS, read
from tests.faults.dialects import RPC1, Sending, state_of
from tests.faults.tasks import Peer
from tests.faults.test_tasks_killed import FINAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPConnection

    from tests.chaos.node import Node
    from tests.faults.daemon import Answered, Daemon
    from tests.faults.test_tasks_killed import Known

_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_GREETING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "storm", "version": "1"},
}
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_MIXED_UP = "mixed up"


class Way(ABC):
    """One caller. `rest` lets go of what it holds while nobody calls."""

    name: str

    @abstractmethod
    def call(self, server: str, text: str) -> Answer:
        """Have a server say this. Without an answer it raises what the connection raised."""

    def rest(self) -> None:  # noqa: B027 - some hold nothing
        """Let go of connections."""

    def close(self) -> None:
        """End it."""
        self.rest()


class OnConnection(Way):
    """Asks on a connection that is kept, and follows the daemon when that is begun anew."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._held: tuple[Daemon, HTTPConnection] | None = None

    def ask(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Answered:
        daemon = self.node.daemon
        if self._held is None or self._held[0] is not daemon:
            self.rest()
            self._held = daemon, daemon.connect()
        connection = self._held[1]
        try:
            connection.request("POST", path, json.dumps(body), daemon.headers(headers))
            return read(connection)
        except Exception:
            self.rest()
            raise

    def rest(self) -> None:
        held, self._held = self._held, None
        if held:
            held[1].close()


class ByApi(OnConnection):
    """`/api/tools/{id}/call`."""

    name = "api"

    def call(self, server: str, text: str) -> Answer:
        body = {"arguments": {"text": text}}
        return _answer(self.ask(f"/api/tools/{tool_of(server)}/call", body), text)


class ByAgent(OnConnection):
    """A message to an agent that makes the call."""

    name = "agent"

    def call(self, server: str, text: str) -> Answer:
        body = {"message": f"{tool_of(server)} {text}"}
        return _answer(self.ask("/api/agents/courier/message", body), text)


class ByMcp(OnConnection):
    """`/mcp` in the current revision: each request stands alone."""

    name = "mcp"

    def call(self, server: str, text: str) -> Answer:
        params = {**_call(server, text), "_meta": _META}
        headers = {
            **_ACCEPT,
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": _wire_name(server),
        }
        return _spoken(self.ask("/mcp", _request("tools/call", params), headers), text)


class BySession(OnConnection):
    """`/mcp` in an older revision, in a session that goes with the daemon."""

    name = "session"

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._session: tuple[Daemon, str] | None = None

    def call(self, server: str, text: str) -> Answer:
        headers = {**_ACCEPT, "MCP-Protocol-Version": "2025-11-25"}
        if self._session is None or self._session[0] is not self.node.daemon:
            daemon = self.node.daemon
            answered = self.ask("/mcp", _request("initialize", _GREETING), headers)
            if answered.status != 200:
                return _spoken(answered, text)
            self._session = daemon, answered.headers["mcp-session-id"]
        headers["Mcp-Session-Id"] = self._session[1]
        return _spoken(self.ask("/mcp", _request("tools/call", _call(server, text)), headers), text)


class ByBridge(Way):
    """`openfang mcp`, a process that passes on what it reads on its input."""

    name = "bridge"

    def __init__(self, node: Node) -> None:
        home = node.home
        self._numbers = count(1)
        self.process = subprocess.Popen(
            home.command("mcp", "--toolset", "all"),
            env=home.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._rest = b""

    def call(self, server: str, text: str) -> Answer:
        number = next(self._numbers)
        params = {**_call(server, text), "_meta": _META}
        assert self.process.stdin
        self.process.stdin.write(
            json.dumps(_request("tools/call", params, number)).encode() + b"\n"
        )
        while (message := self._line()).get("id") != number:
            continue
        return _message(message, text)

    def _line(self) -> dict[str, Any]:
        stdout = self.process.stdout
        assert stdout
        while b"\n" not in self._rest:
            assert select.select([stdout], [], [], SECONDS)[0], "the bridge does not answer"
            more = stdout.read(65_536)
            assert more, "the bridge has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()
        self.process.wait(SECONDS)


class ByTask(Way):
    """A2A: a message whose task makes the call, waited for, left alone or watched."""

    name = "task"

    def __init__(self, node: Node, known: Known) -> None:
        self._node = node
        self._known = known
        self._numbers = count()

    def call(self, server: str, text: str) -> Answer:
        peer = Peer(self._node.daemon)
        number = next(self._numbers)
        said = Sending(agent="courier", text=f"{tool_of(server)} {text}", waits=number % 3 > 0)
        if number % 3 == 2:
            return self._watched(peer, said)
        answered = peer.ask(RPC1.send(said))
        if RPC1.code(answered):
            return _fault(answered)
        return self._told(peer, RPC1.task(answered))

    def _watched(self, peer: Peer, said: Sending) -> Answer:
        assert RPC1.stream
        asked = RPC1.stream(said)
        answered = peer.ask(asked)  # until the daemon ends the stream
        if not answered.headers["content-type"].startswith("text/event-stream"):
            return _fault(answered)
        lines = answered.body.splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
        if not events or "error" in events[0]:
            return Answer(_rule(events[0]["error"]) if events else "unanswered", str(events))
        return self._told(peer, events[0]["result"]["task"], look=True)

    def _told(self, peer: Peer, task: dict[str, Any], *, look: bool = False) -> Answer:
        name = task["id"]
        self._known.acknowledged[name] = "courier"
        if state_of(task) not in FINAL and not look:
            return TAKEN
        answered = peer.of_task("get", name, "courier")
        if RPC1.code(answered):
            return _fault(answered)
        state = RPC1.state(answered)
        if state in FINAL:
            self._known.ended[name] = answered.body
        if state == "failed":
            return Answer(state, str(RPC1.task(answered)["status"]))
        return OK if state == "completed" else TAKEN


def _wire_name(server: str) -> str:
    return f"mcp_{server}_{TOOL}"


def _call(server: str, text: str) -> dict[str, Any]:
    return {"name": _wire_name(server), "arguments": {"text": text}}


def _request(method: str, params: object, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _answer(answered: Answered, text: str) -> Answer:
    """What the API says: a problem, a failure, or the words that it was given."""
    if answered.status != 200:
        return Answer(answered.rule, answered.json["detail"])
    body = answered.json
    if failure := answered.headers.get("openfang-failure", ""):
        return Answer(failure, str(body["content"]))
    found = body["response"] if "response" in body else body["content"][0]["text"]
    if body.get("outcome", "ok") != "ok" or body.get("ending", "answered") != "answered":
        return Answer("error", str(body))
    return OK if found == text else Answer(_MIXED_UP, f"{text} was asked for, not {found}")


def _spoken(answered: Answered, text: str) -> Answer:
    """What `/mcp` says: an envelope, unless the door is shut."""
    if answered.headers["content-type"] == "application/problem+json":
        return Answer(answered.rule, answered.json["detail"])
    return _message(_last(answered), text)


def _last(answered: Answered) -> dict[str, Any]:
    """The message that is the answer: in a stream the last one, behind news of changes."""
    if answered.headers["content-type"].startswith("text/event-stream"):
        lines = answered.body.splitlines()
        return json.loads([line for line in lines if line.startswith(b"data: ")][-1][6:])
    return answered.json


def _message(message: dict[str, Any], text: str) -> Answer:
    if "error" in message:
        return Answer(_rule(message["error"]), message["error"]["message"])
    found = message["result"]["content"][0]["text"]
    if message["result"].get("isError"):
        return Answer("is_error", found)
    return OK if found == text else Answer(_MIXED_UP, f"{text} was asked for, not {found}")


def _fault(answered: Answered) -> Answer:
    with suppress(AssertionError):
        return Answer(answered.rule, answered.json["detail"])
    return Answer(_rule(answered.json["error"]), answered.json["error"]["message"])


def _rule(error: dict[str, Any]) -> str:
    """The rule of a JSON-RPC error where it has one, else its number."""
    match error:
        case {"data": {"rule": str(rule)}}:
            return rule
        case _:
            return str(error["code"])
