"""A real daemon with a hostile server in its sandbox: whatever it does, the daemon serves on."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from tests.faults.daemon import NO_LIMITS, Daemon, make_home, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = [
    pytest.mark.requirement("C3.7", "C3.8", "C3.2", "C16.2"),
    pytest.mark.needs("bwrap"),
]
PEERS = Path(__file__).parents[1] / "sources" / "mcp" / "peers"
SECONDS = 60.0
MOST_MEMORY = 500 * 1024 * 1024
FAIR = "[guard]\nbreaker_secs = 0.05\n"


def entry(name: str, script: str, *options: str, more: str = "timeout_secs = 20") -> str:
    args = json.dumps(["-I", "-S", str(PEERS / script), *options])
    return (
        f'[[mcp_servers]]\nname = "{name}"\ntrust = "high"\nrisk = "LOW"\n{more}\n'
        f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n'
    )


@contextmanager
def daemon(folder: Path, *servers: str) -> Generator[Daemon]:
    config = "\n".join((NO_LIMITS, FAIR, *servers, entry("good", "echo.py")))
    with serving(make_home(folder / "home", config)) as running:
        until(lambda: health(running).get("good") == "healthy")
        yield running


def health(running: Daemon) -> dict[str, str]:
    return running.ask("GET", "/api/mcp/health").json


def configured(running: Daemon) -> dict[str, Any]:
    listed = running.ask("GET", "/api/mcp/servers").json
    return {one["name"]: one for one in listed["configured"]}


def until(seen: Callable[[], object]) -> None:
    """Look until it is so: from outside nothing is announced."""
    ends = time.monotonic() + SECONDS
    while not seen():
        assert time.monotonic() < ends
        time.sleep(0.02)


def processes(mark: str) -> list[int]:
    """Who was started with this word."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(folder.name))
    return found


class Neighbour:
    """Somebody who calls the good server all the time."""

    def __init__(self, running: Daemon) -> None:
        self.calls = 0
        self.slowest = 0.0
        self.wrong: list[Any] = []
        self._running = running
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._call)

    def _call(self) -> None:
        while not self._stop.wait(0.01):
            began = time.monotonic()
            answer = self._running.call("mcp:good:echo", text=str(self.calls)).json
            self.slowest = max(self.slowest, time.monotonic() - began)
            if answer.get("content") != [{"type": "text", "text": str(self.calls)}]:
                self.wrong.append(answer)
            self.calls += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def answers(running: Daemon) -> bool:
    """Whether the hostile server is there."""
    answer = running.call("mcp:bad:echo", text="x")
    return answer.status == 200 and answer.json["outcome"] == "ok"


FLOOD = b"\x1b[31m words \xff\n".hex()
HARM: list[tuple[str, dict[str, Any], str]] = [
    ("hang", {}, "timeout"),
    ("end", {}, "source_failed"),
    ("kill", {"signal": int(signal.SIGSEGV)}, "source_failed"),
    ("big", {"bytes": 64_000_000}, "source_failed"),
    ("close", {"fd": 1}, "timeout"),  # the sandbox holds the other end, too
    ("stop", {}, "timeout"),
    ("stderr", {"hex": FLOOD, "megabytes": 20}, ""),
    ("stdout", {"hex": FLOOD, "bytes": 500_000}, ""),
    ("ask", {"method": "sampling/createMessage", "times": 10_000}, ""),
    ("storm", {"times": 10_000}, ""),
    ("fork", {"times": 20, "die": True}, ""),
    ("big", {"bytes": 32_000_000}, ""),
]


def test_the_neighbours_calls_go_on_whatever_a_server_does(tmp_path: Path) -> None:
    bad = entry("bad", "hostile.py", f"mark={tmp_path}", "stubborn", more="timeout_secs = 2")
    with daemon(tmp_path, bad) as running:
        until(lambda: answers(running))
        before = running.memory()
        for tool, arguments, code in HARM:
            with Neighbour(running) as neighbour:
                answer = running.call(f"mcp:bad:{tool}", **arguments)
                called = neighbour.calls
                until(lambda seen=neighbour, called=called: seen.calls > called)
            assert (neighbour.wrong, neighbour.slowest < 20) == ([], True), tool
            assert answer.headers.get("openfang-failure", "") == code, (tool, answer.json)
            if code:
                assert "bad" in answer.json["content"][0]["text"]
                assert answer.json["structured"]["way_out"]
            if tool in {"stop", "close"}:  # nobody but the operator gives up on it so soon
                running.ask("POST", "/api/mcp/servers/bad/restart")
            until(lambda: answers(running))
            assert health(running)["good"] == "healthy"
        assert running.memory() - before < MOST_MEMORY
        # Its family is gone with it: what is left are the sandbox and the server that serves now.
        until(lambda: len(processes(f"mark={tmp_path}")) <= 3)
        assert running.home.complaints() == []
        assert running.healthy()
    assert running.ended() == 0
    until(lambda: not processes(f"mark={tmp_path}"))
    endings = running.home.endings()
    assert all(len(found) == 1 for found in endings.values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_daemon_ends(tmp_path: Path, number: signal.Signals) -> None:
    mark = f"mark={tmp_path}"
    bad = entry("bad", "hostile.py", mark, "stubborn", more="timeout_secs = 1")
    frozen = entry("frozen", "hostile.py", mark, "start=silent")
    with daemon(tmp_path, bad, frozen) as running:
        until(lambda: answers(running))
        assert running.call("mcp:bad:fork", times=20).json["outcome"] == "ok"
        assert running.call("mcp:bad:stop").headers["openfang-failure"] == "timeout"
        assert len(processes(mark)) >= 2
        running.tell(number)
        assert running.ended() == (0 if number is signal.SIGTERM else -signal.SIGKILL)
        began = time.monotonic()
        until(lambda: not processes(mark))
        assert time.monotonic() - began < 10


def test_a_server_that_never_starts_delays_nobody(tmp_path: Path) -> None:
    slow = [entry(f"slow{n}", "hostile.py", "start=silent") for n in range(3)]
    dead = entry("dead", "hostile.py", "start=exit")
    with daemon(tmp_path, *slow, dead) as running:
        assert running.call("mcp:good:echo", text="x").json["outcome"] == "ok"
        until(lambda: configured(running)["dead"]["last_error"])
        found, listed = configured(running), running.ask("GET", "/api/mcp/servers").json
        assert [one["name"] for one in listed["connected"]] == ["good"]
        assert found["dead"]["last_error"] == "It ended with exit code 5"
        assert {found[f"slow{n}"]["state"] for n in range(3)} == {"connecting"}
        shown = running.home.run("servers", "show", "dead").stdout
        assert "I will not start." in shown


def test_after_a_restart_a_call_waits_for_its_server(tmp_path: Path) -> None:
    with daemon(tmp_path, entry("late", "hostile.py", "late=1")) as running:
        until(lambda: health(running)["late"] == "healthy")
    assert running.ended() == 0
    with serving(running.home) as again:
        for name in ("late", "good"):
            answer = again.call(f"mcp:{name}:echo", text="there?")
            assert answer.json["content"] == [{"type": "text", "text": "there?"}]
