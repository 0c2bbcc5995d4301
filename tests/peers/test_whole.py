"""Real servers behind a real daemon, seen from outside: by its commands, and in /proc."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import NO_LIMITS, make_home, serving
from tests.host.confining import alive
from tests.peers import servers
from tests.peers.servers import Server, install, runners

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.daemon import Daemon, Home

pytestmark = [
    pytest.mark.requirement("C16.1", "C16.4", "C14.1", "C4.8"),
    pytest.mark.needs("bwrap"),
]
ECHO = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
NAMESPACES = ("mnt", "pid", "net", "ipc")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A person's home with the node's in it; one server may see all of it, and one is not held."""
    person = tmp_path_factory.mktemp("person")
    (person / ".ssh").mkdir()
    (person / ".ssh" / "id").write_text("a key")
    (person / "letter").write_text("a letter")
    entries = (
        servers.filesystem(person, sandbox="required"),
        servers.everything(),
        Server(name="bare", command="python3", args=(str(ECHO),), keys={"sandbox": "off"}),
    )
    home = make_home(person / "home", NO_LIMITS + "\n".join(one.entry for one in entries))
    with serving(home) as served:
        wait_for(served, "files", "everything", "bare")
        yield served


def wait_for(daemon: Daemon, *names: str) -> None:
    """Wait until these servers are connected."""
    for name in names:
        found = {"state": "connecting"}
        while found["state"] in {"waiting", "connecting"}:
            found = daemon.ask("GET", f"/api/mcp/servers/{name}").json
        assert found["state"] == "connected", found


def said(home: Home, *words: str, code: int = 0) -> Any:
    """Run a command, and read what it printed as JSON."""
    ran = home.run(*words)
    assert ran.returncode == code, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def read(daemon: Daemon, name: str) -> dict[str, Any]:
    """Have a file of the person's read."""
    path = daemon.home.path.parent / name
    assert path.is_file()
    return daemon.call("mcp:files:read_text_file", path=str(path)).json


def test_the_commands_say_what_is_there_and_how_it_is(daemon: Daemon) -> None:
    home = daemon.home
    listed = said(home, "servers", "list", "--json")
    counts = {one["name"]: one["tools_count"] for one in listed["connected"]}
    assert counts == {"files": 14, "everything": 16, "bare": 1}
    health = said(home, "servers", "health", "--json")
    assert health == dict.fromkeys(("bare", "everything", "files"), "healthy")
    tools = said(home, "servers", "tools", "files", "--json")
    assert "mcp:files:read_text_file" in {tool["id"] for tool in tools}
    assert "Secure MCP Filesystem Server running" in home.run("servers", "logs", "files").stdout
    tried = said(home, "servers", "test", "everything", "--json")
    found = (tried["ok"], tried["protocol_version"], len(tried["tools"]))
    assert found == (True, servers.HANDSHAKE, 16)
    asked = json.dumps({"message": "hello"})
    called = said(home, "tools", "call", "mcp:everything:echo", "--json", "--args", asked)
    assert called["content"] == [{"type": "text", "text": "Echo: hello"}]


def test_a_server_that_was_given_a_home_reads_what_is_in_it(daemon: Daemon) -> None:
    letter = read(daemon, "letter")
    assert (letter["outcome"], letter["structured"]) == ("ok", {"content": "a letter"})


@pytest.mark.requirement("C16.2")
@pytest.mark.parametrize("hidden", [".ssh/id", "home/key"])
def test_what_the_server_would_give_away_the_sandbox_hides(daemon: Daemon, hidden: str) -> None:
    """It was given the whole home. The keys in it are not in the home that it sees."""
    found = read(daemon, hidden)
    assert found["outcome"] == "error"
    assert "no such file" in found["content"][0]["text"].lower()


# What holds a child


def children(pid: int) -> list[int]:
    """Find what any of its threads has started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for thread in threads for one in (thread / "children").read_text().split()]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return [*found, *(one for child in found for one in descendants(child))]


def child_of(daemon: Daemon, word: str) -> int:
    """Find the program of a server below the daemon: the innermost with this word."""
    named = [
        pid
        for pid in descendants(daemon.process.pid)
        if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return named[-1]


def namespaces(pid: int | str) -> dict[str, str]:
    return {name: str(Path(f"/proc/{pid}/ns/{name}").readlink()) for name in NAMESPACES}


def shown(daemon: Daemon, server: str) -> list[dict[str, Any]]:
    return daemon.ask("GET", f"/api/mcp/servers/{server}").json["layers"]


def test_the_layers_are_those_that_proc_shows(daemon: Daemon) -> None:
    files, everything = child_of(daemon, "server-filesystem"), child_of(daemon, "server-everything")
    ours, first, second = namespaces("self"), namespaces(files), namespaces(everything)
    for name in NAMESPACES:
        assert len({ours[name], first[name], second[name]}) == 3, name
    status = Path(f"/proc/{files}/status").read_text()
    assert "\nCapEff:\t0000000000000000\n" in status
    assert "\nNoNewPrivs:\t1\n" in status
    for server in ("files", "everything"):
        layers = shown(daemon, server)
        active = {layer["name"]: layer["active"] for layer in layers}
        held = ("backend", "files", "processes", "messages", "network", "privileges")
        assert all(active[name] for name in (*held, "system calls", "resources")), layers
        assert "\nSeccomp:\t2\n" in status
        assert active["own user"] is (f"\nUid:\t{os.geteuid()}\t" not in status)
        assert active["own user"] is (os.geteuid() == 0)
    told = daemon.home.run("servers", "show", "files").stdout
    assert "network: yes (only the guarded egress)" in told
    assert "system calls: yes (filtered)" in told


def test_a_server_without_a_sandbox_is_shown_as_such(daemon: Daemon) -> None:
    bare = child_of(daemon, "echo.py")
    assert namespaces(bare) == namespaces("self")
    assert not any(layer["active"] for layer in shown(daemon, "bare"))
    told = daemon.home.run("servers", "show", "bare").stdout
    assert 'none: the configuration says sandbox = "off"' in told


def test_the_doctor_says_what_the_machine_offers(daemon: Daemon) -> None:
    checks = {check["check"]: check for check in said(daemon.home, "doctor", "--json")}
    found = checks["sandbox layers"]
    assert (found["health"], "servers run in bubblewrap" in found["text"]) == ("ok", True)


# The end


def gone_soon(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
    return True


@pytest.mark.requirement("C3.8")
def test_no_descendant_is_left_when_the_daemon_is_killed(tmp_path: Path) -> None:
    """`npx` starts a shell that starts the server: a family of four in each sandbox."""
    path = runners(tmp_path / "prefix")
    args = ("-y", "@modelcontextprotocol/server-everything")
    entries = [
        Server(name=name, command="npx", args=args, keys={"env": {"PATH": path}})
        for name in ("one", "two")
    ]
    home = make_home(tmp_path / "home", NO_LIMITS + "\n".join(one.entry for one in entries))
    for name in ("one", "two"):
        install(home.path / "servers" / name / "home")
    with serving(home) as daemon:
        wait_for(daemon, "one", "two")
        first, second = family(daemon, "one"), family(daemon, "two")
        assert min(len(first), len(second)) >= 4
        assert home.run("servers", "disable", "one").returncode == 0
        assert gone_soon(first)
        assert all(map(alive, second))
        daemon.tell(signal.SIGKILL)
        assert gone_soon(second)


def family(daemon: Daemon, name: str) -> list[int]:
    """Find the processes of a server: those whose home is its own."""
    home = f"HOME={daemon.home.path / 'servers' / name / 'home'}".encode()
    everybody = descendants(daemon.process.pid)
    return [pid for pid in everybody if home in Path(f"/proc/{pid}/environ").read_bytes()]
