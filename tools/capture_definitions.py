"""Write down what real public servers say of themselves, for `tests/data/definitions/real/`.

Each is started over stdio, without a network, and asked for its lists. Those of the tests are there
after `make setup`; the others come from a folder in which `npm install` has put them:

    python tools/capture_definitions.py FOLDER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
REAL = ROOT / "tests" / "data" / "definitions" / "real"
PEERS = Path(sys.prefix) / "peers"
SECONDS = 60
MOST_PAGES = 50
LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resourceTemplates": "resources/templates/list",
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "capture", "version": "1"},
}
# What a program of npm is started with beside its name; a key that is none lets it list its tools.
OTHERS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "@playwright/mcp": ((), {}),
    "chrome-devtools-mcp": ((), {}),
    "@notionhq/notion-mcp-server": ((), {"NOTION_TOKEN": "none"}),
    "firecrawl-mcp": ((), {"FIRECRAWL_API_KEY": "none"}),
    "tavily-mcp": ((), {"TAVILY_API_KEY": "none"}),
    "@upstash/context7-mcp": ((), {}),
    "exa-mcp-server": ((), {"EXA_API_KEY": "none"}),
    "@supabase/mcp-server-supabase": (("--access-token", "sbp_none"), {}),
    "mongodb-mcp-server": ((), {"MDB_MCP_TELEMETRY": "disabled"}),
    "@wonderwhy-er/desktop-commander": ((), {}),
    "@modelcontextprotocol/server-github": ((), {"GITHUB_PERSONAL_ACCESS_TOKEN": "none"}),
    "@modelcontextprotocol/server-gitlab": ((), {"GITLAB_PERSONAL_ACCESS_TOKEN": "none"}),
    "@modelcontextprotocol/server-slack": ((), {"SLACK_BOT_TOKEN": "none", "SLACK_TEAM_ID": "T0"}),
    "@modelcontextprotocol/server-google-maps": ((), {"GOOGLE_MAPS_API_KEY": "none"}),
    "@modelcontextprotocol/server-puppeteer": ((), {}),
    "@modelcontextprotocol/server-brave-search": ((), {"BRAVE_API_KEY": "none"}),
    "@heroku/mcp-server": ((), {"HEROKU_API_KEY": "none"}),
    "@sentry/mcp-server": (("--access-token", "none"), {}),
    "@circleci/mcp-server-circleci": ((), {"CIRCLECI_TOKEN": "none"}),
    "mcp-server-kubernetes": ((), {}),
    "@browsermcp/mcp": ((), {}),
    "figma-developer-mcp": (("--stdio",), {"FIGMA_API_KEY": "none"}),
    "@hubspot/mcp-server": ((), {"PRIVATE_APP_ACCESS_TOKEN": "none"}),
    "@stripe/mcp": (("--tools=all",), {"STRIPE_SECRET_KEY": "sk_test_none"}),
    "@elastic/mcp-server-elasticsearch": (
        (),
        {"ES_URL": "http://localhost:9200", "ES_API_KEY": "none"},
    ),
    "airtable-mcp-server": ((), {"AIRTABLE_API_KEY": "pat.none"}),
    "mcp-server-code-runner": ((), {}),
    "@mapbox/mcp-server": ((), {"MAPBOX_ACCESS_TOKEN": "pk.eyJ1IjoieCJ9.none"}),
    "puppeteer-mcp-server": ((), {}),
    "@antv/mcp-server-chart": ((), {}),
    "@brightdata/mcp": ((), {"API_TOKEN": "none"}),
    "@magicuidesign/mcp": ((), {}),
    "n8n-mcp": ((), {}),
    "mcp-mermaid": ((), {}),
    "@executeautomation/playwright-mcp-server": ((), {}),
    "linear-mcp-server": ((), {"LINEAR_API_KEY": "none"}),
    "@21st-dev/magic": ((), {"API_KEY": "none"}),
    "@kazuph/mcp-taskmanager": ((), {}),
    "task-master-ai": ((), {}),
    "@line/line-bot-mcp-server": ((), {"CHANNEL_ACCESS_TOKEN": "none"}),
    "@railway/mcp-server": ((), {}),
    "@apify/actors-mcp-server": ((), {"APIFY_TOKEN": "none"}),
    "@benborla29/mcp-server-mysql": ((), {}),
    "@sap-ux/fiori-mcp-server": ((), {}),
}


@dataclass(slots=True)
class Server:
    """One that is started for its lists alone."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def _tested(folder: Path) -> Iterator[Server]:
    """Name those that the tests install, and our own."""
    packages = PEERS / "node" / "node_modules"
    for name in ("everything", "filesystem", "memory", "sequential-thinking"):
        whole = f"@modelcontextprotocol/server-{name}"
        more = (str(folder),) if name == "filesystem" else ()
        yield Server(whole, ("node", _program(packages / whole), *more))
    for name in ("fetch", "git", "time", "sqlite"):
        more = ("--db-path", str(folder / "x.db")) if name == "sqlite" else ()
        program = PEERS / name / "bin" / f"mcp-server-{name}"
        yield Server(f"mcp-server-{name}", (str(program), *more))
    openfang = str(Path(sys.executable).parent / "openfang")
    yield Server("openfang", (openfang, "mcp"), {"OPENFANG_HOME": str(folder / "home")})


def _installed(modules: Path) -> Iterator[Server]:
    for name, (arguments, environment) in OTHERS.items():
        if (modules / name / "package.json").exists():
            yield Server(name, ("node", _program(modules / name), *arguments), environment)


def _program(package: Path) -> str:
    bins: Any = json.loads((package / "package.json").read_text())["bin"]
    return str(package / (bins if isinstance(bins, str) else next(iter(bins.values()))))


class Line:
    """A conversation, a message a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._numbers = count(1)

    def tell(self, method: str, params: Mapping[str, Any], **more: object) -> None:
        assert self._process.stdin  # noqa: S101 - a pipe was asked for
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdout  # noqa: S101 - a pipe was asked for
        number = next(self._numbers)
        self.tell(method, params, id=number)
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if answer.get("id") == number and "method" not in answer:
                return answer.get("result", {})
        raise EOFError


def _captured(line: Line) -> dict[str, Any]:
    hello = line.ask("initialize", HELLO)
    line.tell("notifications/initialized", {})
    said = hello.get("serverInfo", {})
    found: dict[str, Any] = {"server": said.get("name"), "version": said.get("version")}
    if hello.get("instructions"):
        found["instructions"] = hello["instructions"]
    for key, method in LISTS.items():
        if key.removesuffix("Templates").rstrip("s") + "s" in hello.get("capabilities", {}):
            found[key] = list(_entries(line, method, key))
    return found


def _entries(line: Line, method: str, key: str) -> Iterator[dict[str, Any]]:
    params: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        page = line.ask(method, params)
        yield from page.get(key, [])
        if not page.get("nextCursor"):
            return
        params = {"cursor": page["nextCursor"]}


def _capture(server: Server, folder: Path) -> dict[str, Any]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **server.environment}
    with subprocess.Popen(
        ["unshare", "--map-root-user", "--net", *server.argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        text=True,
    ) as process:
        limit = Timer(SECONDS, process.kill)
        limit.start()
        try:
            return _captured(Line(process))
        finally:
            limit.cancel()
            process.kill()


def main() -> None:
    modules = [Path(one) / "node_modules" for one in sys.argv[1:]]
    REAL.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [str(Path(sys.executable).parent / "openfang"), "init"],
            env={**os.environ, "OPENFANG_HOME": str(folder / "home")},
            check=True,
        )
        servers = [*_tested(folder), *(one for each in modules for one in _installed(each))]
        for server in servers:
            try:
                found = {"package": server.name, **_capture(server, folder)}
            except (EOFError, OSError, ValueError) as error:
                print(f"{server.name}: {type(error).__name__} {error}")
                continue
            file = REAL / f"{server.name.strip('@').replace('/', '-')}.json"
            file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            print(f"{server.name}: {len(found.get('tools', []))} tools")


if __name__ == "__main__":
    main()
