"""Another configuration without a restart: watched files, one moment of change, the old one kept.

A bad file changes nothing: what was in force stays so, and the state says why.
"""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio import to_thread

from openfang.app.build import reconfigure
from openfang.config.load import check, files, load
from openfang.config.whole import is_loopback
from openfang.core.errors import ConfigError, OpenFangError
from openfang.core.events import CONFIG_RELOADED, Record
from openfang.core.values import dataclass
from openfang.core.wire import moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.app.metrics.telemetry import Telemetry
    from openfang.app.parts import Parts
    from openfang.config.models import Config

_log = logging.getLogger("openfang.config")
_LOOK_SECONDS = 1.0
_STILL_SECONDS = 0.2
_SECOND = 1_000_000_000
_AT_START = ("api_listen", "server", "audit", "storage", "secrets", "plugins")
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
    _began_with: Config = field(init=False)
    _files: tuple[Path, ...] = ()
    _had_file: bool = False

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
        """Look at the files now and then; what changed since the start is loaded."""
        self._files = await to_thread.run_sync(files, self.parts.home.path, self.environ)
        self._had_file = await to_thread.run_sync(self.parts.home.config_file.exists)
        seen: Signature | None = None
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            now = await to_thread.run_sync(self._signature)
            if now != seen:
                now = await self._still(now)
                seen = now if await self._settled(wished=False) else None

    async def _still(self, seen: Signature) -> Signature:
        """Wait until nobody writes: half of a file, or none of it yet, may be a good one."""
        while True:
            await anyio.sleep(_STILL_SECONDS)
            now = await to_thread.run_sync(self._signature)
            if now == seen:
                return now
            seen = now

    async def try_again(self) -> None:
        """Reload; what is wrong is told in the state and in the log."""
        await self._settled()

    async def _settled(self, *, wished: bool = True) -> bool:
        """Reload. Who was to blame matters: a file that is wrong needs no second look."""
        try:
            await self.reload(wished=wished)
        except ConfigError as error:
            _log.error("The configuration was not loaded: %s", error.message)
        except OpenFangError as error:
            _log.warning("The configuration waits: %s", error.message)
            return False
        return True

    def _signature(self) -> Signature:
        return tuple(_look(file) for file in self._files)

    async def reload(self, *, wished: bool = True) -> None:
        """Put what the files say in force, or raise and change nothing.

        Who wishes for it has what is installed looked at, too, whatever the configuration says.
        """
        async with self.parts.changing:
            try:
                config = await to_thread.run_sync(self._load)
                changed = await self._put_in_force(config)
            except OpenFangError as error:
                self.problems = await to_thread.run_sync(self._found_wrong, error)
                self._count(success=False)
                raise
            mended, self.problems = bool(self.problems), []
            self.loaded_at = self.parts.clock.time_ns()
            self.restart = self._needs_restart(config)
            self._count(success=True)
            if self.parts.installs and (changed or wished):
                await self.parts.installs.apply()
        if mended:
            _log.info("The configuration is good again")
        if changed:
            _log.info("The configuration was loaded: %s changed", ", ".join(changed))

    def _load(self) -> Config:
        path = self.parts.home.path
        there = self.parts.home.config_file.exists()
        if self._had_file and not there:
            raise ConfigError(
                f"{self.parts.home.config_file} is gone: what it said stays in force.",
                way_out="put the file back; an empty one means the defaults",
            )
        self._had_file = there
        self._files = files(path, self.environ)
        return load(path, self.environ)

    async def _put_in_force(self, config: Config) -> list[str]:
        """Change what can be changed now. It is on record before it is done."""
        config = self._as_begun(config)
        changed = _differing(self.parts.config, config)
        if changed:
            await self._on_record(changed)
            reconfigure(self.parts, config)
            self.applied(config)
        return changed

    def _as_begun(self, config: Config) -> Config:
        """Keep what only a start can change: the socket is where it is, whatever the file says."""
        begun = {key: getattr(self._began_with, key) for key in _AT_START}
        kept = config.model_copy(update=begun)
        if not kept.auth.require_key and not is_loopback(kept.listen[0]):
            raise ConfigError(
                f"auth.require_key: expected true while the node listens on {kept.api_listen}",
                way_out="restart the node, so that it listens where api_listen says",
            )
        return kept

    def _found_wrong(self, error: OpenFangError) -> list[dict[str, Any]]:
        found = check(self.parts.home.path, self.environ) if isinstance(error, ConfigError) else ()
        listed = [problem.as_json() for problem in found]
        return listed or [{"file": "", "line": 0, "key": "", "message": error.message}]

    def _needs_restart(self, config: Config) -> list[str]:
        return [key for key in _differing(self._began_with, config) if key in _AT_START]

    async def _on_record(self, changed: list[str]) -> None:
        record = Record(event=CONFIG_RELOADED, payload={"changed": changed}, context={})
        await self.parts.broker.append([record])


def _differing(one: Config, other: Config) -> list[str]:
    """Name the keys at the root that differ, and the rules, which have a file of their own."""
    names = (*type(one).model_fields, "rules")
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _look(file: Path) -> tuple[str, int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, 0, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino
