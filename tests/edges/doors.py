"""Every way into a node that serves, read from its own tables: addresses, and methods behind them.

A route that is new is here by itself. What it needs to be asked properly, a body or the name of
something that exists, is filled in from a `Scene`.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from tests.edges.live import Reply, live
from tests.edges.mcp.talking import BOTH, META, modern_headers, request
from tests.edges.parcels import extension_parcel, skill_parcel

from openfang.edges.a2a import places, seed_words
from openfang.edges.a2a.edge import A2aEdge
from openfang.edges.a2a.versions import HEADER, METHODS, V03
from openfang.edges.api.endpoint import Access
from openfang.edges.mcp import http as mcp
from openfang.edges.mcp.http import McpEdge
from openfang.edges.openai import edge as openai
from openfang.edges.openai.edge import OpenAiEdge
from openfang.guard.rate import Quota

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

    from openfang.core.ports import Clock
    from openfang.edges.a2a.routes import Routes
    from openfang.storage.database import Database

EXTENSION = "counting"
PARCEL, DIGEST = extension_parcel(EXTENSION)
SKILL = "reading"
SKILL_PARCEL, SKILL_DIGEST = skill_parcel(SKILL)
CANARY = "the-owner-alone-knows-this"
AGENT, TOOL = "helper", "mcp:demo:write"
CONFIG = """
[a2a]
enabled = true
primary_agent = "helper"
publish = ["helper"]

[[a2a.external_agents]]
name = "elsewhere"
url = "http://127.0.0.1:9/"

[[mcp_servers]]
name = "waiting"
enabled = false
transport = { type = "stdio", command = "no-such-program-is-here" }

[toolsets.writing]
tools = ["mcp:demo:*"]
"""
_MANIFEST = 'name = "helper"\ndescription = "Helps"\n[capabilities]\ntools = []\n'
_GROUP = re.compile(r"\(\?P<(\w+)>[^)]+\)")
_NO_LIMIT = Quota(cells_per_minute=1_000_000_000, burst=1_000_000_000)
# What the node writes down of itself: the log of what was refused, and who runs.
_OF_THE_NODE = frozenset({"audit", "checkpoints", "processes", "sqlite_stat1", "sqlite_sequence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One request that means something: the address, and what is sent there."""

    edge: str
    route: str
    method: str
    path: str
    access: str = "key"
    does: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def __str__(self) -> str:
        return " ".join(filter(None, (self.method, self.route, self.does)))


@dataclass(frozen=True, slots=True)
class Scene:
    """A node, and what its administrator keeps there; each is named where an address wants one."""

    node: Live
    demo: Demo
    task: str
    session: str
    question: str
    result: str
    talks: Mapping[str, str]

    async def knock(self, door: Door, key: str | None, **more: str) -> Reply:
        """Ask; of a stream only the head."""
        node, sent = self.node, {} if door.body is None else {"json": door.body}
        headers = {**node.headers(key), **door.headers, **more}
        async with node.web.request(
            door.method, node.at(door.path), headers=headers, **sent
        ) as response:
            stays = response.headers.get("Content-Type") == "text/event-stream"
            body = b"" if stays else await response.read()
            return Reply(response.status, response.headers, body)

    async def state(self) -> dict[str, Any]:
        """All that the node keeps but for its log, and how many calls came through."""
        return await to_thread.run_sync(self._state)

    def _state(self) -> dict[str, Any]:
        parts = self.node.app.parts
        home = parts.home.path
        kept = ("agents", "extensions", "skills")
        below = {one for folder in kept for one in (home / folder).rglob("*")}
        files = {home / "config.toml", *below, *home.glob("secrets*")}
        return {
            **_tables(self.node.app.file),
            "files": {str(one): one.read_bytes() for one in files if one.is_file()},
            "calls": self.demo.source.reached,
        }


def _tables(database: Database) -> dict[str, Any]:
    listed = database.read_now("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = sorted({name for (name,) in listed} - _OF_THE_NODE)
    return {name: database.read_now(f"SELECT * FROM {name}") for name in names}  # noqa: S608 - its own


@asynccontextmanager
async def scene(folder: Path, demo: Demo, clock: Clock | None = None) -> AsyncGenerator[Scene]:
    """Serve a node in which there is something behind every address; no limit is in the way."""
    await to_thread.run_sync(_write_agent, folder)
    async with live(folder, config=CONFIG, sources=[demo.source], clock=clock) as node:
        node.doors.failing = _NO_LIMIT
        for path, body in (
            ("/api/keys", {"name": "victim"}),
            ("/api/specs", {"name": "plan", "content": CANARY}),
            ("/api/extensions", {"archive_base64": PARCEL, "origin": CANARY}),
            ("/api/skills", {"archive_base64": SKILL_PARCEL, "origin": CANARY}),
        ):
            assert (await node.post(path, body)).status == 201
        await node.ask("PUT", "/api/secrets/token", json={"value": CANARY})
        sent = {"agent": AGENT, "message": CANARY}
        task = (await node.post("/api/a2a/tasks", sent)).json
        await node.post(f"/api/agents/{AGENT}/message", {"message": CANARY})
        held = (await node.get("/api/sessions")).json["sessions"]
        large = (await node.call("mcp:demo:large", {"size": 60_000})).json
        asked = await node.call("mcp:demo:deploy", {"text": CANARY})
        assert asked.status == 202, asked.body
        [cut] = re.findall(r"openfang://results/([^\]\s]+)", str(large["content"]))
        talks = {route: await _talk(node, route) for route in mcp.ROUTES}
        yield Scene(node, demo, task["id"], held[0]["id"], asked.json["approval"], cut, talks)


async def _talk(node: Live, route: str) -> str:
    """Begin a session of the administrator's, and give its number."""
    hello = request("initialize", _MCP_PARAMS["initialize"])
    path = route.replace("{name}", AGENT).replace("{toolset}", "writing")
    return (await node.post(path, hello, headers={"Accept": BOTH})).headers["Mcp-Session-Id"]


def _write_agent(home: Path) -> None:
    folder = home / "agents" / AGENT
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text(_MANIFEST)


async def all_doors(told: Scene) -> list[Door]:
    """List every way into the node that is served, edge by edge."""
    found = list(_of_api(told))
    for mount in told.node.served.app.mounts:
        match mount:
            case McpEdge():
                found += _of_mcp(told)
            case A2aEdge():
                found += _of_a2a(told, (await mount._current())._routes)
            case OpenAiEdge():
                found += _of_openai(told)
            case _:
                raise AssertionError(f"no table of {mount} is read here")
    return found


def _of_api(told: Scene) -> Iterator[Door]:
    for _, endpoint in told.node.served.app._routes:
        path = _filled(endpoint.path, told)
        body = None if endpoint.body is None else BODIES.get(endpoint.path, {})
        yield Door(
            edge="api",
            route=endpoint.path,
            method=endpoint.method,
            path=path,
            access=endpoint.access.value,
            body=body,
        )


def _of_mcp(told: Scene) -> Iterator[Door]:
    handler = told.node.served.handler
    for route, methods in mcp.ROUTES.items():
        there = partial(Door, edge="mcp", route=route, path=_filled(route, told))
        for method in sorted(set(methods.split(", ")) - {"POST"}, reverse=True):
            headers = {"Mcp-Session-Id": told.talks[route], "Accept": "text/event-stream"}
            yield there(method=method, headers=headers)
        for does in handler._handshake:
            asked = request(does, _MCP_PARAMS.get(does, {}))
            yield there(method="POST", does=f"{does} (older)", body=asked)
        for does in handler._modern:
            params = _MCP_PARAMS.get(does, {})
            asked = request(does, {**params, "_meta": META})
            headers = modern_headers(does, params)
            yield there(method="POST", does=does, body=asked, headers=headers)


def _of_openai(told: Scene) -> Iterator[Door]:
    said = {"model": AGENT, "messages": [{"role": "user", "content": "hi"}]}
    for route, methods in openai.ROUTES.items():
        path = route.replace("{model}", AGENT)
        there = partial(Door, edge="openai", route=route, path=_filled(path, told))
        for method in methods.split(", "):
            yield there(method=method, body=said if method == "POST" else None)


def _of_a2a(told: Scene, rest: Routes) -> Iterator[Door]:
    for route, methods in places.ROUTES.items():
        there = partial(Door, edge="a2a", route=route, path=_filled(route, told))
        access = "public" if route in places.PUBLIC | places.PUBLISHED else "key"
        if route in places.ENVELOPED:
            yield from _of_rpc(told, there, seed=route != places.AGENT)
            continue
        body = _SENT if route == places.SEND else None
        for method in methods.split(", "):
            yield there(method=method, access=access, body=body)
    yield from _of_rest(told, rest)


def _of_rpc(told: Scene, there: Callable[..., Door], *, seed: bool) -> Iterator[Door]:
    seeds = {word for name, word in vars(seed_words).items() if name in _SEEDS}
    versions = {**({"seed": seeds} if seed else {}), **METHODS}
    for version, words in versions.items():
        for does in sorted(words):
            params = _sent(version) if does in _SENDING else {"id": told.task, "name": told.task}
            yield there(
                method="POST",
                does=f"{does} ({version})",
                body=request(does, params),
                headers={} if version == "seed" else {HEADER: version},
            )


def _of_rest(told: Scene, rest: Routes) -> Iterator[Door]:
    for version, lines in ((V03, rest._older), ("1.0", rest._current)):
        for method, pattern, _ in lines:
            below = _GROUP.sub(r"{\1}", pattern.pattern.strip("^$")).replace("\\", "")
            path = _filled(f"/a2a/agents/{{name}}/rest{below}", told)
            yield Door(
                edge="a2a",
                route=f"/a2a/agents/{{name}}/rest{below}",
                method=method,
                path=path,
                does=version,
                body=_sent(version) if method == "POST" else None,
                headers={HEADER: version},
            )


def _sent(version: str) -> dict[str, Any]:
    """A message, in the words of each dialect."""
    parts = {"seed": [{"type": "text", "text": "hi"}], V03: [{"kind": "text", "text": "hi"}]}
    role = "ROLE_USER" if version == "1.0" else "user"
    said = {"messageId": "m", "role": role, "parts": parts.get(version, [{"text": "hi"}])}
    return {"message": said}


_SENT = {"params": _sent("seed")}
_SEEDS = frozenset({"SEND", "GET", "CANCEL", "SUBSCRIBE", "RESUBSCRIBE"})
_SENDING = frozenset(
    {"tasks/send", "tasks/sendSubscribe", "message/send", "message/stream"}
    | {"SendMessage", "SendStreamingMessage"}
)
_MCP_PARAMS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": TOOL, "arguments": {}},
    "resources/read": {"uri": "openfang://results/none"},
    "prompts/get": {"name": "none"},
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "knocks", "version": "1"},
    },
    "logging/setLevel": {"level": "info"},
    "resources/subscribe": {"uri": "openfang://results/none"},
    "resources/unsubscribe": {"uri": "openfang://results/none"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
}
BODIES: dict[str, dict[str, Any]] = {
    "/api/tools/{id}/call": {"arguments": {"text": "hi"}},
    "/api/agents/{name}/message": {"message": "hi"},
    "/api/agents/{name}/stream": {"message": "hi"},
    "/api/a2a/discover": {"url": "http://127.0.0.1:9/"},
    "/api/a2a/send": {"agent": "elsewhere", "message": "hi"},
    "/api/a2a/tasks": {"agent": AGENT, "message": "hi"},
    "/api/approvals/{id}": {"answer": "approve"},
    "/api/specs": {"name": "another", "content": "another plan"},
    "/api/schedules": {"agent": AGENT, "schedule": "daily", "description": "hi"},
    "/api/keys": {"name": "another", "role": "admin"},
    "/api/secrets/{name}": {"value": "another"},
    "/api/audit/sql": {"query": "SELECT 1"},
    "/api/audit/prove": {"record": 1, "hash": "ab" * 32},
    "/api/extensions": {"archive_base64": PARCEL},
    "/api/extensions/{id}/enable": {"digest": DIGEST},
    "/api/skills": {"archive_base64": SKILL_PARCEL},
    "/api/skills/{id}/enable": {"digest": SKILL_DIGEST},
    "/api/mcp/servers": {"name": "more", "transport": {"type": "stdio", "command": "no-such"}},
}


def _filled(path: str, told: Scene) -> str:
    """Name what exists, where an address wants a name."""
    named = {
        "/api/tools/": TOOL,
        "/api/results/": told.result,
        "/api/sessions/": told.session,
        "/api/approvals/": told.question,
        "/api/a2a/tasks/": told.task,
        "/a2a/tasks/": told.task,
        "/api/mcp/servers/": "waiting",
        "/api/extensions/": EXTENSION,
        "/api/skills/": SKILL,
        "/api/keys/": "victim",
        "/api/secrets/": "token",
        "/api/a2a/agents/": "elsewhere",
    }
    what = next((name for start, name in named.items() if path.startswith(start)), told.task)
    agents = "/agents/" in path and not path.startswith("/api/a2a")
    filled = path.replace("{name}", AGENT if agents else what).replace("{toolset}", "writing")
    return re.sub(r"\{\w+\}", what, filled)


def public_doors() -> dict[str, str]:
    """What is for everybody, and why: nothing else is."""
    resource = "a client learns where its tokens come from before it has one"
    card = "a peer learns who is here, and how to sign in"
    return {
        "/api/health": "whoever watches processes has no key; it tells one word",
        "/api/ready": "as health",
        "/.well-known/agent.json": card,
        "/.well-known/agent-card.json": card,
        "/.well-known/jwks.json": "cards are checked with these keys",
        "/a2a/agents/{name}/.well-known/agent.json": "of agents that the operator publishes",
        "/a2a/agents/{name}/.well-known/agent-card.json": "of agents that the operator publishes",
        "/.well-known/oauth-protected-resource": resource,
        "/.well-known/oauth-protected-resource/api": resource,
        "/.well-known/oauth-protected-resource/mcp": resource,
        "/.well-known/oauth-protected-resource/mcp/{toolset}": resource,
        "/.well-known/oauth-protected-resource/mcp/agents/{name}": resource,
    }


PUBLIC = Access.PUBLIC.value
TOKEN = Access.TOKEN.value
