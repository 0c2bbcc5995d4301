"""Nothing that the node writes or says gives a key or secret away (C18.3): canaries everywhere.

Each value below is put in where somebody could put it in; then everything the node has written or
says is searched for it, as it is and in the spellings that a program would find it by.
"""

from __future__ import annotations

import json
import secrets
import sys
import tarfile
from base64 import b64encode
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import pytest
from anyio import to_thread
from tests.app.a2a.pushing import receiving
from tests.edges.live import live
from tests.forked import run

from openfang.app.logs.log import open_logs
from openfang.core.keys import Key
from openfang.storage.database import at_once
from openfang.storage.keys import KEY_PREFIX, new_secret
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from aiohttp import web
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C18.3", "C18.1", "C13.4")

TELLER = """
import json, os, sys
print("I was given", os.environ["SERVICE_TOKEN"], os.environ["KEPT"], file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "teller", "version": "1"}}
    names = ("get_it", "fail")
    tools = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    words = os.environ["SERVICE_TOKEN"] + " and " + os.environ["KEPT"]
    said = {"content": [{"type": "text", "text": "it is " + words}]}
    results = {"initialize": hello, "tools/list": tools, "tools/call": said, "ping": {}}
    if asked.get("params", {}).get("name") == "fail" or asked["method"] not in results:
        answer["error"] = {"code": -32000, "message": "not with " + words, "data": {"was": words}}
    else:
        answer["result"] = results[asked["method"]]
    print(json.dumps(answer), flush=True)
"""
# What holds these by the operator's own hand, or is how a home is opened.
LOOKS = (
    *("/api/status", "/api/config", "/api/keys", "/metrics", "/api/secrets", "/api/tools"),
    *("/api/audit?limit=10000", "/api/audit/export?proven=true"),
)
THEIR_OWN = {"config.toml", "key", "master.key"}


def canary(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(24).replace("-", "x").replace("_", "y")


async def told(request: web.BaseRequest) -> Any:
    """An upstream that fails, and puts what it was sent into its error page."""
    from aiohttp import web  # noqa: PLC0415 - it is needed here alone

    text = f"<h1>500</h1> you sent {dict(request.headers)}"
    return web.Response(status=500, text=text, content_type="text/html")


def configured(program: Path, url: str, literal: str, header: str) -> str:
    remote = (
        f'{{ type = "http", url = "{url}", headers = {{ Authorization = "Bearer {header}" }} }}'
    )
    local = f'{{ type = "stdio", command = "{sys.executable}", args = ["{program}"] }}'
    return f"""
[[mcp_servers]]
name = "teller"
env = {{ SERVICE_TOKEN = "{literal}", KEPT = "${{KEPT}}" }}
transport = {local}
[[mcp_servers]]
name = "far"
allow_private = true
transport = {remote}
"""


async def knocked(node: Live, values: dict[str, str]) -> list[Reply]:
    """Put the canaries into every part of a request."""
    wrong, named, shape = values["wrong key"], values["named argument"], values["shaped argument"]
    kept, literal, admin = values["kept secret"], values["literal"], values["admin token"]
    call, none = "/api/tools/file_write/call", {"path": "a", "content": "b"}
    plan = {"mode": "planning"}  # nothing is written that the caller wants to have written
    return [
        await node.get("/api/tools", key=wrong),
        await node.get("/api/tools", key=None, headers={"X-Api-Key": wrong}),
        await node.get(f"/api/tools?key={wrong}&access_token={wrong}", key=None),
        await node.get(f"/api/audit?token={wrong}"),
        await node.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, key=wrong),
        await node.ask("POST", call, data=b'{"arguments": {"api_key": "' + wrong.encode()),
        await node.post(call, {"arguments": {**none, "password": named}, "context": plan}),
        await node.post(call, {"arguments": none, "password": named}),
        await node.call("file_write", {"path": "a", "content": f"token={shape}"}, context=plan),
        await node.call("file_write", {"path": kept, "content": literal}, context=plan),
        await node.call("web_fetch", {"url": f"http://127.0.0.1:9/?api_key={kept}"}),
        await node.call("file_write", {"path": "a", "client_secret": named}, context=plan),
        await node.call(f"nothing_{literal}", {}),
        await node.call("system_time", headers={"X-Admin-Token": wrong}),
        await node.call("system_time", headers={"X-Admin-Token": admin, "Cookie": f"k={wrong}"}),
        await node.call("system_time", context={"task_id": shape}),
        await node.call("mcp:teller:get_it"),
        await node.call("mcp:teller:fail"),
        await node.call("mcp:far:echo"),
        *[await node.get(f"/api/mcp/servers/{name}") for name in ("teller", "far")],
        *[await node.get(f"/api/mcp/servers/{name}/logs") for name in ("teller", "far")],
        await node.post("/api/mcp/servers/far/test"),
        *[await node.get(path) for path in ("/api/status", "/api/config", "/api/keys", "/metrics")],
        *[
            await node.get(path)
            for path in ("/api/secrets", "/api/audit?limit=10000", "/api/tools")
        ],
        await node.get("/api/audit/export?proven=true"),
    ]


def spellings(value: str) -> list[bytes]:
    raw = value.encode()
    return [raw, quote(value, safe="").encode(), b64encode(raw).rstrip(b"="), raw.hex().encode()]


def written(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, but for what holds secrets on purpose."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in THEIR_OWN)
    return {str(path): path.read_bytes() for path in files}


def commands(home: Path, folder: Path) -> dict[str, bytes]:
    """What the commands say that show how a node is, and what a backup holds."""
    environ = {"OPENFANG_HOME": str(home), "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    backup = folder / "backup.tar.gz"
    lines = ["status --json", "doctor --json", "config show", "keys list --json", "secrets list"]
    lines += ["servers list --json", "audit export --format cef", "audit export --format otlp"]
    lines += ["audit export", "audit export --with-checkpoints", "audit tail", "tools list --json"]
    said = dict[str, bytes]()
    for line in (*lines, f"backup {backup}"):
        done = run(line.split(), environ, b"")
        said[line] = done.stdout + done.stderr
    with tarfile.open(backup) as archive:
        for member in archive.getmembers():
            held = archive.extractfile(member)
            if held is not None and Path(member.name).name not in THEIR_OWN:
                said[f"backup: {member.name}"] = held.read()
    return said


def processes() -> dict[str, bytes]:
    """The command lines of all processes."""
    found = dict[str, bytes]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[str(path)] = path.read_bytes()
        except OSError:
            continue
    return found


async def test_no_canary_is_in_anything_that_the_node_writes_or_says(tmp_path: Path) -> None:
    program = tmp_path / "teller.py"
    program.write_text(TELLER)
    values = {
        "literal": canary(),
        "kept secret": canary(),
        "header": canary(),
        "wrong key": canary(KEY_PREFIX),
        "named argument": canary(),
        "shaped argument": f"ghp_{secrets.token_hex(18)}",
    }
    home = tmp_path / "home"
    log = home / "logs" / "of-the-test.jsonl"
    async with receiving(*[told] * 99) as upstream:
        config = configured(program, upstream.url("/mcp"), values["literal"], values["header"])
        async with live(home, config=config) as node:
            put = await node.ask("PUT", "/api/secrets/KEPT", json={"value": values["kept secret"]})
            assert put.status == 200, put.body
            values["key"] = await node.key("caller")
            values["admin token"] = await node.key("second", kind="admin_token")
            assert node.app.parts.servers
            with anyio.fail_after(30):
                assert await node.app.parts.servers.reached("teller")
            redact = node.app.parts.broker.redact
            opening = partial(open_logs, "debug", file=log, redact=redact)
            logs = await to_thread.run_sync(opening)
            await to_thread.run_sync(logs.__enter__)
            try:
                await node.post("/api/mcp/servers/teller/restart")
                with anyio.fail_after(30):
                    assert await node.app.parts.servers.reached("teller")
                replies = await knocked(node, values)
            finally:
                await to_thread.run_sync(logs.close)
            running = await to_thread.run_sync(processes)
    assert upstream.taken
    seen = {f"reply {number}": reply.body for number, reply in enumerate(replies)}
    seen |= {f"headers {n}": str(reply.headers).encode() for n, reply in enumerate(replies)}
    seen |= running
    seen |= await to_thread.run_sync(written, home)
    seen |= await to_thread.run_sync(commands, home, tmp_path)
    assert b"I was given [redacted:" in seen[str(log)]
    leaks = {
        (name, place)
        for name, value in values.items()
        for place, text in seen.items()
        for form in spellings(value)
        if form in text
    }
    assert leaks == set(), sorted(leaks)


async def test_looking_up_a_key_takes_as_long_whatever_is_right_about_it(tmp_path: Path) -> None:
    """Medians of some thousand look-ups, taken in turn: a guess learns nothing from the clock.

    Of wrong keys none may differ from another by more than 5 us and a quarter; the right one is
    read as well as found, which the answer tells anyway.
    """
    async with open_test_app(tmp_path / "home") as app:
        parts = app.parts
        right = new_secret(KEY_PREFIX)
        key = Key(id="key_timed", name="timed", created_at=1)
        statement = parts.keys.insert_key(key, right)
        await parts.broker.append((), (statement,))
        guesses = {
            "right": right,
            "all but the last character": right[:-1] + ("A" if right[-1] != "A" else "B"),
            "the first half": right[:23] + new_secret("")[:23],
            "its prefix alone": KEY_PREFIX + new_secret("")[: len(right) - len(KEY_PREFIX)],
            "nothing of it": "zz_" + new_secret("")[: len(right) - len(KEY_PREFIX)],
        }
        taken = await to_thread.run_sync(_timed, parts, guesses)
    wrong = [taken[name] for name in guesses if name != "right"]
    assert max(wrong) - min(wrong) <= 5_000 + min(wrong) / 4, taken
    assert taken["right"] <= 100_000 + 3 * min(wrong), taken


def _timed(parts: Any, guesses: dict[str, str]) -> dict[str, float]:
    found: dict[str, list[int]] = {name: [] for name in guesses}
    for _ in range(3_000):
        for name, guess in guesses.items():
            began = perf_counter_ns()
            known = at_once(parts.callers.credentials.find(guess))
            found[name].append(perf_counter_ns() - began)
            assert (known is not None) is (name == "right")
    return {name: median(times) for name, times in found.items()}


async def test_a_key_has_256_random_bits_and_is_kept_as_a_digest_alone(tmp_path: Path) -> None:
    async with live(tmp_path / "home") as node:
        made = {await node.key(f"k{number}") for number in range(5)}
        sql = "SELECT digest, body FROM keys WHERE kind = 'key'"
        rows = await node.app.parts.database.read(sql)
        listed = (await node.get("/api/keys")).body
    assert len(made) == 5
    assert all(len(secret.removeprefix(KEY_PREFIX)) == 43 for secret in made)  # 32 bytes, base 64
    assert all(len(digest) == 32 for digest, _ in rows)
    assert not any(secret.encode() in listed for secret in made)
    assert not any(secret in json.dumps(str(rows)) for secret in made)
