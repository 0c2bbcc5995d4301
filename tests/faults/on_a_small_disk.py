"""Run inside a mount namespace, on a tmpfs of a few MB: what happens when it is full, or read-only.

Prints one JSON object; `test_disk.py` reads it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from openfang.app.home.new import init_home
from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.app.verify import verify
from openfang.core.errors import AuditUnavailable, HomeError, OpenFangError, Unrecorded
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping


def mounted(where: Path) -> Path:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(where)], check=True)
    return where


def fill(folder: Path) -> Path:
    file = folder / "filler"
    with file.open("wb") as handle:
        try:
            while True:
                os.write(handle.fileno(), bytes(4096))
        except OSError:
            return file


async def full(disk: Path) -> dict[str, Any]:
    fillers: list[Path] = []

    async def note(_: Mapping[str, Any]) -> str:
        return "ran"

    async def fill_up(_: Mapping[str, Any]) -> str:
        fillers.append(fill(disk))
        return "x" * 3000

    harmless = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(
        Kind.MCP, "demo", {"note": (harmless, note), "fill_up": (harmless, fill_up)}
    )
    seen: dict[str, Any] = {"refused": 0}
    async with open_test_app(disk / "home", sources=[source]) as app:
        await app.call("mcp:demo:note")
        filler = fill(disk)
        reached = source.reached
        for _ in range(400):
            try:
                await app.call("mcp:demo:note")
            except AuditUnavailable as error:
                seen["refused"] += 1
                seen["message"] = error.message
                reached_when_refused = source.reached
                break
        else:
            reached_when_refused = -1
        try:
            await app.call("mcp:demo:note")
        except AuditUnavailable:
            seen["stays_refused"] = source.reached == reached_when_refused
        seen["reached_before"] = reached
        filler.unlink()
        seen["resumed"] = (await app.call("mcp:demo:note")).text
        seen["unrecorded"] = await _ending_on_a_full_disk(app, fillers)
    async with open_app(Home(disk / "home"), {}) as parts:
        verification = await verify(parts)
        seen["intact"] = verification.intact
        found = await parts.database.read(
            "SELECT COUNT(*) FROM audit a WHERE event = 'tool_invocation_start' AND NOT EXISTS "
            "(SELECT 1 FROM audit b WHERE b.event = 'tool_invocation_end' "
            "AND b.call_id = a.call_id)"
        )
        seen["open"] = found[0][0]
    return seen


async def _ending_on_a_full_disk(app: Any, fillers: list[Path]) -> str:
    """Let the disk fill up while a tool runs: its ending is owed, and written afterwards."""
    outcome = "recorded"
    for _ in range(200):
        try:
            await app.call("mcp:demo:fill_up")
        except Unrecorded as error:
            outcome = error.code
            break
        except AuditUnavailable:
            outcome = "refused before"
        finally:
            for file in fillers:
                file.unlink(missing_ok=True)
    await app.call("mcp:demo:note")
    return outcome


def read_only(disk: Path) -> dict[str, Any]:
    init_home(disk / "home", {})
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        init_home(disk / "other", {})
    except HomeError as error:
        made = error.message
    else:
        made = "no error"

    async def use() -> str:
        try:
            async with open_app(Home(disk / "home"), {}):
                return "no error"
        except OpenFangError as error:
            return f"{error.message} | {error.way_out}"

    return {"made": made, "used": anyio.run(use)}


if __name__ == "__main__":
    scene, folder = sys.argv[1], mounted(Path(sys.argv[2]))
    answer = anyio.run(full, folder) if scene == "full" else read_only(folder)
    print(json.dumps(answer))  # noqa: T201 - the test reads it
