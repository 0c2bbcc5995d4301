from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import alive

import openfang
from openfang.host.process import Child, Finished, Launch, LaunchFailed, Limits, run, started

pytestmark = pytest.mark.requirement("C16.1")

PATH = "/usr/local/bin:/usr/bin:/bin"
SOURCES = Path(openfang.__path__[0]).parent


def python(
    tmp_path: Path, script: str, *, timeout: float = 20, limits: Limits | None = None
) -> Launch:
    """Start a script in `tmp_path`."""
    return Launch(
        argv=(sys.executable, "-I", "-S", "-c", script),
        cwd=tmp_path,
        environment={"PATH": PATH},
        timeout=timeout,
        limits=limits or Limits(),
    )


def shell(tmp_path: Path, script: str, **environment: str) -> Launch:
    return Launch(
        argv=("sh", "-c", script),
        cwd=tmp_path,
        environment={"PATH": PATH, **environment},
        timeout=20,
    )


async def survivors(file: Path) -> list[int]:
    """Read the pids that a script has written, and give those that still run."""

    def look() -> list[int]:
        pids = [int(word) for word in file.read_text().split()]
        assert pids
        return [pid for pid in pids if alive(pid)]

    return await to_thread.run_sync(look)


async def none_is_left(file: Path) -> None:
    """Wait until all that a script has named are gone: the kernel takes its time to bury them."""
    with anyio.fail_after(30):
        while await survivors(file):  # noqa: ASYNC110 - another process tells by its absence
            await anyio.sleep(0.01)


class Listener(Child):
    """Waits for the first word of a child."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = anyio.Event()

    def received(self, fd: int, data: bytes) -> None:
        assert (fd, data) == (1, b"ready\n")
        self.heard.set()


async def test_a_program_gets_its_input_and_gives_output_and_exit_code(tmp_path: Path) -> None:
    launch = shell(tmp_path, "cat; pwd >&2; exit 3")
    assert await run(_with_input(launch, b"in\0put")) == Finished(
        exit_code=3, signal=None, stdout=b"in\0put", stderr=f"{tmp_path}\n".encode()
    )


async def test_without_input_a_program_reads_an_empty_one(tmp_path: Path) -> None:
    assert (await run(shell(tmp_path, "cat"))).exit_code == 0


async def test_a_program_that_does_not_read_its_input_ends_all_the_same(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        finished = await run(_with_input(shell(tmp_path, "exit 0"), b"x" * 1_000_000))
    assert finished.exit_code == 0


async def test_the_usual_device_names_of_the_streams_work(tmp_path: Path) -> None:
    finished = await run(shell(tmp_path, "echo out > /dev/stdout; echo err > /dev/stderr"))
    assert (finished.stdout, finished.stderr) == (b"out\n", b"err\n")


async def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    argv = ("printf", "%s|", "$(touch made)", "; touch made", "`touch made`", "*", "a b")
    finished = await run(Launch(argv=argv, cwd=tmp_path, environment={"PATH": PATH}))
    assert finished.stdout == b"|".join(word.encode() for word in argv[2:]) + b"|"
    assert not await to_thread.run_sync((tmp_path / "made").exists)


async def test_a_signal_is_told_from_an_exit_code(tmp_path: Path) -> None:
    finished = await run(shell(tmp_path, "kill -USR1 $$"))
    assert (finished.exit_code, finished.signal) == (None, signal.SIGUSR1)
    assert not finished.timed_out


@pytest.mark.requirement("C3.8")
async def test_nothing_of_our_environment_reaches_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "leaked")
    finished = await run(python(tmp_path, "import os; print(sorted(os.environ))"))
    assert finished.stdout in {
        b"['OPENFANG_RUN', 'PATH']\n",
        b"['LC_CTYPE', 'OPENFANG_RUN', 'PATH']\n",  # the interpreter sets it for itself
    }


async def test_no_file_of_ours_reaches_the_child(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)  # noqa: FBT003 - its only argument
    try:
        finished = await run(shell(tmp_path, "ls /proc/$$/fd"))
    finally:
        os.close(read)
        os.close(write)
    assert str(read) not in finished.stdout.decode().split()
    assert {"0", "1", "2"} <= set(finished.stdout.decode().split())


async def test_a_child_cannot_gain_rights_and_dies_with_us(tmp_path: Path) -> None:
    finished = await run(shell(tmp_path, "grep NoNewPrivs /proc/self/status"))
    assert finished.stdout.split() == [b"NoNewPrivs:", b"1"]


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", "/no/such/program"])
async def test_a_missing_program_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(LaunchFailed, match=r"no.such.program") as failed:
        await run(Launch(argv=(name,), cwd=tmp_path, environment={"PATH": PATH}))
    assert failed.value.code == "launch_failed"


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed, match="nowhere"):
        await run(shell(tmp_path / "nowhere", "true"))


async def test_what_cannot_be_executed_is_refused(tmp_path: Path) -> None:
    def write() -> None:
        (tmp_path / "broken").write_bytes(b"\x7fELF nonsense")
        (tmp_path / "broken").chmod(0o755)

    await to_thread.run_sync(write)
    for argv in ((), ("",), ("./broken",), ("printf", "a\0b")):
        with pytest.raises(LaunchFailed):
            await run(Launch(argv=argv, cwd=tmp_path, environment={"PATH": PATH}))


async def test_a_program_is_found_by_the_childs_path_and_not_by_ours(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed):
        await run(Launch(argv=("sh",), cwd=tmp_path, environment={"PATH": str(tmp_path)}))


async def test_output_is_cut_at_the_limit_and_the_rest_is_drained(tmp_path: Path) -> None:
    launch = Launch(
        argv=("head", "-c", "100000000", "/dev/zero"),
        cwd=tmp_path,
        environment={"PATH": PATH},
        output_limit=1000,
        timeout=30,
    )
    tracemalloc.start()
    try:
        finished = await run(launch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished == Finished(
        exit_code=0, signal=None, stdout=bytes(1000), stderr=b"", stdout_truncated=True
    )
    assert peak < 8_000_000


async def test_output_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    launch = Launch(
        argv=("head", "-c", "5000", "/dev/zero"),
        cwd=tmp_path,
        environment={"PATH": PATH},
        output_limit=5000,
    )
    assert not (await run(launch)).stdout_truncated


# Each of these programs ends by itself after half a minute, should the code under test not end it.
STUBBORN = """
import os, signal, sys
signal.alarm(30)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open("pids", "w") as file:
    print(os.getpid(), file=file)
print("ready", flush=True)
while True:
    signal.pause()
"""


async def test_a_child_that_ignores_requests_to_stop_is_gone_after_its_timeout(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    finished = await run(python(tmp_path, STUBBORN, timeout=0.5))
    assert time.monotonic() - began < 10
    assert finished.timed_out
    assert (finished.signal, finished.stdout) == (signal.SIGKILL, b"ready\n")
    await none_is_left(tmp_path / "pids")


# Every way out of a process group that a program has: a session of its own, a parent that ends, an
# empty environment.
FAMILY = """
import os, signal, sys
def note():
    signal.alarm(30)
    with open("pids", "a") as file:
        print(os.getpid(), file=file)
read, write = os.pipe()
note()
middle = os.fork()
if middle == 0:
    os.setsid()
    note()
    if os.fork() == 0:
        note()
        os.set_inheritable(write, True)
        if sys.argv[1] == "forget":
            os.closerange(0, 3)
            os.execve("/bin/sh", ["sh", "-c", f"echo x >&{write}; exec {write}>&-; sleep 30"], {})
        os.write(write, b"x")
        os.closerange(0, 3)
        signal.pause()
    os._exit(0)
os.read(read, 1)
os.waitpid(middle, 0)
print("ready", flush=True)
if sys.argv[2] == "stay":
    signal.pause()
"""


def family(tmp_path: Path, *words: str) -> Launch:
    launch = python(tmp_path, FAMILY)
    return Launch(
        argv=(*launch.argv, *words), cwd=tmp_path, environment=launch.environment, timeout=20
    )


@pytest.mark.requirement("C3.8")
@pytest.mark.parametrize("memory", ["keep", "forget"])
async def test_descendants_in_sessions_of_their_own_are_gone_with_the_child(
    tmp_path: Path, memory: str
) -> None:
    with anyio.fail_after(30):
        async with started(family(tmp_path, memory, "stay"), Listener()) as child:
            await child.heard.wait()
            assert len(await survivors(tmp_path / "pids")) == 2
            began = time.monotonic()
    assert time.monotonic() - began < 10
    await none_is_left(tmp_path / "pids")


@pytest.mark.requirement("C3.8")
async def test_what_a_child_leaves_behind_when_it_ends_is_gone_too(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        finished = await run(family(tmp_path, "keep", "leave"))
    assert (finished.exit_code, finished.stdout) == (0, b"ready\n")
    await none_is_left(tmp_path / "pids")


@pytest.mark.requirement("C3.8")
async def test_a_background_job_that_holds_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        finished = await run(shell(tmp_path, "sleep 30 & echo started"))
    assert (finished.exit_code, finished.stdout) == (0, b"started\n")


@pytest.mark.requirement("C3.8")
async def test_cancelling_kills_the_child(tmp_path: Path) -> None:
    async def until_heard(scope: anyio.CancelScope, child: Listener) -> None:
        await child.heard.wait()
        scope.cancel()

    child = Listener()
    with anyio.fail_after(30), anyio.CancelScope() as scope:
        async with (
            started(python(tmp_path, STUBBORN), child),
            anyio.create_task_group() as group,
        ):
            group.start_soon(until_heard, scope, child)
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert child.returncode == -signal.SIGKILL
    await none_is_left(tmp_path / "pids")


BOMB = """
import os, signal
signal.alarm(30)
pids = [os.getpid()]
for _ in range(200):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        os.setsid()
        signal.alarm(30)
        signal.pause()
    pids.append(pid)
with open("pids", "w") as file:
    print(*pids, file=file)
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.requirement("C3.8")
async def test_two_hundred_children_are_gone_within_a_second(tmp_path: Path) -> None:
    launch = python(tmp_path, BOMB, limits=Limits(processes=4000))
    with anyio.fail_after(20):
        async with started(launch, Listener()) as child:
            await child.heard.wait()
            began = time.monotonic()
    assert time.monotonic() - began < 10
    await none_is_left(tmp_path / "pids")


WRITE_MUCH = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = open("big", "wb", 0)
file.write(bytes(2000))
file.write(b"x")
"""


@pytest.mark.parametrize(
    ("limits", "script", "expected"),
    [
        (Limits(memory=150_000_000), "bytearray(200_000_000)", b"MemoryError"),
        (Limits(open_files=16), "[open('/dev/null') for _ in range(50)] and 1", b"OSError"),
        (Limits(file_size=1000), WRITE_MUCH, b"OSError"),
    ],
)
async def test_limits_hold_from_the_first_instruction(
    tmp_path: Path, limits: Limits, script: str, expected: bytes
) -> None:
    finished = await run(python(tmp_path, script, limits=limits))
    assert finished.exit_code == 1
    assert expected in finished.stderr
    assert (await run(python(tmp_path, script))).exit_code == 0


async def test_processor_time_is_limited(tmp_path: Path) -> None:
    finished = await run(python(tmp_path, "while True: pass", limits=Limits(cpu_seconds=1)))
    assert finished.signal == signal.SIGKILL
    assert not finished.timed_out


async def test_the_limits_are_those_that_were_asked_for(tmp_path: Path) -> None:
    script = """
from resource import *
kinds = RLIMIT_AS, RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_CORE
print([getrlimit(kind) for kind in kinds])
"""
    limits = Limits(memory=500_000_000, processes=90, open_files=30, file_size=4000, cpu_seconds=7)
    finished = await run(python(tmp_path, script, limits=limits))
    expected = [(n, n) for n in (500_000_000, 90, 30, 4000, 7, 0)]
    assert finished.stdout.decode().strip() == str(expected)


DAEMON = """
import sys
from pathlib import Path
import anyio
from openfang.host.process import Child, Launch, started

class Echo(Child):
    def received(self, fd, data):
        print(data.decode(), end="", flush=True)

async def main():
    environment = {"PATH": "/usr/bin:/bin"}
    argv = ("sh", "-c", "echo $$; sleep 30")
    launch = Launch(argv=argv, cwd=Path("/"), environment=environment)
    async with started(launch, Echo()):
        await anyio.sleep_forever()

anyio.run(main, backend_options={"use_uvloop": True})
"""


@pytest.mark.requirement("C3.8")
def test_a_child_dies_with_the_process_that_started_it() -> None:
    argv = [sys.executable, "-c", DAEMON]
    environment = {"PATH": PATH, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        child = int(daemon.stdout.readline())
        handle = os.pidfd_open(child)
        daemon.kill()
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    assert ended.poll(1000)
    os.close(handle)


async def test_thirty_children_at_once_are_kept_apart(tmp_path: Path) -> None:
    answers: dict[int, bytes] = {}

    async def one(number: int) -> None:
        answers[number] = (await run(shell(tmp_path, f"echo {number}"))).stdout

    before = await _open_files()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for number in range(30):
                group.start_soon(one, number)
    assert answers == {number: f"{number}\n".encode() for number in range(30)}
    assert await _open_files() <= before + 1


async def _open_files() -> int:
    await anyio.wait_all_tasks_blocked()
    return await to_thread.run_sync(lambda: len(list(Path("/proc/self/fd").iterdir())))


def _with_input(launch: Launch, data: bytes) -> Launch:
    return Launch(
        argv=launch.argv, cwd=launch.cwd, environment=launch.environment, stdin=data, timeout=20
    )


async def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """A scope shields from scopes; a task that is cancelled, by a timeout say, has to wait too."""
    mark = f"given-up-{tmp_path}"
    code = "import time; time.sleep(60)"
    launch = Launch(argv=(sys.executable, "-c", code, mark), cwd=tmp_path, environment={})
    for turns in range(4):
        running = asyncio.ensure_future(run(launch))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert not await to_thread.run_sync(_with_word, mark)


def _with_word(word: str) -> list[str]:
    """Find who was started with this word."""
    found: list[str] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [str(file)] if word.encode() in file.read_bytes() else []
    return found
