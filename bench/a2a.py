"""A2A: what a message costs us with a durable task, beside the official SDK's own server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from bench.daemon import Target, daemon
from bench.figures import Figure
from bench.rivals import free_port
from bench.wire import exchange, until_listening

if TYPE_CHECKING:
    from collections.abc import Generator

_ROOT = Path(__file__).parent.parent
_PEERS = Path(sys.prefix) / "peers"
CALLERS = 10
MESSAGES = 1_000
OTHERS_MESSAGES = 100
ROUNDS = 3
STREAMS = 1_000
AGENTS = 500
_ON = "[a2a]\nenabled = true\n"
_ECHO = "async def run(message, context):\n    return message\n"
_SLOW = "async def run(message, context):\n    return await context.ask('Go on?')\n"
_MANIFEST = 'name = "{}"\ndescription = "For the figures."\nmodule = "python:agent.py"\n'


def agent(home: Path, name: str, source: str) -> None:
    folder = home / "agents" / name
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(source)
    (folder / "agent.toml").write_text(_MANIFEST.format(name))


def request(target: Target, path: str, method: str, params: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{target.port}",
        "Content-Type: application/json",
        "A2A-Version: 1.0",
        f"Content-Length: {len(body)}",
    ]
    if target.key:
        head.append(f"Authorization: Bearer {target.key}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def message(number: int, **more: str) -> dict[str, Any]:
    parts = [{"text": f"message {number}"}]
    return {"message": {"messageId": f"m{number}", "role": "ROLE_USER", "parts": parts, **more}}


_NUMBERS = count(1)


async def send_many(target: Target, path: str, messages: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    for _ in range(messages):
        sent = request(target, path, "SendMessage", message(next(_NUMBERS)))
        _, body = await exchange(reader, writer, sent)
        assert b"TASK_STATE_COMPLETED" in body, body[:500]
    writer.close()


async def _once(target: Target, path: str, message: dict[str, Any]) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    _, body = await exchange(reader, writer, request(target, path, "SendMessage", message))
    writer.close()
    return body


async def _cost(target: Target, path: str, messages: int) -> float:
    """Microseconds of CPU for each message."""
    before = target.cpu
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(send_many, target, path, messages // CALLERS)
    return (target.cpu - before) / messages * 1e6


async def _best(target: Target, path: str, messages: int) -> float:
    await send_many(target, path, 20)
    return min([await _cost(target, path, messages) for _ in range(ROUNDS)])


@contextmanager
def _sdk(folder: Path) -> Generator[Target]:
    port = free_port()
    program = str(_PEERS / "a2a-sdk" / "bin" / "python")
    # -P: our own folder has a module of the library's name.
    command = [program, "-P", str(_ROOT / "bench" / "a2a_sdk.py"), str(port), str(folder)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, stderr=quiet, stdout=quiet) as process:
        try:
            until_listening(port)
            yield Target(process.pid, port)
        finally:
            process.kill()


async def _messages(folder: Path) -> list[Figure]:
    home = folder / "a2a-served"
    agent(home, "echo", _ECHO)
    agent(home, "slow", _SLOW)
    config = f"{_ON}max_tasks = 1_500\n[server]\nconnections = 2_000\n"
    with daemon(home, config, made=True) as (target, _):
        path = "/a2a/agents/echo"
        await send_many(target, path, 20)
        empty = await _cost(target, path, MESSAGES)
        streams = await _streams(target)
        full = await _best(target, path, MESSAGES)
    with _sdk(folder) as other:
        theirs = await _best(other, "/", OTHERS_MESSAGES)
    beside = f"{theirs:,.0f} us, ours {full:,.0f} us"
    return [
        Figure("SendMessage with a durable task", full, "us", 1_500),
        Figure(
            "the SDK's handler on SQLite, times ours",
            theirs / full,
            "x",
            10,
            at_most=False,
            beside=beside,
        ),
        Figure("a store at its bound, times an empty one", full / empty, "x", 1.1),
        streams,
    ]


async def _streams(target: Target) -> Figure:
    """Open streams on one task that waits, and how long an event takes to reach them all."""
    path = "/a2a/agents/slow"
    body = await _once(target, path, message(next(_NUMBERS)))
    task = json.loads(body)["result"]["task"]
    ready, told, began = [anyio.Event() for _ in range(STREAMS)], list[float](), 0.0

    async def listen(number: int) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", target.port)
        ours.write(request(target, path, "SubscribeToTask", {"id": task["id"]}))
        await theirs.readuntil(b"INPUT_REQUIRED")
        ready[number].set()
        await theirs.readuntil(b"TASK_STATE_WORKING")
        told.append(time.perf_counter())
        await theirs.readuntil(b"TASK_STATE_COMPLETED")
        ours.close()

    async with anyio.create_task_group() as tasks:
        for number in range(STREAMS):
            tasks.start_soon(listen, number)
            if number % 50 == 49:
                await ready[number].wait()
        for event in ready:
            await event.wait()
        began = time.perf_counter()
        await _once(target, path, message(next(_NUMBERS), taskId=task["id"]))
    return Figure(f"an event reaches {STREAMS:,} streams", (max(told) - began) * 1e3, "ms", 250)


async def _hosted(folder: Path) -> list[Figure]:
    found: list[tuple[float, float]] = []
    for number in (1, AGENTS):
        home = folder / f"a2a-{number}"
        for one in range(number):
            agent(home, f"agent-{one:03d}", _ECHO)
        with daemon(home, _ON, made=True) as (target, cpu):
            await send_many(target, "/a2a/agents/agent-000", 5)
            found.append((cpu, target.megabytes))
    (one_cpu, one_size), (many_cpu, many_size) = found
    return [
        Figure(f"start-up with {AGENTS} agents, more than with one", many_cpu - one_cpu, "s", 1),
        Figure(f"memory with {AGENTS} agents, more than with one", many_size - one_size, "MB", 20),
    ]


async def figures(folder: Path) -> list[Figure]:
    if not (_PEERS / "a2a-sdk").exists():
        raise SystemExit("run make bench: it installs what we are measured beside")
    os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
    return [*await _messages(folder), *await _hosted(folder)]
