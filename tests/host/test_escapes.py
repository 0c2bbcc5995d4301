"""Ways out of a sandbox, tried for real on both backends, and the truth about which are closed."""

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
from tests.host.confining import HELD, SYSTEM_PATH, Ground, bubblewrap, landlocked

from openfang.host.egress import EgressRules, open_egress
from openfang.host.landlock import Version
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
def climb():
    return holds(os.environ["HOME"] + "/../" * 20 + target["folder"] + "/secret", target["secret"])
@probe
def follow_a_link():
    link = os.environ["HOME"] + "/link"
    os.symlink(target["folder"], link)
    return holds(link + "/secret", target["secret"])
@probe
def another_root():
    root = f"/proc/{target['pid']}/root"
    return holds(root + target["folder"] + "/secret", target["secret"])
@probe
def inherited_file(): return any(map(is_open, range(3, 1024)))
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
@probe
def read_memory():
    word = ctypes.create_string_buffer(8)
    near = struct.pack("PN", ctypes.addressof(word), 8)
    return called(libc.process_vm_readv(os.getpid(), near, 1, near, 1, 0))
@probe
def cloned_namespace():
    child = libc.syscall(56, 0x10000011, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return called(child) and bool(os.waitpid(child, 0))
@probe
def raw_packets(): return bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
@probe
def other_machine(): return bool(socket.socket(40, socket.SOCK_STREAM))
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
# What the filter of system calls alone closes; on some machines the kernel refuses by itself.
CALLS = {"keyctl", "bpf", "io_uring", "read_memory", "raw_packets", "other_machine"}
NESTING = {"nested_namespace", "cloned_namespace"}
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
        held = stack.enter_context((folder / "secret").open())
        os.set_inheritable(held.fileno(), True)  # noqa: FBT003 - as it is called
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
    local = network == "local"
    async with open_egress(
        EgressRules(), noted=print, unix_socket=unix_socket, local=local
    ) as egress:
        finished = await ground.run(
            *(sys.executable, "-I", "-S", "-c", PROBES, prey.words(sandboxed=True)),
            egress=None if network == "none" else egress,
        )
    found = read(finished.stdout, finished.stderr)
    assert len(found) == 25
    with pytest.raises(BlockingIOError):
        prey.heard.recv(100)
    assert not await to_thread.run_sync((prey.folder / "written").exists)
    return {name for name, done in found.items() if done is not False}


@pytest.mark.parametrize("network", ["none", "handed", "bridged"])
async def test_a_sandboxed_child_reaches_nothing_of_ours(
    tmp_path: Path, prey: Prey, network: str
) -> None:
    assert await reached(Ground(root=tmp_path), prey, network) == set()


@pytest.mark.parametrize("network", ["none", "local"])
async def test_a_child_in_the_degraded_sandbox_reaches_nothing_of_ours_either(
    tmp_path: Path, prey: Prey, network: str
) -> None:
    found = await to_thread.run_sync(landlocked)
    open_still = set[str]()
    if not Version(found.version).holds_peers:
        open_still = {"unix_abstract", "signal_gateway"}
    assert await reached(Ground(root=tmp_path, backend=found), prey, network) <= open_still


async def test_without_the_filter_the_kernel_is_what_the_probes_reach(
    tmp_path: Path, prey: Prey
) -> None:
    """So it is the filter that keeps them from it above; here it is named, nothing more is lost."""
    unfiltered = replace(await to_thread.run_sync(bubblewrap), filters=False)
    ground = Ground(root=tmp_path, backend=unfiltered)
    assert await reached(ground, prey, "handed") <= CALLS | {"cloned_namespace"}


async def test_an_older_bubblewrap_is_made_up_for_by_the_filter(tmp_path: Path, prey: Prey) -> None:
    older = replace(await to_thread.run_sync(bubblewrap), options=())
    assert await reached(Ground(root=tmp_path, backend=older), prey, "handed") == set()
    unfiltered = Ground(root=tmp_path / "again", backend=replace(older, filters=False))
    assert await reached(unfiltered, prey, "handed") <= CALLS | NESTING


async def test_without_a_sandbox_the_same_probes_reach_all_of_it(
    tmp_path: Path, prey: Prey
) -> None:
    """Or the test above would prove nothing."""
    launch = Launch(
        argv=(sys.executable, "-I", "-S", "-c", PROBES, prey.words(sandboxed=False)),
        cwd=tmp_path,
        environment={"PATH": SYSTEM_PATH, "HOME": str(tmp_path), CANARY: os.environ[CANARY]},
        limits=HELD,
        timeout=20,
    )
    finished = await run(launch)
    found = read(finished.stdout, finished.stderr)
    closed = {name for name, done in found.items() if done is False}
    # The answer to a datagram would have to come from us; and not everybody is root.
    for_root = {"read_shadow", "list_root", "trace_gateway", "another_root", *NESTING}
    # Files are never inherited.
    never = {"udp_to_host", "inherited_file"}
    assert closed - CALLS <= never | (for_root if os.geteuid() else set[str]())
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
    with anyio.fail_after(30):
        async with started(sandboxed, Ready()) as child:
            await child.heard.wait()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
        async with started(_plain(argv, tmp_path), Ready()) as child:
            await child.heard.wait()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()


async def test_a_child_in_the_degraded_sandbox_listens_nowhere(tmp_path: Path) -> None:
    ground = Ground(root=tmp_path, backend=await to_thread.run_sync(landlocked))
    async with open_egress(EgressRules(), noted=print, local=True) as egress:
        words = (sys.executable, "-I", "-S", "-c", LISTENS, "0")
        finished = await ground.run(*words, egress=egress)
    assert finished.exit_code == 1
    assert b"PermissionError" in finished.stderr


def _plain(argv: tuple[str, ...], folder: Path) -> Launch:
    return Launch(argv=argv, cwd=folder, environment={"PATH": SYSTEM_PATH}, limits=HELD)
