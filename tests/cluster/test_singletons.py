"""A server that must run once: on one node at a time, whatever becomes of that one."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cluster.conftest import MakeCluster
    from tests.cluster.house import Cluster, Node

pytestmark = pytest.mark.requirement("C13.3")
SERVER = Path(__file__).with_name("once.py")
WAITING = ("linger", "hold")
"""One that may be made again, and one that may not."""
CONFIG = """
[[mcp_servers]]
name = "once"
transport = {{ type = "stdio", command = {python}, args = [{server}, {folder}] }}
singleton = true
trust = "high"
risk = "LOW"
fs_read = [{tests}]
fs_write = [{folder}]
"""


@dataclass(frozen=True, slots=True)
class Once:
    """What the server noted of its lives and its calls."""

    folder: Path

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    @property
    def config(self) -> str:
        words = {"python": sys.executable, "server": str(SERVER), "folder": str(self.folder)}
        return CONFIG.format(
            tests=json.dumps(str(SERVER.parent)),
            **{name: json.dumps(word) for name, word in words.items()},
        )

    def alone(self) -> None:
        """See that no life began before the one before it was over."""
        assert [one for one in self.lines("lives") if "NOT" in one] == []


@pytest.fixture
def once(tmp_path: Path) -> Once:
    folder = tmp_path / "once"
    folder.mkdir()
    return Once(folder)


def until(seconds: float, met: Callable[[], Any]) -> Any:
    """Look until it is so."""
    ends = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.05)
    return found


def shown(node: Node) -> dict[str, Any]:
    with node.client as client:
        return client.get("/api/mcp/servers/once").json()


def where(node: Node) -> str:
    """Name the node that has it, as this one knows it, once it is reached there."""
    found = shown(node)
    return (found["connected"] and found["node"]) or ""


def said(answer: Any) -> str:
    return answer["content"][0]["text"]


def called(node: Node, tool: str = "add", note: str = "") -> Any:
    return node.call(f"mcp:once:{tool}", note=note)


def connected(cluster: Cluster) -> str:
    """Wait until all nodes reach it, and name the one that has it."""
    for node in cluster.nodes:
        until(100, lambda node=node: where(node))
        first = called(node, note=f"first-{node.name}")
        assert first.get("outcome") == "ok", (first, shown(node))
    return where(cluster.nodes[0])


class Client:
    """An MCP client of one node, with a person who likes green."""

    def __init__(self, node: Node) -> None:
        self.heard = list[dict[str, Any]]()
        self._http = node.client
        self._http.headers["Accept"] = "application/json, text/event-stream"
        hello: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = self._http.post("/mcp", json=_message("initialize", hello, 1))
        assert answer.status_code == 200, answer.text
        self._http.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        self._http.headers["MCP-Protocol-Version"] = "2025-11-25"
        self._http.post("/mcp", json=_message("notifications/initialized", {}))
        self._http.post("/mcp", json=_message("logging/setLevel", {"level": "info"}, 2))

    @property
    def headers(self) -> Mapping[str, str]:
        """What its session is known by."""
        named = ("Accept", "Mcp-Session-Id", "MCP-Protocol-Version")
        return {name: self._http.headers[name] for name in named}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, tool: str, *, leave_at: str = "", **arguments: str) -> Any:
        """Call a tool, answer what it asks, and hang up at the method that is named."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        asked = _message("tools/call", params, 3)
        with self._http.stream("POST", "/mcp", json=asked) as answer:
            for line in answer.iter_lines():
                if not line.startswith("data: {"):
                    continue
                message = json.loads(line.removeprefix("data: "))
                self.heard.append(message)
                if message.get("method") == leave_at:
                    cancel = {"requestId": 3, "reason": "enough"}
                    self._http.post("/mcp", json=_message("notifications/cancelled", cancel))
                    return None
                if message.get("method") == "elicitation/create":
                    given = {"action": "accept", "content": {"color": "green"}}
                    said = {"jsonrpc": "2.0", "id": message["id"], "result": given}
                    self._http.post("/mcp", json=said)
                if "result" in message:
                    return message["result"]
        return None


def _message(method: str, params: dict[str, Any], number: int | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if number is None else {**message, "id": number}


def test_everything_passes_between_a_client_and_a_server_at_another_node(
    make_cluster: MakeCluster, once: Once
) -> None:
    with make_cluster("ab", once.config) as cluster:
        holder = cluster[connected(cluster)]
        other = next(node for node in cluster.nodes if node is not holder)
        assert len(once.lines("lives")) == 1
        assert said(called(holder)) == said(called(other))
        with Client(other) as asking:
            there_and_back(asking, once)
        called(other, "grow")
        for node in cluster.nodes:
            until(100, lambda node=node: called(node, "grown").get("outcome") == "ok")
        on_record(other, holder)
        nobody_else_comes_in(other, holder)


def test_a_lazy_one_is_begun_once_by_any_node_and_what_is_idempotent_is_made_again_when_that_dies(
    make_cluster: MakeCluster, once: Once
) -> None:
    with make_cluster("abc", f"{once.config}lazy = true\n") as cluster:
        assert once.lines("lives") == []
        for node in reversed(cluster.nodes):
            answer = called(node, note=node.name)
            assert answer.get("outcome") == "ok", answer
        assert len(once.lines("lives")) == 1
        (holder,) = {where(node) for node in cluster.nodes}
        other = next(node for node in cluster.nodes if node.name != holder)
        with ThreadPoolExecutor(2) as calls:
            again, not_again = (calls.submit(called, other, tool, tool) for tool in WAITING)
            until(100, lambda: {f"{tool} {tool}" for tool in WAITING} <= set(once.lines("calls")))
            cluster.kill(holder)
            (once.folder / "go").touch()
            assert again.result().get("outcome") == "ok", again.result()
            assert "may have been" in str(not_again.result())
        made = Counter(once.lines("calls"))
        assert (made["linger linger"], made["hold hold"]) == (2, 1), made
        once.alone()


def there_and_back(asking: Client, once: Once) -> None:
    """See that questions, progress and messages come, and that a cancelled call is cancelled."""
    answered = asking.call("mcp_once_ask")
    assert json.loads(answered["content"][0]["text"])["content"] == {"color": "green"}
    (once.folder / "go").touch()
    assert asking.call("mcp_once_wait", note="quick")["content"][0]["text"]
    told = [message.get("method") for message in asking.heard]
    assert {"notifications/progress", "notifications/message"} <= set(told), asking.heard
    (once.folder / "go").unlink()
    asking.call("mcp_once_wait", note="long", leave_at="notifications/progress")
    until(100, lambda: "cancelled long" in once.lines("calls"))


def on_record(other: Node, holder: Node) -> None:
    """See that a call stands in the chain of its own node, and in that of who executed it."""
    call = called(other, note="recorded")["call_id"]
    sql = f"SELECT node, event, payload FROM audit WHERE call_id = '{call}'"  # noqa: S608 - our own
    rows = other.cli.sql(sql)
    found = {(row["node"], row["event"]): row["payload"] for row in rows}
    own = {event for node, event in found if node == other.name}
    assert {"tool_invocation_start", "tool_invocation_end"} <= own
    assert {event for node, event in found if node == holder.name} == {"call_served"}
    served = json.loads(found[holder.name, "call_served"])
    assert (served["node"], served["server"], served["asked"]) == (other.name, "once", "add")


def nobody_else_comes_in(other: Node, holder: Node) -> None:
    """See that no key opens what is for other nodes, and a signature nothing but one request."""
    asked = _message("tools/list", {}, 1)
    path = "/api/cluster/calls?server=once&term=1"
    with holder.client as client:
        for headers in ({}, {"Authorization": ""}, {"OpenFang-Member": f"{other.name};1;2;3;4"}):
            answer = client.post(path, json=asked, headers=headers)
            assert (answer.status_code, answer.json()["rule"]) == (403, "member_signature")
