"""What an extension costs us: a warm call, one that calls back, a start, and many that rest."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from bench.figures import Figure, Stopwatch, cpu_per_async
from openfang.core.calls import EVERYTHING
from openfang.core.extensions import Capability, ExtensionSpec, Permissions, Runtime
from openfang.core.tools import Trust
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALLS = 1000
_MANY = 20
_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
_SOURCE = """
from openfang.extension import tool

@tool
async def echo(text=""):
    return text

@tool
async def relay(context):
    return (await context.call("system_time")).text
"""


def _spec(home: Path, name: str) -> ExtensionSpec:
    folder = home / "extensions" / name
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(_SOURCE)
    named = ("echo", "relay")
    return ExtensionSpec(
        id=name,
        folder=folder,
        workspace=home / "workspaces" / f"ext-{name}",
        runtime=Runtime(kind="python", entry=("main.py",)),
        capabilities=tuple(Capability(name=one, input_schema=_SCHEMA) for one in named),
        permissions=Permissions(grants=EVERYTHING),
        trust=Trust.HIGH,
        idle=3600,
    )


def _own_memory() -> int:
    """The bytes that are this process's alone."""
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    kilobytes = (int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return sum(kilobytes) << 10


async def figures(folder: Path) -> Sequence[Figure]:
    home = folder / "extensions-home"
    known = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    async with open_test_app(home, environ=known) as app:
        return await _measured(app, home)


async def _measured(app: OpenApp, home: Path) -> Sequence[Figure]:
    extensions = app.parts.extensions
    assert extensions
    for name in ("first", "second"):
        await extensions.put(await to_thread.run_sync(_spec, home, name))
    await app.call("ext:first:echo", text="hello")  # the machine's sandbox is tried once
    with Stopwatch() as start:
        await app.call("ext:second:echo", text="hello")
    with Stopwatch() as wall:
        plain = await cpu_per_async(_CALLS, lambda: app.call("ext:first:echo", text="hello"))
    calling = await cpu_per_async(_CALLS, lambda: app.call("ext:first:relay"))
    before = await to_thread.run_sync(_own_memory)
    for number in range(_MANY):
        await extensions.put(await to_thread.run_sync(_spec, home, f"e{number}"))
        await app.call(f"ext:e{number}:echo", text="hello")
    grown = await to_thread.run_sync(_own_memory) - before
    took = f"{wall.seconds / _CALLS / 3 * 1e3:.2f} ms of time"
    return [
        Figure("extension: a warm call, our CPU", plain / 1000, "ms", 0.4, beside=took),
        Figure("extension: with one call back, our CPU", calling / 1000, "ms", 1.5),
        Figure("extension: from start to first answer", start.seconds, "s", 1.0),
        Figure(f"{_MANY} extensions at rest, memory of ours", grown / (1 << 20), "MB", 5.0),
    ]
