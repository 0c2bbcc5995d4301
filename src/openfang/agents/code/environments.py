"""Which Python an agent runs under: ours, one that its manifest names, or one with its packages.

An environment is made once for each set of requirements, and kept under the home. Packages are
installed as they were built by their authors (wheels): nothing of theirs runs while that is done.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.core.errors import SourceFailed
from openfang.host.process import Launch, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anyio.abc import TaskGroup

    from openfang.agents.spec import Program

_log = logging.getLogger("openfang.agents")
_INSTALL_SECONDS: Final = 900.0
_AGAIN_SECONDS: Final = 30.0
_LOCK_PAUSE: Final = 0.2
_READY: Final = "openfang.ready"
# What the installer may know of this machine: where packages come from, and how to get there.
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR", "NETRC", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_PREFIXES: Final = ("PIP_", "UV_", "SSL_CERT_")
_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Python, and the environment that it belongs to, if that is one of ours."""

    python: Path
    environment: Path | None = None


@dataclass(slots=True)
class _Making:
    done: anyio.Event = field(default_factory=anyio.Event)
    error: SourceFailed | None = None
    until: float = 0.0


@dataclass(slots=True)
class Environments:
    """Finds and makes them. Two agents with the same requirements share one."""

    folder: Path
    environ: Mapping[str, str]
    _made: dict[Path, _Making] = field(default_factory=dict[Path, _Making])

    async def runtime(self, program: Program, tasks: TaskGroup) -> Runtime:
        """Give the Python of a program; who comes first waits until it is made."""
        found = await to_thread.run_sync(self._found, program)
        python, place = found.python, found.environment
        if place is None:
            return found
        making = self._made.get(place)
        if making is None or await self._again(place, making):
            making = self._made[place] = _Making()
            tasks.start_soon(self._make, place, python, program.requirements, making)
        await making.done.wait()
        if making.error is not None:
            raise SourceFailed(making.error.message, way_out=making.error.way_out)
        return Runtime(place / "bin" / "python", place)

    async def _again(self, place: Path, making: _Making) -> bool:
        """Whether it is to be made once more: it failed a while ago, or somebody took it away."""
        if making.error is not None:
            return anyio.current_time() > making.until
        return making.done.is_set() and not await to_thread.run_sync((place / _READY).exists)

    def _found(self, program: Program) -> Runtime:
        python = self._interpreter(program)
        if not program.requirements:
            return Runtime(python)
        return Runtime(python, self.folder / _digest(python, program.requirements))

    def _interpreter(self, program: Program) -> Path:
        wanted = program.python
        if wanted is None:
            return Path(sys.executable)
        name = wanted if wanted.startswith("/") else f"python{wanted}"
        found = shutil.which(name, path=self.environ.get("PATH"))
        if found is None:
            raise SourceFailed(
                f"Python {wanted} was not found.",
                way_out=f"install it, or change python in {program.file.parent}/agent.toml",
            )
        return Path(found)

    async def _make(
        self, place: Path, python: Path, requirements: tuple[str, ...], making: _Making
    ) -> None:
        try:
            await self._locked(place, python, requirements)
        except SourceFailed as error:
            making.error, making.until = error, anyio.current_time() + _AGAIN_SECONDS
        except BaseException:
            making.error = SourceFailed("The environment was not made: it was interrupted.")
            raise
        finally:
            making.done.set()

    async def _locked(self, place: Path, python: Path, requirements: tuple[str, ...]) -> None:
        """Make it, unless it is there; other processes of this home may want the same."""
        try:
            lock = await to_thread.run_sync(_open_lock, place)
        except OSError as error:
            raise _failed(str(error)) from error
        try:
            while not _take(lock):  # noqa: ASYNC110 - another process has it
                await anyio.sleep(_LOCK_PAUSE)
            if not await to_thread.run_sync((place / _READY).exists):
                await to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))
                steps = self._steps(place, python, requirements)
                for step in await to_thread.run_sync(tuple, steps):
                    await self._run(step)
                await to_thread.run_sync((place / _READY).touch)
        finally:
            os.close(lock)

    def _steps(
        self, place: Path, python: Path, requirements: tuple[str, ...]
    ) -> Iterator[tuple[str, ...]]:
        inner = str(place / "bin" / "python")
        built = ("--only-binary", ":all:", *requirements)
        uv = shutil.which("uv", path=self.environ.get("PATH"))
        if uv is not None:
            yield uv, "venv", "--quiet", "--python", str(python), str(place)
            yield uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", inner, *built
        else:
            yield str(python), "-m", "venv", str(place)
            quietly = ("--quiet", "--no-input", "--disable-pip-version-check")
            yield inner, "-m", "pip", "install", *quietly, *built

    async def _run(self, argv: tuple[str, ...]) -> None:
        finished = await run(
            Launch(
                argv=argv,
                cwd=self.folder,
                environment=dict(self._passed_on()),
                timeout=_INSTALL_SECONDS,
            )
        )
        if finished.exit_code != 0:
            words = (finished.stderr or finished.stdout).decode(errors="replace").strip()
            _log.warning("%s said: %s", " ".join(argv), words)
            raise _failed(_last_line(words))

    def _passed_on(self) -> Iterator[tuple[str, str]]:
        for name, value in self.environ.items():
            if name in _PASSED_ON or name.startswith(_PREFIXES) or name.lower() in _PROXIES:
                yield name, value


def _failed(reason: str) -> SourceFailed:
    return SourceFailed(
        f"The environment could not be made: {reason}",
        way_out="correct python or requirements in the manifest; the log has the installer's words",
    )


def _last_line(words: str) -> str:
    return next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "no words")


def _digest(python: Path, requirements: tuple[str, ...]) -> str:
    wanted = json.dumps([os.path.realpath(python), sorted(requirements)])
    return hashlib.sha256(wanted.encode()).hexdigest()[:24]


def _open_lock(place: Path) -> int:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(place.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
