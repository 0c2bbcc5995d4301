"""Sockets that are their owner's alone."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread

from openfang.host.private_socket import accepted, dialled, forget, listen_privately, streams

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C4.1")
_NOBODY = 65_534
_DIAL = """
import os, socket, sys
os.setgid({nobody}); os.setuid({nobody})
with socket.socket(socket.AF_UNIX) as dialling:
    dialling.connect(sys.argv[1])
    print(dialling.recv(10))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ("long" * 30) / "run" / "x.sock"


async def test_who_dials_is_heard_however_long_the_path_is(path: Path) -> None:
    listener = await to_thread.run_sync(listen_privately, path)
    with anyio.fail_after(30):
        dialling = dialled(path)
        assert dialling is not None
        reader, writer = await streams(await accepted(listener))
        theirs, ours = await streams(dialling)
        ours.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.write(b"there\n")
        assert await theirs.readline() == b"there\n"
        writer.close()
        ours.close()
    await to_thread.run_sync(forget, path, listener)
    assert dialled(path) is None


def test_nobody_else_may_enter(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o755)
    with listen_privately(path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_dead_one_left_behind_is_replaced(path: Path) -> None:
    listen_privately(path).close()
    assert path.exists()
    assert dialled(path) is None
    with listen_privately(path):
        dialling = dialled(path)
        assert dialling is not None
        dialling.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="being somebody else needs root")
async def test_somebody_else_is_turned_away_even_where_the_folder_is_open() -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    name = f"\0openfang-test-{os.getpid()}"
    with listener, anyio.fail_after(30):
        listener.bind(name)
        listener.listen()
        async with anyio.create_task_group() as group:
            group.start_soon(accepted, listener)
            script = _DIAL.format(nobody=_NOBODY).replace("sys.argv[1]", repr(name))
            command = [sys.executable, "-c", script]
            done = await anyio.run_process(command, stderr=subprocess.PIPE)
            assert done.stdout == b"b''\n"
            group.cancel_scope.cancel()
