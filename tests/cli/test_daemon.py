"""`start`, `stop` and `status`: real daemons in processes of their own, signalled and killed."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import select
import shlex
import signal
import socket
import stat
import subprocess
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openfang import compat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from concurrent.futures import Future

    from tests.cli.conftest import Cli, Ran
    from tests.forked import Piped

pytestmark = pytest.mark.requirement("C12.1")

ANYWHERE = ("--listen", "127.0.0.1:0")
SECONDS = 30
A_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Here:
    """A daemon in the foreground, whose words and log are read as they come."""

    process: Piped
    url: str

    def logged(self, words: str) -> dict[str, Any]:
        """Wait for a line of the log."""
        assert self.process.stderr
        for line in self.process.stderr:
            if words in line.decode():
                return json.loads(line)
        raise AssertionError(f"never logged: {words}")

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def code(self) -> int:
        return self.process.wait(SECONDS)


@contextmanager
def here(openfang: Cli, *options: str) -> Generator[Here]:
    """Run a daemon in the foreground; whatever is left of it is killed."""
    process = openfang.start("start", *(options or ANYWHERE))
    with process:
        assert process.stdout
        try:
            said = _until(process.stdout, "address")
            yield Here(process, said.split()[-1])
        finally:
            process.kill()


def _until(lines: Iterator[bytes], word: str) -> str:
    for line in lines:
        if word in line.decode():
            return line.decode().strip()
    raise AssertionError(f"never said: {word}")


@contextmanager
def apart(openfang: Cli, *options: str) -> Generator[dict[str, Any]]:
    """Run a daemon in the background; yields its `daemon.json`."""
    ran = openfang("start", "--detach", *(options or ANYWHERE))
    assert ran.code == 0, ran.err
    try:
        yield read(openfang)
    finally:
        openfang("stop", "--kill")


def read(openfang: Cli) -> dict[str, Any]:
    return json.loads((openfang.home / "daemon.json").read_text())


@contextmanager
def asked(
    openfang: Cli, url: str, method: str, path: str, body: object = None
) -> Generator[http.client.HTTPResponse]:
    key = (openfang.home / "key").read_text().strip()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=SECONDS)
    with closing(connection):
        connection.request(method, path, content, headers)
        yield connection.getresponse()


def request(
    openfang: Cli, url: str, method: str, path: str, body: object = None
) -> tuple[int, Any]:
    with asked(openfang, url, method, path, body) as answer:
        return answer.status, json.loads(answer.read())


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for the test to say something into a pipe."""

    answer: Future[tuple[int, Any]]
    pipe: int

    def say(self, words: bytes) -> None:
        os.write(self.pipe, words)
        os.close(self.pipe)


@contextmanager
def in_flight(openfang: Cli, url: str) -> Generator[Waiting]:
    """Make a call over HTTP, and yield while it runs: its program reads from our pipe."""
    plan = openfang.home / "plan"
    plan.write_text("read from a pipe")
    spec = openfang("spec", "freeze", str(plan)).out.strip()
    folder = openfang.home / "workspaces" / "key-admin"
    folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / "pipe")
    body = {"arguments": {"command": ["cat", "pipe"]}, "context": {"spec_hash": spec}}
    with ThreadPoolExecutor(max_workers=1) as thread:
        path = "/api/tools/shell_exec/call"
        answer = thread.submit(request, openfang, url, "POST", path, body)
        # Opened as soon as somebody reads: the program runs.
        yield Waiting(answer, os.open(folder / "pipe", os.O_WRONLY))


def endings(openfang: Cli) -> list[str]:
    found = openfang("audit", "search", "--event", "tool_invocation_end", "--json").lines
    return [event["payload"]["outcome"] for event in found]


def intact(openfang: Cli) -> bool:
    return openfang("audit", "verify", "--json").json["intact"]


@pytest.fixture(scope="module")
def served(make_home: Callable[[], Cli]) -> Iterator[tuple[Cli, Ran]]:
    """A daemon in the background that the tests of this module share, and what its start said."""
    openfang = make_home()
    (openfang.home / "daemon.json").write_text('{"pid": 1, "listen_addr": "half')
    ran = openfang("start", "--detach", *ANYWHERE)
    yield openfang, ran
    openfang("stop", "--kill")


def test_a_daemon_in_the_background_is_there_when_the_command_returns(
    served: tuple[Cli, Ran],
) -> None:
    openfang, ran = served
    assert (ran.code, ran.err) == (0, "")
    found = read(openfang)
    assert f"http://{found['listen_addr']}" in ran.out
    assert str(found["pid"]) in ran.out
    assert stat.S_IMODE((openfang.home / "daemon.json").stat().st_mode) == 0o600
    assert request(openfang, f"http://{found['listen_addr']}", "GET", "/api/health") == (
        200,
        {"status": "ok"},
    )


def test_a_daemon_in_the_background_inherits_nothing(served: tuple[Cli, Ran]) -> None:
    openfang, _ = served
    process = Path(f"/proc/{read(openfang)['pid']}")
    assert (process / "cwd").resolve() == openfang.home
    assert os.getsid(int(process.name)) == int(process.name)
    files = {int(file.name): str(file.readlink()) for file in (process / "fd").iterdir()}
    log = str(openfang.home / "logs" / "daemon.log")
    assert (files[0], files[1], files[2]) == ("/dev/null", log, log)
    # Both ends of a pipe are the event loop's own; one end alone would lead to somebody else.
    pipes = [name for name in files.values() if name.startswith("pipe:")]
    assert not [name for name in pipes if pipes.count(name) == 1]
    environment = (process / "environ").read_bytes().decode().split("\0")
    assert f"OPENFANG_HOME={openfang.home}" in environment


@pytest.mark.requirement("C20")
def test_the_seeds_name_finds_it(served: tuple[Cli, Ran], tmp_path: Path) -> None:
    openfang, _ = served
    assert compat.find_daemon(openfang.home) == f"http://{read(openfang)['listen_addr']}"
    assert compat.find_daemon(tmp_path) is None


@pytest.mark.requirement("C12.1", "C2.9")
def test_status_tells_of_it(served: tuple[Cli, Ran]) -> None:
    openfang, _ = served
    body = openfang("status", "--json").json
    found = read(openfang)
    assert (body["running"], body["pid"]) == (True, found["pid"])
    assert body["url"] == f"http://{found['listen_addr']}"
    assert {"version", "started_at", "node", "tools", "approvals", "audit"} <= body.keys()
    assert (body["config"]["state"], body["config"]["problems"]) == ("in force", [])
    told = openfang("status", "--check").out
    assert f"The daemon runs: {body['url']}" in told
    assert str(body["audit"]["records"]) in told


def test_status_with_a_foreign_key_still_says_that_it_runs(served: tuple[Cli, Ran]) -> None:
    openfang, _ = served
    ran = openfang("status", "--json", env={"OPENFANG_API_KEY": "not-a-key"})
    assert (ran.code, ran.json["running"]) == (0, True)
    assert "node" not in ran.json
    assert ran.json["problem"]


@pytest.mark.parametrize("options", [("--detach",), ()])
def test_a_second_daemon_on_the_same_home_is_refused(
    served: tuple[Cli, Ran], options: tuple[str, ...]
) -> None:
    openfang, _ = served
    before = read(openfang)
    ran = openfang("start", *ANYWHERE, *options)
    assert ran.code == 1
    assert f"process {before['pid']} at http://{before['listen_addr']}" in ran.err
    assert "openfang stop" in ran.err
    assert read(openfang) == before


@pytest.mark.needs("curl")
def test_the_commands_that_it_prints_work_as_they_stand(
    served: tuple[Cli, Ran], tmp_path: Path
) -> None:
    _, ran = served
    _, _, commands = ran.out.partition("Try,")[2].partition("\n")
    _typed(commands, tmp_path)


def _typed(commands: str, folder: Path) -> None:
    """Type them into a shell that knows nothing yet: a call, the log, a call by HTTP."""
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        capture_output=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 1), done.stderr
    assert done.stderr.startswith(b"ok | call_")
    told, _, posted = done.stdout.decode().rstrip().rpartition("\n")
    assert "tool_invocation_end" in told
    assert json.loads(posted)["outcome"] == "ok"


def test_a_port_that_is_taken_is_named_with_who_has_it_and_ways_out(fresh: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "{}:{}".format(*taken.getsockname())
        ran = fresh("start", "--detach", "--listen", address)
        assert (ran.code, ran.out) == (1, "")
        assert f"{address} is in use, by " in ran.err
        assert f"(pid {os.getpid()})" in ran.err
        assert {"--listen", "OPENFANG_LISTEN", "api_listen"} <= set(ran.err.split())
        assert fresh("status", "--json").json["running"] is False
        assert fresh("status", "--check").code == 1
        try:
            ran = fresh("start", "--detach", "--listen", address, "--any-port")
            _, _, another = read(fresh)["listen_addr"].partition(":")
        finally:
            fresh("stop", "--kill")
    _, _, port = address.partition(":")
    assert another != port
    assert f"beware: Port {port} is in use: listening on {another} instead" in ran.err


def test_an_address_of_another_machine_is_not_offered_with_another_port(fresh: Cli) -> None:
    ran = fresh("start", "--detach", "--listen", "192.0.2.1:80")
    assert (ran.code, ran.out) == (1, "")
    assert "192.0.2.1:80 is not an address of this machine." in ran.err
    assert "192.0.2.1:0" not in ran.err


def test_a_daemon_that_stands_still_is_neither_absent_nor_passed_by(fresh: Cli) -> None:
    with here(fresh) as daemon:
        before = fresh.stored("SELECT COUNT(*) FROM audit")
        daemon.tell(signal.SIGSTOP)
        with ThreadPoolExecutor(max_workers=4) as side_by_side:
            asked = [
                side_by_side.submit(fresh.whole, *command.split())
                for command in ("tools call system_time", "config reload", "status --json")
            ]
            called, reloaded, status = (one.result() for one in asked)
        for ran in (called, reloaded):
            assert (ran.code, ran.out) == (1, "")
            assert f"does not answer: process {daemon.process.pid} holds the lock" in ran.err
            assert "openfang stop --kill" in ran.err
        assert (status.json["running"], status.json["pid"]) == (True, daemon.process.pid)
        assert "url" not in status.json
        assert fresh.stored("SELECT COUNT(*) FROM audit") == before
        stopped = fresh("stop", "--timeout", "0.2")
        assert (stopped.code, "it did not answer" in stopped.err) == (1, True)
        daemon.tell(signal.SIGCONT)
        assert daemon.code() == 0


def test_a_home_that_is_not_there_or_a_file_that_is_wrong_stops_the_start(
    fresh: Cli, tmp_path: Path
) -> None:
    nowhere = {"OPENFANG_HOME": str(tmp_path / "nowhere")}
    for options in ((), ("--detach",)):
        ran = fresh("start", *options, env=nowhere)
        assert (ran.code, ran.out) == (1, "")
        assert "openfang start --init" in ran.err
    assert not (tmp_path / "nowhere").exists()
    assert "openfang init" in fresh("status", env=nowhere).out
    assert fresh("stop", env=nowhere).code == 0
    fresh.configure('log_level = "loud"')
    ran = fresh("start", "--detach", *ANYWHERE)
    assert ran.code == 1
    assert "config.toml:7: policy.log_level" in ran.err
    assert fresh("status", "--json").json["config"]["problems"][0]["line"] == 7


def test_a_daemon_that_dies_before_it_is_ready_leaves_its_last_words(fresh: Cli) -> None:
    ran = fresh("start", "--detach", *ANYWHERE, env={"PYTHONHOME": "/nonexistent"})
    assert (ran.code, ran.out) == (1, "")
    assert "ended before it was ready: " in ran.err
    assert "/nonexistent" in ran.err
    assert str(fresh.home / "logs" / "daemon.log") in ran.err


@pytest.mark.parametrize("address", ["here", "127.0.0.1", "127.0.0.1:70000", "a b:1", ":1"])
def test_an_address_that_is_none_is_wrong_usage(fresh: Cli, address: str) -> None:
    assert fresh("start", "--listen", address).code == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_to_wait_that_is_none_is_wrong_usage(fresh: Cli, seconds: str) -> None:
    assert fresh("stop", f"--timeout={seconds}").code == 2


def test_a_daemon_that_was_killed_is_told_of_and_the_next_one_starts(fresh: Cli) -> None:
    with apart(fresh) as found:
        killed = found["pid"]
        kill(killed)
        ran = fresh("status", "--json")
        assert ran.json["running"] is False
        assert str(killed) in ran.json["found"]
        assert compat.find_daemon(fresh.home) is None
        with apart(fresh) as again:
            assert again["pid"] != killed
            assert fresh("status", "--json").json["pid"] == again["pid"]
            stopped = fresh("stop")
            assert (stopped.code, str(again["pid"]) in stopped.out) == (0, True)
            assert not (fresh.home / "daemon.json").exists()
            assert not Path(f"/proc/{again['pid']}/cwd").exists()
        again_stopped = fresh("stop")
        assert (again_stopped.code, "No daemon" in again_stopped.out) == (0, True)
    assert intact(fresh)


def kill(pid: int) -> None:
    """Kill a process that is not our child, and wait for its end."""
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    watch = select.poll()
    watch.register(handle, select.POLLIN)
    assert watch.poll(SECONDS * 1000)
    os.close(handle)


@pytest.mark.requirement("C7.13", "C14.2")
def test_a_call_in_flight_is_answered_and_streams_end_before_the_daemon_does(fresh: Cli) -> None:
    with (
        here(fresh) as daemon,
        in_flight(fresh, daemon.url) as call,
        asked(fresh, daemon.url, "GET", "/api/events") as stream,
    ):
        daemon.tell(signal.SIGTERM)
        assert stream.status == 200
        stream.read()
        daemon.logged("SIGTERM")
        assert not call.answer.done()
        call.say(b"said at last")
        status, body = call.answer.result(SECONDS)
        assert (status, body["outcome"]) == (200, "ok")
        assert "said at last" in body["content"][0]["text"]
        assert daemon.logged("Tool invoked: builtin:shell_exec, result: True")["trace"]
        assert daemon.code() == 0
    assert not (fresh.home / "daemon.json").exists()
    assert endings(fresh) == ["ok"]
    assert intact(fresh)
    assert fresh.stored("SELECT id FROM processes WHERE ended_at IS NULL") == []


def test_a_daemon_that_is_told_to_end_while_it_starts_ends_in_good_order(fresh: Cli) -> None:
    with fresh.start("start", *ANYWHERE) as process:
        assert process.stderr
        _until(process.stderr, "opens")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        assert process.wait(SECONDS) == 0, said
    assert "error:" not in said
    assert not (fresh.home / "daemon.json").exists()
    assert intact(fresh)


@pytest.mark.requirement("C7.13")
def test_a_second_signal_ends_at_once_and_the_next_start_records_the_ending(fresh: Cli) -> None:
    fresh.configure("[auth]\nrequire_key = false")
    with here(fresh) as daemon, in_flight(fresh, daemon.url) as call:
        assert daemon.logged("auth.require_key is false")["level"] == "warning"
        daemon.tell(signal.SIGINT)
        daemon.logged("SIGINT")
        daemon.tell(signal.SIGINT)
        assert daemon.code() == 130
        assert isinstance(call.answer.exception(SECONDS), (OSError, http.client.HTTPException))
        os.close(call.pipe)
    assert not (fresh.home / "daemon.json").exists()
    assert endings(fresh) == ["interrupted"]
    assert intact(fresh)


@pytest.mark.requirement("C7.13")
def test_a_daemon_that_waits_for_a_call_is_stopped_only_by_force(fresh: Cli) -> None:
    with apart(fresh) as found:
        url = f"http://{found['listen_addr']}"
        with in_flight(fresh, url) as call:
            ran = fresh("stop", "--timeout", "0.1")
            assert (ran.code, ran.out) == (1, "")
            assert f"process {found['pid']}" in ran.err
            assert "openfang stop --kill" in ran.err
            ran = fresh("stop", "--kill")
            assert (ran.code, str(found["pid"]) in ran.out) == (0, True)
            assert call.answer.exception(SECONDS)
            os.close(call.pipe)
        assert fresh("status", "--json").json.keys().isdisjoint({"found", "pid"})
    assert endings(fresh) == ["interrupted"]


@pytest.mark.requirement("C2.9")
def test_sighup_reloads_and_a_bad_file_shows_in_status_with_its_line(fresh: Cli) -> None:
    with here(fresh) as daemon:
        fresh.configure("no_such_key = 1")
        daemon.tell(signal.SIGHUP)
        # Once because the file changed, and once more because it was wished for.
        for _ in range(2):
            assert "config.toml:7" in daemon.logged("configuration was not loaded")["message"]
        state = fresh("status", "--json").json["config"]
        assert (state["state"], state["problems"][0]["line"]) == ("rejected", 7)
        assert "config.toml:7: policy.no_such_key" in fresh("status").out
        daemon.tell(signal.SIGTERM)
        assert daemon.code() == 0


def test_a_daemon_ends_with_the_terminal_that_it_was_started_from(fresh: Cli) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        fresh.command("start", *ANYWHERE),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=fresh.environment(),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call
    )
    os.close(theirs)
    said = b""
    while b"audit tail" not in said:
        said += os.read(ours, 65_536)
    os.close(ours)
    assert process.wait(SECONDS) == 0
    assert fresh("status", "--json").json["running"] is False


@pytest.mark.needs("unshare", "ip")
def test_listening_on_every_interface_is_warned_of_and_reached_by_loopback(fresh: Cli) -> None:
    # In a network of its own, which has loopback and nothing else.
    words = shlex.join(fresh.command("start", "--listen", "0.0.0.0:0"))
    with subprocess.Popen(
        ["unshare", "-rn", "sh", "-c", f"ip link set lo up && exec {words}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=fresh.environment(),
    ) as process:
        assert process.stdout
        assert process.stderr
        assert "http://127.0.0.1:" in _until(process.stdout, "address")
        assert "other machines can reach it" in _until(process.stderr, "Listening on 0.0.0.0")
        assert read(fresh)["listen_addr"].startswith("0.0.0.0:")
        # Its network is not ours: it holds the lock, and does not answer here.
        found = fresh("status")
        assert (found.code, f"process {process.pid}" in found.out) == (0, True)
        assert "openfang stop" in found.out
        assert fresh("stop").code == 0
        assert process.wait(SECONDS) == 0


@pytest.mark.needs("make", "curl")
@pytest.mark.requirement("C19.1")
def test_make_run_makes_a_home_and_prints_commands_that_work(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    root = Path(__file__).parents[2]
    command = ["make", "--no-print-directory", "--old-file=.venv/.run", f"RUN_HOME={home}", "run"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    begun = time.monotonic()
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        for verdict in ("ALLOWED", "DENIED", "ASKS"):
            _until(process.stdout, verdict)
        assert time.monotonic() - begun < A_MINUTE
        _until(process.stdout, "Try,")
        commands = ""
        for line in process.stdout:
            commands += line.decode()
            if "Authorization" in commands:
                break
        try:
            assert shlex.quote(str(home / "key")) in commands
            _typed(commands, tmp_path)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(SECONDS)
    assert not (home / "daemon.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a home"]
