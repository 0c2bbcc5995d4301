"""Readers behind the log: each gets every entry at least once, in order, and delays nobody.

A sink's place in the log is stored, so that what was written while it was away is passed on later.
Of several processes on one home, one at a time feeds the sinks.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from anyio import to_thread

from openfang.app.plugins import load_plugin
from openfang.core.events import AuditEvent
from openfang.storage.log import rows
from openfang.storage.state import Settings, put_setting
from openfang.storage.writer import Unit

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from openfang.app.build import Parts
    from openfang.core.ports import AuditSink

_log = logging.getLogger("openfang.audit")
_POLL_SECONDS = 0.25
_BATCH = 500


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


@dataclass(slots=True)
class Sinks:
    """The configured sinks and how far each has read."""

    parts: Parts
    sinks: dict[str, AuditSink] = field(default_factory=dict[str, "AuditSink"])

    @classmethod
    def of(cls, parts: Parts) -> Sinks:
        """Make the sinks that the configuration names."""
        audit = parts.config.audit
        sinks: dict[str, AuditSink] = {}
        if audit.jsonl is not None:
            sinks[f"jsonl:{audit.jsonl}"] = JsonLines(Path(audit.jsonl))
        if audit.stdout:
            sinks["stdout"] = Stdout()
        for plugin in parts.config.plugins.audit_handlers:
            sinks[f"plugin:{plugin}"] = load_plugin(plugin)
        return cls(parts, sinks)

    def register(self, name: str, sink: AuditSink) -> None:
        """Add a sink; it is given everything since it last read under this name."""
        self.sinks[name] = sink

    async def run(self) -> None:
        """Pass entries on as they come, until cancelled."""
        if not self.sinks:
            return
        seen = -1
        while True:
            head = self.parts.writer.head.seq
            if head != seen:
                await self.drain()
                seen = head
            await anyio.sleep(_POLL_SECONDS)

    async def drain(self) -> None:
        """Pass on everything that is in the log now."""
        if not self.sinks:
            return
        with _only_one(self.parts.home.processes / "sinks.lock") as mine:
            if mine:
                for name, sink in self.sinks.items():
                    await self._feed(name, sink)

    async def _feed(self, name: str, sink: AuditSink) -> None:
        while batch := await to_thread.run_sync(self._next, name):
            for event in batch:
                if not await _handled(name, sink, event):
                    return
                self._moved(name, event.audit_id)

    def _next(self, name: str) -> Sequence[AuditEvent]:
        after = int(Settings(self.parts.database).get(f"sink:{name}") or 0)
        found = rows(self.parts.database.path, after=after, node=self.parts.writer.node)
        return [AuditEvent.of(row) for row, _ in zip(found, range(_BATCH), strict=False)]

    def _moved(self, name: str, seq: int) -> None:
        statement = put_setting(f"sink:{name}", str(seq))
        self.parts.writer.write_blocking(Unit(statements=(statement,)))


async def _handled(name: str, sink: AuditSink, event: Any) -> bool:  # noqa: ANN401 - theirs
    """Give one entry to a sink; one that fails gets it again next time."""
    try:
        await sink.handle_audit_event(event)
    except Exception:  # noqa: BLE001 - somebody else's code
        _log.exception("audit sink %s failed at record %s; it is tried again", name, event.audit_id)
        return False
    return True


@contextmanager
def _only_one(path: Path) -> Generator[bool]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)
