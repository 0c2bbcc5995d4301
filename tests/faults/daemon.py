"""A daemon in a process of its own, on a home of the test's own, seen only from outside."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import socket
import sqlite3
import subprocess
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.forked import SECONDS, command, run, started

from openfang.app.home.new import init_home

if TYPE_CHECKING:
    import signal
    from collections.abc import Generator, Mapping, Sequence
    from io import FileIO

    from tests.forked import Process

NO_LIMITS = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"
_ROOT = Path(__file__).parents[2]
_SERVES = re.compile(rb"^address +http://(\S+):([0-9]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def rule(self) -> str:
        """The rule of the problem that it must be."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return self.json["rule"]


@dataclass(frozen=True, slots=True)
class Home:
    """The files of a node, and the commands that look at them."""

    path: Path

    @property
    def key(self) -> str:
        return (self.path / "key").read_text().strip()

    @property
    def log(self) -> Path:
        return self.path.parent / f"{self.path.name}.log"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "LANG": "C.UTF-8",
            "OPENFANG_HOME": str(self.path),
        }

    def command(self, *words: str) -> list[str]:
        return command(*words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = run(words, self.environment)
        out, err = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(words, done.returncode, out, err)

    def verified(self) -> dict[str, Any]:
        """What `openfang audit verify` says."""
        return json.loads(self.run("audit", "verify", "--json").stdout)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Read the database as any other program can."""
        file = f"file:{self.path / 'openfang.db'}?mode=ro"
        with closing(sqlite3.connect(file, uri=True, timeout=SECONDS)) as database:
            return database.execute(sql, parameters).fetchall()

    def endings(self) -> dict[str, list[str]]:
        """How each call that began has ended, by its id."""
        sql = """
            SELECT started.call_id, json_extract(ended.payload, '$.outcome') FROM audit AS started
            LEFT JOIN audit AS ended ON ended.call_id = started.call_id
                AND ended.event = 'tool_invocation_end'
            WHERE started.event = 'tool_invocation_start'
        """
        found: dict[str, list[str]] = {}
        for call, outcome in self.rows(sql):
            found.setdefault(call, []).extend([] if outcome is None else [outcome])
        return found

    def complaints(self) -> list[str]:
        """What the log of the daemon says of its own mistakes."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if "Traceback" in line or '"level":"error"' in line]


def make_home(folder: Path, config: str = NO_LIMITS) -> Home:
    """Make a home whose `config.toml` says this."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config)
    init_home(folder, {"HOME": str(folder.parent)})
    return Home(folder)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon that serves."""

    home: Home
    process: Process
    address: tuple[str, int]
    key: str

    def connect(self, timeout: float = SECONDS) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=timeout)

    def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            **(more or {}),
        }

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Ask on a connection of its own."""
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        with closing(self.connect()) as connection:
            connection.request(method, path, content, self.headers(headers))
            return read(connection)

    def call(self, tool: str, **arguments: Any) -> Answered:
        return self.ask("POST", f"/api/tools/{tool}/call", {"arguments": arguments})

    def healthy(self) -> bool:
        return self.ask("GET", "/api/health").json == {"status": "ok"}

    def request(self, method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
        """Write a request as it goes over the wire."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"Authorization: Bearer {self.key}", *headers]
        lines += [f"Content-Length: {len(body)}"] if body else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def program(self, name: str) -> tuple[bytes, Path]:
        """A call whose program reads from a pipe for as long as nobody writes, and the pipe."""
        plan = {"name": "plan", "content": f"read from {name}"}
        spec = self.ask("POST", "/api/specs", plan).json["hash"]
        pipe = self.home.path / "workspaces" / "key-admin" / name
        pipe.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(pipe)
        body = {"arguments": {"command": ["cat", name]}, "context": {"spec_hash": spec}}
        path = "/api/tools/shell_exec/call"
        return self.request("POST", path, body=json.dumps(body).encode()), pipe

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end, and say with which code."""
        return self.process.wait(SECONDS)

    def memory(self) -> int:
        """Bytes of memory that are its own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^RssAnon:\s+([0-9]+) kB$", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def files(self) -> list[str]:
        """What it has open, as two looks agree: now and then it reads a file for a moment."""
        before, found = None, self._files()
        while found != before:
            before, found = found, self._files()
        return found

    def _files(self) -> list[str]:
        """What it has open when nobody is connected but who asks, and a call was made."""
        with closing(self.connect()) as connection:
            connection.request("POST", "/api/tools/system_time/call", "{}", self.headers())
            assert read(connection).status == 200
            found = self._open()
            found.remove("socket")
            return found

    def _open(self) -> list[str]:
        """But for its database: it opens that once more when there is need."""
        found: list[str] = []
        for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                name, _, _ = str(file.readlink()).partition(":[")
                found += [] if "openfang.db" in name else [name]
        return sorted(found)

    def wait_for_files(self, files: list[str]) -> None:
        """Wait until these are open and no others: whoever hung up is noticed a little later."""
        found = list[str]()
        for _ in range(5000):
            found = self.files()
            if found == files:
                return
        raise AssertionError((found, files))


@contextmanager
def in_flight(daemon: Daemon, name: str) -> Generator[tuple[socket.socket, int]]:
    """A call that runs: its connection, and a handle to write to what its program reads from."""
    request, pipe = daemon.program(name)
    with socket.create_connection(daemon.address, SECONDS) as client:
        client.sendall(request)
        writing = os.open(pipe, os.O_WRONLY)  # opened as soon as the program reads
        try:
            yield client, writing
        finally:
            os.close(writing)


def nobody_reads(writing: int) -> bool:
    """Wait until whoever read from this pipe has gone."""
    watch = select.poll()
    watch.register(writing, 0)
    found = watch.poll(SECONDS * 1000)
    return bool(found) and bool(found[0][1] & select.POLLERR)


def read(connection: http.client.HTTPConnection) -> Answered:
    """Read the answer to what was asked on this connection."""
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answered(response.status, headers, response.read())


@contextmanager
def serving(home: Home, *, anew: bool = False) -> Generator[Daemon]:
    """Serve a home as `openfang start` does; whatever is left of it is killed.

    With `anew` it is a new interpreter, and what it takes is all its own.
    """
    words, environment = ("start", "--listen", "127.0.0.1:0"), home.environment
    with (
        home.log.open("ab") as log,
        started(words, environment, log.fileno(), _ROOT, anew=anew) as (process, said),
    ):
        yield Daemon(home, process, _address(said, home), home.key)
        process.terminate()
        process.wait(SECONDS)


def _address(stdout: FileIO, home: Home) -> tuple[str, int]:
    said = b""
    watch = select.poll()
    watch.register(stdout, select.POLLIN | select.POLLHUP)
    while not (found := _SERVES.search(said)):
        assert watch.poll(SECONDS * 1000), "it never said where it is"
        more = os.read(stdout.fileno(), 65_536)
        assert more, home.log.read_text()
        said += more
    return found[1].decode(), int(found[2])
