"""Another configuration without a restart: watched files, one moment of change, the old one kept.

A bad file changes nothing: what was in force stays so, and the state says why.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio import to_thread

from openfang.app.build import reconfigure
from openfang.config.load import check, files, load
from openfang.core.errors import ConfigError, OpenFangError
from openfang.core.events import CONFIG_RELOADED, Record
from openfang.core.wire import moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.app.build import Parts
    from openfang.app.telemetry import Telemetry
    from openfang.config.models import Config

_log = logging.getLogger("openfang.config")
_LOOK_SECONDS = 1.0
_SECOND = 1_000_000_000
_AT_START = ("api_listen", "audit", "storage", "secrets", "plugins")
Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]


@dataclass(slots=True, kw_only=True)
class Reloader:
    """Holds the parts of one node to the files of its home."""

    parts: Parts
    environ: Mapping[str, str]
    applied: Callable[[Config], None]
    telemetry: Telemetry
    loaded_at: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    restart: list[str] = field(default_factory=list[str])
    _began_with: Config | None = None
    _files: tuple[Path, ...] = ()
    _one: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self._began_with = self.parts.config
        self.loaded_at = self.parts.clock.time_ns()
        self._count(success=True)

    def _count(self, *, success: bool) -> None:
        self.telemetry.reloaded(success=success, at=self.parts.clock.time_ns() / _SECOND)

    def state(self) -> dict[str, Any]:
        """Say what is in force, what was wrong with the last file, and what waits for a restart."""
        return {
            "state": "rejected" if self.problems else "in force",
            "file": str(self.parts.home.config_file),
            "loaded_at": moment(self.loaded_at),
            "problems": self.problems,
            "needs_restart": self.restart,
        }

    async def watch(self) -> None:
        """Look at the files now and then; what changed is loaded."""
        self._files = await to_thread.run_sync(files, self.parts.home.path, self.environ)
        seen = await to_thread.run_sync(self._signature)
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            now = await to_thread.run_sync(self._signature)
            if now != seen:
                seen = now
                await self.try_again()

    async def try_again(self) -> None:
        """Reload; what is wrong is told in the state and in the log."""
        try:
            await self.reload()
        except OpenFangError as error:
            _log.error("The configuration was not loaded: %s", error.message)

    def _signature(self) -> Signature:
        return tuple(_look(file) for file in self._files)

    async def reload(self) -> None:
        """Put what the files say in force, or raise and change nothing."""
        async with self._one:
            try:
                config = await to_thread.run_sync(self._load)
                changed = self._changed(config)
                if changed:
                    reconfigure(self.parts, config)
                    self.applied(config)
                    await self._on_record(changed)
            except OpenFangError as error:
                self.problems = self.problems or [_problem(error)]
                self._count(success=False)
                raise
            self.problems = []
            self.loaded_at = self.parts.clock.time_ns()
            self.restart = self._needs_restart(config)
            self._count(success=True)
        if changed:
            _log.info("The configuration was loaded: %s changed", ", ".join(changed))

    def _load(self) -> Config:
        path = self.parts.home.path
        self._files = files(path, self.environ)
        self.problems = [
            {
                "file": problem.place.file,
                "line": problem.place.line,
                "key": problem.key,
                "message": problem.message,
            }
            for problem in check(path, self.environ)
        ]
        return load(path, self.environ)

    def _changed(self, config: Config) -> list[str]:
        return _differing(self.parts.config, config)

    def _needs_restart(self, config: Config) -> list[str]:
        assert self._began_with is not None  # noqa: S101 - set when made
        return [key for key in _differing(self._began_with, config) if key in _AT_START]

    async def _on_record(self, changed: list[str]) -> None:
        record = Record(event=CONFIG_RELOADED, payload={"changed": changed}, context={})
        await self.parts.broker.append([record])


def _differing(one: Config, other: Config) -> list[str]:
    """Name the keys at the root that differ."""
    return [name for name in type(one).model_fields if getattr(one, name) != getattr(other, name)]


def _problem(error: OpenFangError) -> dict[str, Any]:
    file = "config.toml" if isinstance(error, ConfigError) else ""
    return {"file": file, "line": 0, "key": "", "message": error.message}


def _look(file: Path) -> tuple[str, int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, 0, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino
