"""A full, a read-only and a locked disk: nothing runs unrecorded, and service resumes by itself."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.core.errors import AuditUnavailable
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C7.10")
ALONE = Path(__file__).with_name("on_a_small_disk.py")
SERVED = Path(__file__).with_name("serving_on_a_small_disk.py")


def in_a_namespace(scene: str, folder: Path, script: Path = ALONE) -> dict[str, Any]:
    """Run the scene on a tmpfs that only its own mount namespace sees."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    done = subprocess.run(
        [*unshare, sys.executable, str(script), scene, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.needs("unshare", "mount")
def test_on_a_full_disk_nothing_runs_and_service_resumes_by_itself(tmp_path: Path) -> None:
    seen = in_a_namespace("full", tmp_path)
    assert seen["refused"] == 1
    assert seen["message"].startswith("audit unavailable")
    assert seen["stays_refused"]
    assert seen["resumed"] == "ran"
    assert seen["unrecorded"] == "unrecorded"
    assert seen["intact"]
    assert seen["open"] == 0


@pytest.mark.needs("unshare", "mount")
@pytest.mark.requirement("C13.1")
def test_a_daemon_on_a_full_disk_refuses_what_it_cannot_record_and_goes_on_by_itself(
    tmp_path: Path,
) -> None:
    assert in_a_namespace("full", tmp_path, SERVED) == {
        "before": "ok",
        "too_large": "error",
        "refused": [503, "audit_unavailable", "5"],
        "recorded": [[503, "audit_unavailable"]] * 6,
        "ready": 503,
        "reads": [200] * 5,
        "nothing_began": True,
        "files": ["before"],
        "after": "ok",
        "intact_while_served": True,
        "code": 0,
        "alone": f"error: The disk of {tmp_path}/home/openfang.db is full.",
        "intact": True,
        "endings": [1],
        "traced": False,
    }


@pytest.mark.needs("unshare", "mount")
def test_a_read_only_home_is_named_with_the_way_out(tmp_path: Path) -> None:
    seen = in_a_namespace("read-only", tmp_path)
    assert "cannot be made" in seen["made"]
    assert "OPENFANG_HOME" in seen["used"]


async def test_a_locked_database_refuses_and_is_served_again_when_free(tmp_path: Path) -> None:
    async def note(_: Mapping[str, Any]) -> str:
        return "ran"

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "demo", {"note": (facts, note)})
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        await app.call("mcp:demo:note")
        with closing(sqlite3.connect(app.file.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(50), pytest.raises(AuditUnavailable) as caught:
                await app.call("mcp:demo:note")
            other.execute("ROLLBACK")
        assert "is locked by another process for more than 5 s." in caught.value.message
        assert source.reached == 1
        assert (await app.call("mcp:demo:note")).text == "ran"


async def test_a_database_that_is_deleted_while_in_use_stops_every_call(tmp_path: Path) -> None:
    async def note(_: Mapping[str, Any]) -> str:
        return "ran"

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "demo", {"note": (facts, note)})
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        await app.call("mcp:demo:note")
        await to_thread.run_sync(app.file.path.unlink)
        with pytest.raises(AuditUnavailable) as caught:
            await app.call("mcp:demo:note")
        assert "removed or replaced" in caught.value.message
        assert source.reached == 1
