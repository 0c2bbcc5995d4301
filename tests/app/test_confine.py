"""How a server is confined where its network has to be bridged."""

from __future__ import annotations

import logging
import shutil
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import landlocked

from openfang.app.confine import Confiner
from openfang.core.errors import SourceFailed
from openfang.host.backends import SandboxMissing
from openfang.host.chatter import LINES_A_SECOND
from openfang.host.command import Command
from openfang.host.folders import Seal, digest_of, files_of
from openfang.host.process import run
from openfang.host.sandbox import Bridged, Bubblewrap
from openfang.safety.environment import DEFAULT_PATH
from openfang.sources.mcp.spec import ServerSpec, Stdio

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.requirement("C16.2"), pytest.mark.needs("bwrap")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short name: that of a socket has to fit into a hundred bytes."""
    with TemporaryDirectory() as name:
        yield Path(name)


def confiner(folder: Path) -> Confiner:
    """As on a machine where we cannot make networks ourselves."""
    tool = Bubblewrap(shutil.which("bwrap") or "", makes_networks=False)
    return Confiner(folder / "openfang", folder / "user", tool)


def server(folder: Path) -> ServerSpec:
    own = folder / "openfang" / "servers" / "it"
    environment = {"PATH": DEFAULT_PATH, "HOME": str(own / "home"), "TMPDIR": str(own / "tmp")}
    return ServerSpec(
        name="it", reached=Stdio(argv=("true",), cwd=own, environment=environment, sandbox="auto")
    )


async def way_out(folder: Path, stack: AsyncExitStack) -> Path:
    prepared = await confiner(folder).prepared(server(folder), stack)
    assert isinstance(prepared.network, Bridged)
    return prepared.network.unix_socket


async def test_two_that_start_one_server_do_not_take_each_others_way_out(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        first = await way_out(folder, stack)
        async with AsyncExitStack() as shorter:
            second = await way_out(folder, shorter)
            assert first.parent == second.parent
            assert first != second
        await ask(first)
        assert not await anyio.Path(second).exists()


async def ask(way: Path) -> bytes:
    """Ask for this machine's loopback, which is refused."""
    async with await anyio.connect_unix(way) as stream:
        await stream.send(b"CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n")
        return await stream.receive()


async def test_refusals_do_not_flood_the_log(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openfang.mcp")
    with anyio.fail_after(30):
        async with AsyncExitStack() as stack:
            way = await way_out(folder, stack)
            started = anyio.current_time()
            for _ in range(3 * LINES_A_SECOND):
                assert b" 403 " in await ask(way)
            seconds = int(anyio.current_time() - started) + 2
    told = [line for line in caplog.messages if line.startswith("it was kept from 127.0.0.1: ")]
    assert LINES_A_SECOND <= len(told) <= min(seconds, 3) * LINES_A_SECOND


@pytest.mark.requirement("C11.3")
async def test_a_server_whose_folder_is_not_what_was_accepted_is_not_started(folder: Path) -> None:
    code = anyio.Path(folder / "code")
    await code.mkdir()
    await (code / "server.py").write_text("honest")
    files = await to_thread.run_sync(files_of, Path(code))
    spec = server(folder)
    assert isinstance(spec.reached, Stdio)
    sealed = replace(spec, reached=replace(spec.reached, seal=Seal(Path(code), digest_of(files))))
    async with AsyncExitStack() as stack:
        await confiner(folder).prepared(sealed, stack)
        await (code / "server.py").write_text("hostile")
        with pytest.raises(SourceFailed, match="not those that were accepted"):
            await confiner(folder).prepared(sealed, stack)


@pytest.mark.requirement("C16.1", "C16.4")
async def test_without_bubblewrap_a_command_runs_degraded_and_the_log_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openfang.mcp")
    found = await to_thread.run_sync(landlocked)
    degraded = Confiner(folder / "openfang", folder / "user", found)
    own = folder / "openfang" / "children" / "it"
    script = "echo $http_proxy; cat /etc/shadow; echo kept > $HOME/file && cat $HOME/file"
    command = Command(
        name="it",
        argv=("sh", "-c", script),
        environment={"PATH": DEFAULT_PATH, "HOME": str(own / "home")},
        cwd=own / "home",
        home=own / "home",
        tmp=own / "tmp",
        network=True,
    )
    async with degraded.command(command) as launch:
        finished = await run(launch)
    proxy, kept = finished.stdout.decode().splitlines()
    assert proxy.startswith("http://127.0.0.1:")
    assert kept == "kept"
    assert b"Permission denied" in finished.stderr
    assert caplog.messages == ["it runs without a whole sandbox: bubblewrap is not installed"]
    with pytest.raises(SandboxMissing, match="degraded"):
        async with degraded.command(replace(command, sandbox="required")):
            pass
