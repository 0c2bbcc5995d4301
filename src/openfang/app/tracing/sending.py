"""Sends what was kept to the collector, in batches, behind everything else."""

from __future__ import annotations

import gzip
import logging
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import orjson
from anyio import to_thread

from openfang.app.a2a.targets import Targets
from openfang.app.posting import Letter, Post
from openfang.app.tracing.following import Following
from openfang.app.tracing.metrics import metrics
from openfang.app.tracing.spans import Scribe
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.metrics.telemetry import Telemetry
    from openfang.app.parts import Parts
    from openfang.app.tracing.spans import Span
    from openfang.config.telemetry import TelemetrySection

_log = logging.getLogger("openfang.telemetry")
_AT_ONCE: Final = 2_000
_LONGEST_PAUSE: Final = 60.0
_CLOSE_SECONDS: Final = 2.0


@dataclass(slots=True)
class Sending:
    """Tells the collector that the configuration names, if it names one now."""

    parts: Parts
    telemetry: Telemetry
    _scribe: Scribe = field(init=False)
    _section: TelemetrySection | None = None
    _following: Following | None = None
    _began: int = field(init=False)
    _failed: bool = False
    _told: int = 0

    def __post_init__(self) -> None:
        self._scribe = Scribe(self.parts.writer.node)
        self._began = self.parts.clock.time_ns()

    async def run(self) -> None:
        """Send a batch now and then, until cancelled."""
        pause = self.configure().interval_secs
        try:
            while True:
                await anyio.sleep(pause)
                section = self.configure()
                sent = await self._sent(section)
                pause = section.interval_secs if sent else min(pause * 2, _LONGEST_PAUSE)
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                if self._section is not None and not self._failed:
                    await self._sent(self._section)

    def configure(self) -> TelemetrySection:
        """Follow calls as the configuration says now."""
        section = self.parts.config.telemetry
        if section != self._section:
            self._section = section
            wanted = section.endpoint is not None and section.traces
            self._following = Following(self.parts.clock, sample=section.sample) if wanted else None
            self.parts.pipeline.tracer = self._following
            self.parts.models_told = self._following.thought if self._following else None
        return section

    async def _sent(self, section: TelemetrySection) -> bool:
        if section.endpoint is None:
            return True
        sent = True
        if self._following is not None:
            spans = self._following.taken()
            for start in range(0, len(spans), _AT_ONCE):
                batch = spans[start : start + _AT_ONCE]
                body = await to_thread.run_sync(_packed, self._scribe, batch)
                sent = sent and await self._post(section, "/v1/traces", body)
            self._tell_dropped(self._following)
        if section.metrics:
            told = await self.telemetry.snapshot()
            now, resource = self.parts.clock.time_ns(), self._scribe.resource
            body = orjson.dumps(metrics(told, resource, began=self._began, now=now))
            sent = await self._post(section, "/v1/metrics", gzip.compress(body, 1)) and sent
        return sent

    async def _post(self, section: TelemetrySection, path: str, body: bytes) -> bool:
        targets = Targets(allow_private=lambda: section.allow_private)
        given = {name: one.get_secret_value() for name, one in section.headers.items()}
        headers = {**given, "Content-Type": "application/json", "Content-Encoding": "gzip"}
        letter = Letter(f"{str(section.endpoint).rstrip('/')}{path}", headers, body)
        posted = await Post(targets, self.parts.clock).send(letter)
        if not posted.taken and not self._failed:
            host = urlsplit(letter.url).hostname
            _log.warning("Telemetry does not reach %s: %s", host, posted.reason)
        self._failed = not posted.taken
        return posted.taken

    def _tell_dropped(self, following: Following) -> None:
        if following.dropped > self._told:
            _log.warning("%d spans were dropped: more than fit", following.dropped - self._told)
        self._told = following.dropped


def _packed(scribe: Scribe, batch: Sequence[Span]) -> bytes:
    return gzip.compress(scribe.traces(batch), 1)
