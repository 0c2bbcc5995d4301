"""A daemon in a process of its own, and those who come to it, each with a key of its own."""

from __future__ import annotations

import itertools
import json
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.daemon import NO_LIMITS, SECONDS, Daemon, Home, make_home, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from tests.faults.daemon import Answered

TESTS = Path(__file__).parents[1]
PEERS = TESTS / "sources" / "mcp" / "peers"
SEEDS = TESTS / "data" / "seeds"
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody with a key."""

    daemon: Daemon
    key: str

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answered:
        own = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return self.daemon.ask(method, path, body, own)

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> Answered:
        """Call a tool over HTTP; what else is named is the context."""
        body = {"arguments": arguments or {}, "context": context}
        return self.ask("POST", f"/api/tools/{tool}/call", body, headers)

    def explain(self, tool: str) -> Any:
        return self.ask("POST", f"/api/tools/{tool}/explain", {"arguments": {}}).json

    def mcp(self, method: str, params: Mapping[str, Any] | None = None, at: str = "/mcp") -> Any:
        """Ask over MCP, by a post that stands alone."""
        asked = {"jsonrpc": "2.0", "id": next(_NUMBERS), "method": method, "params": params or {}}
        return self.ask("POST", at, asked).json

    def use(self, name: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> Any:
        """Call a tool over MCP."""
        params = {"name": name, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
        return self.mcp("tools/call", params)

    def tools(self, **narrowed: str) -> dict[str, Any]:
        """The tools that it sees, by id."""
        query = "&".join(f"{key}={value}" for key, value in narrowed.items())
        return {one["id"]: one for one in self.ask("GET", f"/api/tools?{query}").json["tools"]}

    def wire_names(self, at: str = "/mcp") -> list[str]:
        return [tool["name"] for tool in self.mcp("tools/list", at=at)["result"]["tools"]]


@dataclass(frozen=True, slots=True)
class House(Guest):
    """The node and its administrator."""

    def guest(self, name: str, **fields: Any) -> Guest:
        """Somebody with a new key."""
        made = self.ask("POST", "/api/keys", {"name": name, **fields})
        assert made.status == 201, made.body
        return Guest(self.daemon, made.json["secret"])

    def records(self, **having: Any) -> list[dict[str, Any]]:
        """What is on record and has this, oldest first: payload and context as one."""
        sql = "SELECT event, call_id, context, payload FROM audit ORDER BY seq"
        found: list[dict[str, Any]] = []
        for event, call, context, payload in self.daemon.home.rows(sql):
            row = {**json.loads(context), **json.loads(payload), "event": event, "call": call}
            found += [row] if having.items() <= row.items() else []
        return found

    def log(self) -> list[Any]:
        """What the daemon has logged."""
        lines = self.daemon.home.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def connected(self, *names: str) -> None:
        """Wait until these servers are there."""
        until(lambda: all(self.health().get(name) == "healthy" for name in names))

    def configure(self, text: str) -> None:
        """Put another configuration in force."""
        file = self.daemon.home.path / "config.toml"
        other = file.with_suffix(".new")
        other.write_text(text)
        other.replace(file)
        assert self.ask("POST", "/api/config/reload", {}).status == 200

    @property
    def configuration(self) -> str:
        return (self.daemon.home.path / "config.toml").read_text()

    def health(self) -> dict[str, str]:
        return self.ask("GET", "/api/mcp/health").json


def until(seen: Callable[[], object]) -> None:
    """Look until it is so: from outside nothing is announced."""
    ends = time.monotonic() + SECONDS
    while not seen():
        assert time.monotonic() < ends
        time.sleep(0.02)


def traced(number: int, **more: str) -> dict[str, str]:
    """The headers of a call that belongs to a run."""
    return {"traceparent": f"00-{number:032x}-{1:016x}-01", **more}


def server(
    name: str, *tools: str, script: Path = PEERS / "errands.py", keys: str = "", more: str = ""
) -> str:
    """A server over stdio that runs errands, outside of a sandbox: its keys, and its tables."""
    args = json.dumps(["-I", "-S", str(script), *tools])
    return (
        f'[[mcp_servers]]\nname = "{name}"\nsandbox = "off"\n{keys}\n'
        f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n{more}\n'
    )


@contextmanager
def house(
    folder: Path, *config: str, files: Mapping[str, str] | None = None, again: bool = False
) -> Generator[House]:
    """Serve a home with this configuration and these files; `again`: one that is there."""
    text = "\n".join((*config, NO_LIMITS))
    home = Home(folder / "home") if again else make_home(folder / "home")
    for name, content in {"config.toml": text, **(files or {})}.items():
        (home.path / name).parent.mkdir(parents=True, exist_ok=True)
        (home.path / name).write_text(content)
    with serving(home) as daemon:
        yield House(daemon, daemon.key)
