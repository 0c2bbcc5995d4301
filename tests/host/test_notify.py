"""What a service manager is told, on a real socket of either kind."""

from __future__ import annotations

import os
import socket
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
import pytest

from openfang.host.notify import Manager

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C12.1")
SECONDS = 20


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_a_manager_is_told_at_an_address_of_either_kind(tmp_path: Path, *, abstract: bool) -> None:
    name = f"@openfang-{token_hex(8)}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.settimeout(SECONDS)
        ear.bind(f"\0{name[1:]}" if abstract else name)
        manager = Manager.of({"NOTIFY_SOCKET": name})
        manager.ready("Serving")
        manager.reloading()
        manager.stopping()
        said = [ear.recv(1_000).decode().splitlines() for _ in range(3)]
    assert said[0] == ["READY=1", "STATUS=Serving"]
    assert (said[1][0], said[2][0]) == ("RELOADING=1", "STOPPING=1")


@pytest.mark.parametrize("address", ["", "vsock:2:1", "/nowhere/at/all"])
async def test_nobody_to_tell_is_no_trouble(address: str) -> None:
    manager = Manager.of({"NOTIFY_SOCKET": address})
    manager.ready("Serving")
    with anyio.fail_after(SECONDS):
        await manager.alive()


@pytest.mark.parametrize(("meant", "patience"), [("", 0.02), ("me", 0.02), ("1", 0.0)])
async def test_it_lives_for_whoever_waits_for_that(
    tmp_path: Path, meant: str, patience: float
) -> None:
    environ = {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "20000",
        "WATCHDOG_PID": str(os.getpid()) if meant == "me" else meant,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(environ["NOTIFY_SOCKET"])
        ear.settimeout(0)
        manager = Manager.of(environ)
        assert manager.patience == patience
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(manager.alive)
                for _ in range(3 if patience else 0):
                    await anyio.wait_readable(ear)
                    assert ear.recv(1_000) == b"WATCHDOG=1"
                group.cancel_scope.cancel()
