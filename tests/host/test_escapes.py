"""Eighteen ways out of a sandbox, tried for real, and the truth about which are closed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import HELD, SYSTEM_PATH, Ground, bubblewrap

from openfang.host.egress import EgressRules, open_egress
from openfang.host.process import Child, Launch, run, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C16.1", "C16.4"), pytest.mark.needs("bwrap")]

# Each probe reaches something that is not the child's, or fails. Those that could harm the machine
# when they succeed are tried in the sandbox only, on things of the sandbox.
PROBES = """
import ctypes, json, os, signal, socket, struct, sys
target = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
probes = {}
def probe(function):
    probes[function.__name__] = function
def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
def holds(path, word):
    with open(path, "rb") as file:
        return word.encode() in file.read()
@probe
def read_secret(): return holds(target["folder"] + "/secret", target["secret"])
@probe
def read_shadow(): return holds("/etc/shadow", "root:")
@probe
def list_root(): return set(os.listdir("/root")) > {".pyenv"}
@probe
def write_outside():
    with open(target["folder"] + "/written", "w") as file:
        return file.write("x") == 1
@probe
def tcp_to_host(): return bool(socket.create_connection(("127.0.0.1", target["tcp"]), 2))
@probe
def udp_to_host():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", target["udp"]))
        sender.send(target["mark"].encode())
        sender.settimeout(1)
        return sender.recv(9) == b"answer"
@probe
def unix_path():
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(target["folder"] + "/socket")
        return True
@probe
def unix_abstract():
    with socket.socket(socket.AF_UNIX) as there:
        there.connect("\\0" + target["mark"])
        return True
@probe
def read_environment(): return holds(f"/proc/{target['pid']}/environ", target["secret"])
@probe
def signal_gateway():
    os.kill(target["pid"], 0)
    return holds(f"/proc/{target['pid']}/cmdline", target["mark"])
@probe
def trace_gateway():
    called(libc.ptrace(16, target["pid"], None, None))
    os.waitpid(target["pid"], 0x40000000)
    libc.ptrace(17, target["pid"], None, None)
    return True
@probe
def mount():
    if not target["sandboxed"]:
        return None
    return called(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
@probe
def inherited_secret():
    seen = [f"/proc/{name}/environ" for name in os.listdir("/proc") if name.isdigit()]
    if not target["sandboxed"]:
        seen = ["/proc/self/environ"]
    return any(holds(path, target["canary"]) for path in seen if os.access(path, os.R_OK))
@probe
def nested_namespace():
    child = os.fork()
    if child == 0:
        os._exit(libc.unshare(0x10000000) != 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
@probe
def keyctl(): return called(libc.syscall(250, 0, -3, 1, 0, 0))
@probe
def bpf():
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1), 128)
    return called(libc.syscall(321, 0, attributes, 128))
@probe
def io_uring(): return called(libc.syscall(425, 4, ctypes.create_string_buffer(120)))
found = {}
for name, function in probes.items():
    try:
        found[name] = function()
    except OSError:
        found[name] = False
print(json.dumps(found))
"""
# Without a filter of system calls these reach the kernel; on some machines it refuses by itself.
OPEN = {"keyctl", "bpf", "io_uring"}
NO_NESTING = "--disable-userns"
CANARY = "OPENFANG_TEST_CANARY"


@dataclass(frozen=True)
class Prey:
    """A process with a secret, and sockets that listen: what a child must not reach."""

    folder: Path
    mark: str
    secret: str
    pid: int
    tcp: int
    udp: int
    heard: socket.socket

    def words(self, *, sandboxed: bool) -> str:
        return json.dumps(
            {
                "folder": str(self.folder),
                "mark": self.mark,
                "secret": self.secret,
                "pid": self.pid,
                "tcp": self.tcp,
                "udp": self.udp,
                "canary": os.environ[CANARY],
                "sandboxed": sandboxed,
            }
        )


@pytest.fixture
def prey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prey]:
    mark, secret = f"mark-{uuid4().hex}", f"secret-{uuid4().hex}"
    monkeypatch.setenv(CANARY, f"canary-{uuid4().hex}")
    folder = tmp_path / "prey"
    folder.mkdir()
    (folder / "secret").write_text(secret)
    with ExitStack() as stack:
        tcp, path, abstract = (
            stack.enter_context(socket.socket(family))
            for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        )
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for listener, address in (
            (tcp, ("127.0.0.1", 0)),
            (path, str(folder / "socket")),
            (abstract, f"\0{mark}"),
        ):
            listener.bind(address)
            listener.listen()
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)  # noqa: FBT003 - its only argument
        process = stack.enter_context(
            subprocess.Popen(
                ["sh", "-c", "read end; exit", mark],
                env={"SECRET": secret, "PATH": SYSTEM_PATH},
                stdin=subprocess.PIPE,
            )
        )
        stack.callback(process.kill)
        yield Prey(
            folder=folder,
            mark=mark,
            secret=secret,
            pid=process.pid,
            tcp=tcp.getsockname()[1],
            udp=udp.getsockname()[1],
            heard=udp,
        )


def read(stdout: bytes, stderr: bytes) -> dict[str, bool | None]:
    assert stdout, stderr
    return cast("dict[str, bool | None]", json.loads(stdout))


async def reached(ground: Ground, prey: Prey, network: str) -> set[str]:
    """Try all of it in the sandbox, and give what was reached."""
    unix_socket = ground.make().unix_socket if network == "bridged" else None
    async with open_egress(EgressRules(), noted=print, unix_socket=unix_socket) as egress:
        finished = await ground.run(
            *(sys.executable, "-I", "-S", "-c", PROBES, prey.words(sandboxed=True)),
            egress=None if network == "none" else egress,
        )
    found = read(finished.stdout, finished.stderr)
    assert len(found) == 17
    with pytest.raises(BlockingIOError):
        prey.heard.recv(100)
    assert not await to_thread.run_sync((prey.folder / "written").exists)
    return {name for name, done in found.items() if done is not False}


@pytest.mark.parametrize("network", ["none", "handed", "bridged"])
async def test_a_sandboxed_child_reaches_nothing_of_ours(
    tmp_path: Path, prey: Prey, network: str
) -> None:
    found = await to_thread.run_sync(bubblewrap)
    nested = set[str]() if NO_NESTING in found.options else {"nested_namespace"}
    assert await reached(Ground(root=tmp_path), prey, network) <= OPEN | nested


async def test_an_older_bubblewrap_leaves_nested_namespaces_and_no_more(
    tmp_path: Path, prey: Prey
) -> None:
    older = replace(await to_thread.run_sync(bubblewrap), options=())
    ground = Ground(root=tmp_path, bubblewrap=older)
    assert await reached(ground, prey, "handed") <= OPEN | {"nested_namespace"}


async def test_without_a_sandbox_the_same_probes_reach_all_of_it(
    tmp_path: Path, prey: Prey
) -> None:
    """Or the test above would prove nothing."""
    launch = Launch(
        argv=(sys.executable, "-I", "-S", "-c", PROBES, prey.words(sandboxed=False)),
        cwd=tmp_path,
        environment={"PATH": SYSTEM_PATH, CANARY: os.environ[CANARY]},
        limits=HELD,
        timeout=20,
    )
    finished = await run(launch)
    found = read(finished.stdout, finished.stderr)
    closed = {name for name, done in found.items() if done is False}
    # The answer to a datagram would have to come from us; and not everybody is root.
    for_root = {"read_shadow", "list_root", "nested_namespace", "trace_gateway"}
    assert closed - OPEN <= {"udp_to_host"} | (for_root if os.geteuid() else set[str]())
    assert prey.heard.recv(100)


LISTENS = """
import socket, sys
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
listener.settimeout(20)
print("ready", flush=True)
listener.accept()
"""


class Ready(Child):
    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def received(self, fd: int, data: bytes) -> None:
        assert (fd, data) == (1, b"ready\n"), data
        self.heard.set()


async def test_a_port_of_the_child_is_not_reached_from_outside(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = (sys.executable, "-I", "-S", "-c", LISTENS, str(port))
    sandboxed = await to_thread.run_sync(lambda: Ground(root=tmp_path).launch(*argv))
    plain = replace(sandboxed, argv=argv, environment={"PATH": SYSTEM_PATH})
    with anyio.fail_after(10):
        async with started(sandboxed, Ready()) as child:
            await child.heard.wait()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
        async with started(plain, Ready()) as child:
            await child.heard.wait()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
