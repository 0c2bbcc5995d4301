"""Finding the daemon of a home: by its file, its lock and its own word, and by nothing less."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread

from openfang import compat
from openfang.app.daemon import discovery
from openfang.app.daemon.discovery import (
    Absent,
    Found,
    claimed,
    daemon_of,
    find_daemon_now,
    look,
    only_daemon,
    remove,
    this_daemon,
    until_healthy,
    write,
)
from openfang.core.errors import Conflict, HomeError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C20")

HEALTHY = b'{"status":"ok"}'


@asynccontextmanager
async def answering(body: bytes = HEALTHY, status: str = "200 OK") -> AsyncGenerator[int]:
    """A server that gives the same answer to everybody; yields its port."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        with anyio.fail_after(30):
            yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def note(home: Path, daemon: discovery.Daemon) -> None:
    await to_thread.run_sync(write, home, daemon)


def test_the_file_is_as_the_seed_has_it_and_its_owners_alone(tmp_path: Path) -> None:
    daemon = this_daemon("127.0.0.1", 50051)
    write(tmp_path, daemon)
    file = tmp_path / "daemon.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "pid": os.getpid(),
        "listen_addr": "127.0.0.1:50051",
        "started_at": daemon.started_at,
        "version": daemon.version,
        "platform": "linux",
    }
    remove(tmp_path)
    remove(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7"),
        ("0.0.0.0", "http://127.0.0.1:7"),  # noqa: S104 - only written down
        ("::", "http://[::1]:7"),
        ("::1", "http://[::1]:7"),
        ("192.0.2.1", "http://192.0.2.1:7"),
        ("localhost", "http://localhost:7"),
    ],
)
def test_an_address_that_means_every_interface_is_reached_by_loopback(host: str, url: str) -> None:
    assert this_daemon(host, 7).url == url


async def test_a_daemon_that_holds_the_lock_and_answers_is_found(tmp_path: Path) -> None:
    async with only_daemon(tmp_path), answering() as port:
        daemon = this_daemon("127.0.0.1", port)
        await note(tmp_path, daemon)
        found = Found(
            url=f"http://127.0.0.1:{port}",
            pid=os.getpid(),
            version=daemon.version,
            started_at=daemon.started_at,
        )
        assert await look(tmp_path) == found
        assert await to_thread.run_sync(find_daemon_now, tmp_path) == found
        assert await to_thread.run_sync(compat.find_daemon, tmp_path) == found.url
    assert await look(tmp_path) == Absent()
    assert await to_thread.run_sync(compat.find_daemon, tmp_path) is None


def test_the_seeds_name_looks_at_the_home_of_the_environment(home: Path) -> None:
    assert compat.find_daemon() is None
    assert not home.exists()


def test_a_home_without_a_daemon_has_none_and_nothing_is_made_there(tmp_path: Path) -> None:
    assert anyio.run(look, tmp_path) == Absent()
    assert anyio.run(look, tmp_path / "missing") == Absent()
    assert list(tmp_path.iterdir()) == []


async def test_a_file_left_behind_is_told_of_and_nobody_is_asked(tmp_path: Path) -> None:
    async with answering() as port:
        # The number belongs to a process that lives: this one, which is no daemon.
        await note(tmp_path, this_daemon("127.0.0.1", port))
        found = await look(tmp_path)
    assert isinstance(found, Absent)
    assert (found.pid, f"process {os.getpid()}" in found.why) == (None, True)


async def test_a_file_of_another_process_than_the_locks_is_not_believed(tmp_path: Path) -> None:
    async with only_daemon(tmp_path), answering() as port:
        await note(tmp_path, replace(this_daemon("127.0.0.1", port), pid=1))
        found = await look(tmp_path)
    assert found == Absent(why=f"process {os.getpid()} is starting, or ending", pid=os.getpid())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"pid": "1", "listen_addr": "a:1", "started_at": "", "version": "", "platform": ""}',
        b'{"pid": 1, "listen_addr": "a", "started_at": "", "version": "", "platform": ""}',
        b'{"pid": 1, "listen_addr": "a:0", "started_at": "", "version": "", "platform": ""}',
        b'{"pid": 1, "listen_addr": "a/b:1", "started_at": "", "version": "", "platform": ""}',
        b'{"pid": 1, "listen_addr": "a@b:1", "started_at": "", "version": "", "platform": ""}',
    ],
)
async def test_a_file_that_cannot_be_read_is_told_of(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "daemon.json").write_bytes(text)
    found = await look(tmp_path)
    assert isinstance(found, Absent)
    assert found.why.startswith("daemon.json cannot be read: ")


async def test_a_folder_in_the_place_of_the_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").mkdir()
    found = await look(tmp_path)
    assert isinstance(found, Absent)
    assert found.why.startswith("daemon.json cannot be read: ")


@pytest.mark.requirement("C12.1")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("200 OK", b"<html>"),
        ("200 OK", b'{"status":"up"}'),
        ("200 OK", b'{"status":"ok","node":"n"}'),
        ("200 OK", b"[]"),
        ("404 Not Found", HEALTHY),
        ("503 Service Unavailable", HEALTHY),
        ("301 Moved", b""),
    ],
)
async def test_a_foreign_or_ailing_server_is_not_taken_for_the_daemon(
    tmp_path: Path, status: str, body: bytes
) -> None:
    async with only_daemon(tmp_path), answering(body, status) as port:
        await note(tmp_path, this_daemon("127.0.0.1", port))
        found = await look(tmp_path)
        with pytest.raises(HomeError, match="no daemon"):
            await until_healthy(f"http://127.0.0.1:{port}")
    assert isinstance(found, Absent)
    assert found.pid == os.getpid()
    assert f"127.0.0.1:{port}" in found.why


async def test_a_daemon_that_is_asked_too_often_is_still_found(tmp_path: Path) -> None:
    async with only_daemon(tmp_path), answering(b"{}", "429 Too Many Requests") as port:
        await note(tmp_path, this_daemon("127.0.0.1", port))
        assert isinstance(await look(tmp_path), Found)


NO_ROOM = (
    b'{"type":"urn:openfang:problem:overloaded","status":503,"detail":"no room"}',
    "503 Service Unavailable\r\nContent-Type: application/problem+json",
)


async def test_a_daemon_that_has_no_room_is_found_busy(tmp_path: Path) -> None:
    async with only_daemon(tmp_path), answering(*NO_ROOM) as port:
        await note(tmp_path, this_daemon("127.0.0.1", port))
        found = await daemon_of(tmp_path)
        await until_healthy(f"http://127.0.0.1:{port}")
    assert found is not None
    assert found.busy == "no room"


async def test_a_home_whose_daemon_is_silent_is_not_used_without_it(tmp_path: Path) -> None:
    async with only_daemon(tmp_path), answering(b"<html>") as port:
        await note(tmp_path, this_daemon("127.0.0.1", port))
        with pytest.raises(HomeError, match=f"does not answer: process {os.getpid()}") as silent:
            await daemon_of(tmp_path)
    assert "openfang stop --kill" in silent.value.way_out
    assert await daemon_of(tmp_path) is None


async def test_a_daemon_that_ends_is_waited_for_and_one_that_does_not_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Found | None] = []

    async def wait() -> None:
        found.append(await daemon_of(tmp_path))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group, only_daemon(tmp_path):
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert found == []
        assert found == [None]
        monkeypatch.setattr(discovery, "_TOTAL_SECONDS", 0.1)
        async with only_daemon(tmp_path):
            with pytest.raises(HomeError, match="is starting, or ending"):
                await daemon_of(tmp_path)


async def test_a_daemon_that_never_answers_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_TOTAL_SECONDS", 0.05)
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with only_daemon(tmp_path):
        await note(tmp_path, this_daemon("127.0.0.1", server.sockets[0].getsockname()[1]))
        with anyio.fail_after(30):
            found = await look(tmp_path)
            await left.wait()
    server.close()
    assert isinstance(found, Absent)
    assert "within 0.05 s" in found.why


async def test_a_daemon_that_begins_on_a_busy_machine_waits_longer_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_TOTAL_SECONDS", 0.05)
    busy = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await busy.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(HEALTHY) + HEALTHY)
        writer.close()

    server = await asyncio.start_server(late, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    async with only_daemon(tmp_path):
        await note(tmp_path, this_daemon("127.0.0.1", port))
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(until_healthy, f"http://127.0.0.1:{port}")
                assert isinstance(await look(tmp_path), Absent)
                busy.set()
    server.close()


async def test_a_second_daemon_is_told_which_one_is_there_and_where(tmp_path: Path) -> None:
    async with only_daemon(tmp_path):
        with pytest.raises(Conflict, match=f"process {os.getpid()}\\."):
            await only_daemon(tmp_path).__aenter__()
        await note(tmp_path, this_daemon("127.0.0.1", 7))
        with pytest.raises(Conflict, match=rf"process {os.getpid()} at http://127\.0\.0\.1:7\."):
            await only_daemon(tmp_path).__aenter__()


async def test_what_a_dead_daemon_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    await note(tmp_path, this_daemon("127.0.0.1", 7))
    async with only_daemon(tmp_path):
        assert not await to_thread.run_sync((tmp_path / "daemon.json").exists)


async def test_whoever_only_looks_keeps_no_daemon_from_starting(tmp_path: Path) -> None:
    done = anyio.Event()

    async def watch() -> None:
        while not done.is_set():
            await to_thread.run_sync(claimed, tmp_path)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(watch)
            for _ in range(20):
                async with only_daemon(tmp_path):
                    pass
            done.set()


def test_looking_for_a_daemon_imports_nothing_heavy() -> None:
    heavy = {"aiohttp", "cryptography", "cyclopts", "pydantic", "rich", "sqlite3", "starlette"}
    # What measures the tests may be there before, and has modules of its own.
    program = (
        "import sys; before = set(sys.modules); import openfang.app.daemon.discovery; "
        f"print(*({heavy!r} & set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []
