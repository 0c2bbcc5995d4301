"""Readers behind the log: each gets every entry at least once, in order, and delays nobody.

A sink's place in the log is stored, so that what was written while it was away is passed on later.
Of several processes on one home, one at a time feeds the sinks. Each of several nodes passes on the
records of its own chain, and those that a node which is gone has left behind.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import orjson
from anyio import to_thread

from openfang.app.plugins import load_plugin
from openfang.core.bookmarks import ALONE
from openfang.core.errors import OpenFangError
from openfang.core.events import AuditEvent
from openfang.core.values import dataclass
from openfang.storage.log import batch
from openfang.storage.state import Settings, advance, cursor
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from openfang.app.heirs import Heirs
    from openfang.config.models import Config
    from openfang.core.ports import AuditSink
    from openfang.storage.ports import Reader, Storage, Writes

_log = logging.getLogger("openfang.audit")
_POLL_SECONDS = 0.25
_SINK_SECONDS = 30.0
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends each entry to a file, as one line of JSON."""

    path: Path

    async def handle_audit_event(self, event: AuditEvent) -> None:
        """Write one line."""
        await to_thread.run_sync(self._append, orjson.dumps(event.as_json()) + b"\n")

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(line)


class Stdout:
    """Writes each entry to standard output, for whoever collects it there."""

    async def handle_audit_event(self, event: AuditEvent) -> None:
        """Write one line."""
        sys.stdout.write(orjson.dumps(event.as_json()).decode() + "\n")
        sys.stdout.flush()


def configured_sinks(config: Config) -> dict[str, AuditSink]:
    """Make the sinks that the configuration names."""
    audit = config.audit
    sinks: dict[str, AuditSink] = {}
    if audit.jsonl is not None:
        sinks[f"jsonl:{audit.jsonl}"] = JsonLines(Path(audit.jsonl))
    if audit.stdout:
        sinks["stdout"] = Stdout()
    for plugin in config.plugins.audit_handlers:
        sinks[f"plugin:{plugin}"] = load_plugin(plugin)
    return sinks


@dataclass(slots=True)
class Sinks:
    """The sinks by name, and how far each has read."""

    database: Storage
    writer: Writes
    lock: Path
    heirs: Heirs
    sinks: dict[str, AuditSink]

    def register(self, name: str, sink: AuditSink) -> None:
        """Add a sink; it is given everything since it last read under this name."""
        self.sinks[name] = sink

    def remove(self, name: str) -> None:
        """Take a sink away; its place in the log is kept."""
        self.sinks.pop(name, None)

    async def run(self) -> None:
        """Pass entries on as they come, until cancelled."""
        while True:
            await self._tried()
            await anyio.sleep(_POLL_SECONDS)

    async def _tried(self) -> None:
        """Whatever keeps a sink from being fed (a locked database) is tried again later."""
        try:
            await self.drain()
        except* (OSError, OpenFangError) as errors:
            _log.warning("audit sinks wait: %s", errors.exceptions[0])

    async def drain(self) -> None:
        """Pass on everything that is in the log now, to each sink by itself."""
        if not self.sinks:
            return
        with _only_one(self.lock) as mine:
            if mine:
                chains = await self.heirs.chains()
                async with anyio.create_task_group() as feeding:
                    for name, sink in tuple(self.sinks.items()):
                        feeding.start_soon(self._feed, name, sink, chains)

    async def close(self) -> None:
        """Pass on what is left, within a deadline; the rest waits for the next start."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._tried()

    async def _feed(self, name: str, sink: AuditSink, chains: Sequence[str]) -> None:
        for chain in chains:
            place = cursor(f"sink:{name}", chain)
            while found := await self._next(place, chain):
                after, events = found
                for event in events:
                    if not await _handled(name, sink, event):
                        return
                    moved = advance(place, after, event.audit_id)
                    await self.writer.write(Unit(statements=(moved,)))
                    after = event.audit_id

    async def _next(self, place: str, chain: str) -> tuple[int, Sequence[AuditEvent]] | None:
        after = int(await Settings(self.database).get(place) or 0)
        own = chain in {ALONE, self.writer.node}
        if own and after >= self.writer.head.seq:
            return None
        node = self.writer.node if own else chain
        events = await self.database.aside(partial(_events, after=after, node=node))
        return (after, events) if events else None


async def _events(reader: Reader, after: int, node: str) -> list[AuditEvent]:
    return [AuditEvent.of(row) for row in await batch(reader, node, after)]


async def _handled(name: str, sink: AuditSink, event: AuditEvent) -> bool:
    """Give one entry to a sink; one that fails or hangs gets it again next time."""
    try:
        with anyio.fail_after(_SINK_SECONDS):
            await sink.handle_audit_event(event)
    except Exception:  # noqa: BLE001 - somebody else's code
        _log.exception("audit sink %s failed at record %s; it is tried again", name, event.audit_id)
        return False
    return True


@contextmanager
def _only_one(path: Path) -> Generator[bool]:
    """Whether we are the process that feeds the sinks now."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        yield _locked(lock)
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
