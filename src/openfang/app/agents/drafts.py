"""New agents and changed ones: checked before they take effect, and nothing written is lost."""

from __future__ import annotations

import errno
import secrets
import shutil
import stat
from typing import TYPE_CHECKING, Final

from openfang.app.agents.starters import write_agent
from openfang.app.home.paths import Home
from openfang.config.load import load
from openfang.config.manifests import FOLDER, JSON, TOML, check_draft, check_manifests, doubtful
from openfang.core.errors import ConfigError, Conflict, HomeError, NotFound
from openfang.core.values import dataclass
from openfang.host.editor import run_editor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from openfang.config.models import Config
    from openfang.config.problems import Problem

_PRIVATE: Final = 0o700
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class Drafts:
    """The agents of one home, as files."""

    home: Path
    environ: Mapping[str, str]

    def problems(self, name: str = "") -> list[Problem]:
        """Find what is wrong with one agent, or with all."""
        if name:
            self._folder(name)
        return _of(name, check_manifests(self.home, self._roots))

    def doubts(self, name: str = "") -> list[Problem]:
        """Find what one agent, or any, says in vain: no mistake, and worth knowing."""
        config = self._config
        if config is None:
            return []
        servers = frozenset(server.name for server in config.mcp_servers)
        return _of(name, doubtful(self.home, self._roots, servers, config.providers))

    @property
    def _config(self) -> Config | None:
        """The configuration; none if it has mistakes, which are not the agents'."""
        try:
            return load(self.home, self.environ)
        except ConfigError:
            return None

    @property
    def _roots(self) -> tuple[str, ...]:
        config = self._config
        return config.agents.workspace_roots if config else ()

    def begin(self, name: str, files: Mapping[str, str]) -> Path:
        """Write a new agent, and say where it is. What is there is never written over."""
        if not Home(self.home).exists:
            raise HomeError(
                f"There is no OpenFang home at {self.home}.",
                way_out="openfang init, or set OPENFANG_HOME",
            )
        folder = self.home / FOLDER / name
        draft = self.home / f".draft-{secrets.token_hex(8)}"
        try:
            write_agent(draft, files)
            found = check_draft(self.home, draft / TOML, folder / TOML, self._roots)
            _refuse(found, "choose another name")
            folder.parent.mkdir(mode=_PRIVATE, exist_ok=True)
            _put(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return folder

    def edit(self, name: str) -> bool:
        """Let a person change a manifest; one with mistakes is kept beside it, and the old stays.

        Says whether anything was changed. What was kept is what the next edit begins with.
        """
        file = self._manifest(name)
        kept = file.with_name(f"{file.name}.bad")
        draft = file.with_name(f".draft-{secrets.token_hex(8)}{file.suffix}")
        before = file.read_bytes()
        shutil.copyfile(kept if kept.exists() else file, draft)
        try:
            _let_edit(draft, self.environ)
            if draft.read_bytes() == before:
                return False
            self._check(draft, file, kept, before)
            draft.chmod(stat.S_IMODE(file.stat().st_mode))
            draft.replace(file)
            kept.unlink(missing_ok=True)
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _check(self, draft: Path, file: Path, kept: Path, before: bytes) -> None:
        again = f"openfang agents edit {file.parent.name} goes on with what you wrote, {kept}"
        problems = check_draft(self.home, draft, file, self._roots)
        meanwhile = file.read_bytes() != before
        if problems or meanwhile:
            draft.replace(kept)
        _refuse(problems, f"{again}; the agent is as it was")
        if meanwhile:
            raise Conflict(f"{file} was changed meanwhile.", way_out=again)

    def _folder(self, name: str) -> Path:
        if name not in Home(self.home).agents():
            raise NotFound(
                f"No agent {name} is written down in {self.home / FOLDER}.",
                way_out=f"openfang agents new {name}",
            )
        return self.home / FOLDER / name

    def _manifest(self, name: str) -> Path:
        folder = self._folder(name)
        file = next((folder / one for one in (TOML, JSON) if (folder / one).exists()), None)
        if file is None:
            raise NotFound(f"{folder} has no {TOML}.", way_out="openfang agents validate")
        return file


def _of(name: str, problems: Sequence[Problem]) -> list[Problem]:
    return [one for one in problems if not name or _is_of(one.place.file, name)]


def _is_of(file: str, name: str) -> bool:
    return file == f"{FOLDER}/{name}" or file.startswith(f"{FOLDER}/{name}/")


def _refuse(problems: Sequence[Problem], way_out: str) -> None:
    if problems:
        raise ConfigError("\n".join(map(str, problems)), way_out=way_out)


def _put(draft: Path, folder: Path) -> None:
    taken = Conflict(f"There is {folder} already.", way_out=f"openfang agents edit {folder.name}")
    if folder.exists():
        raise taken
    try:
        draft.rename(folder)
    except OSError as error:
        if error.errno in _TAKEN:
            raise taken from error
        raise


def _let_edit(draft: Path, environ: Mapping[str, str]) -> None:
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    code = run_editor(command, draft)
    if code:
        raise Conflict(
            f"The editor {command!r} ended with {code}: nothing was changed.",
            way_out="EDITOR=nano, or another",
        )
