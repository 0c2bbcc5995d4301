"""What a child runs under: our Python, one that is named, one with its packages, or Node.

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
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.host.children.start import Python
from openfang.host.process import Launch, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.children.start import Node

_log = logging.getLogger("openfang.children")
_INSTALL_SECONDS: Final = 900.0
_AGAIN_SECONDS: Final = 30.0
_LOCK_PAUSE: Final = 0.2
_READY: Final = "openfang.ready"
_HASH: Final = "--hash="
# What the installer may know of this machine: where packages come from, and how to get there.
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR", "NETRC", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_PREFIXES: Final = ("PIP_", "UV_", "SSL_CERT_")
_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})


@dataclass(frozen=True, slots=True)
class Runtime:
    """A program, and the environment that it belongs to, if that is one of ours."""

    program: Path
    environment: Path | None = None


@dataclass(slots=True)
class _Making:
    done: anyio.Event = field(default_factory=anyio.Event)
    error: SourceFailed | None = None
    until: float = 0.0


@dataclass(slots=True)
class Environments:
    """Finds and makes them. Two children with the same requirements share one."""

    folder: Path
    environ: Mapping[str, str]
    _made: dict[Path, _Making] = field(default_factory=dict[Path, _Making])

    async def runtime(self, wanted: Python | Node, tasks: TaskGroup, settings: str = "") -> Runtime:
        """Give what a child runs under; who comes first waits until it is made.

        `settings` is the file that names what is wanted.
        """
        found = await to_thread.run_sync(self._found, wanted, settings)
        place = found.environment
        if place is None or not isinstance(wanted, Python):
            return found
        making = self._made.get(place)
        if making is None or await self._again(place, making):
            making = self._made[place] = _Making()
            tasks.start_soon(self._make, place, found.program, wanted.requirements, making)
        await making.done.wait()
        if making.error is not None:
            raise SourceFailed(making.error.message, way_out=making.error.way_out)
        return Runtime(place / "bin" / "python", place)

    async def _again(self, place: Path, making: _Making) -> bool:
        """Whether it is to be made once more: it failed a while ago, or somebody took it away."""
        if making.error is not None:
            return anyio.current_time() > making.until
        return making.done.is_set() and not await to_thread.run_sync((place / _READY).exists)

    def _found(self, wanted: Python | Node, settings: str) -> Runtime:
        if not isinstance(wanted, Python):
            return Runtime(self._node())
        python = self._python(wanted, settings)
        if not wanted.requirements:
            return Runtime(python)
        return Runtime(python, self.folder / _digest(python, wanted.requirements))

    def _python(self, wanted: Python, settings: str) -> Path:
        version = wanted.version
        if version is None:
            return Path(sys.executable)
        name = version if version.startswith("/") else f"python{version}"
        found = shutil.which(name, path=self.environ.get("PATH"))
        if found is None:
            raise SourceFailed(
                f"Python {version} was not found.",
                way_out=f"install it, or change python in {settings}",
            )
        return Path(found)

    def _node(self) -> Path:
        found = shutil.which("node", path=self.environ.get("PATH"))
        if found is None:
            raise SourceFailed(
                "Node.js was not found.",
                way_out="install it, so that PATH of the daemon has node: node --version",
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
        built = ("--only-binary", ":all:", *_listed(place, requirements))
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


def _listed(place: Path, requirements: tuple[str, ...]) -> tuple[str, ...]:
    """Name what to install; hashes are read from a file alone."""
    if not any(_HASH in one for one in requirements):
        return requirements
    file = place.with_suffix(".txt")
    file.write_text("\n".join(requirements) + "\n")
    return "--require-hashes", "--requirement", str(file)


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
