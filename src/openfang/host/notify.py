"""Tells the service manager that started us how we are: one datagram for each thing (`sd_notify`).

Without `NOTIFY_SOCKET` nobody is told. One that cannot be reached is no reason to end.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_MICRO: Final = 1_000_000
_OFTEN: Final = 2


@dataclass(frozen=True, slots=True)
class Manager:
    """The service manager. `patience` is how long it takes silence for life, in seconds; 0: ever.

    Its socket is a path, or a name that lies in no file system and begins with `@`.
    """

    address: str = ""
    patience: float = 0.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Manager:
        """Read who wants to be told, and whether it is this process that should say it lives."""
        address = environ.get("NOTIFY_SOCKET", "")
        micros = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        patience = int(micros) / _MICRO if meant and micros.isdigit() else 0.0
        return cls(address, patience) if address.startswith(("/", "@")) else cls()

    def ready(self, status: str) -> None:
        """Say that it serves, or that it has been reloaded."""
        self._tell(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Say that it reads its configuration anew; `ready` ends it."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that it ends."""
        self._tell("STOPPING=1\nSTATUS=Calls in flight end")

    async def alive(self) -> None:
        """Say again and again that the event loop turns, where that is wanted."""
        while self.address and self.patience:
            self._tell("WATCHDOG=1")
            await anyio.sleep(self.patience / _OFTEN)

    def _tell(self, words: str) -> None:
        if not self.address:
            return
        place = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.setblocking(False)  # noqa: FBT003 - the library's signature
            one.sendto(words.encode(), place)
