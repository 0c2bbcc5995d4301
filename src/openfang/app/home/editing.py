"""Changes of the configuration's own files: checked before they are made, whole, with a copy kept.

What a file would become is read together with all the others first. Only what a start would accept
is written.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openfang.config.load import load
from openfang.core.errors import Conflict, HomeError
from openfang.core.values import dataclass
from openfang.host.private import write_private
from openfang.host.replace import sync_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from openfang.config.models import Config

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file as it is and as it would be, and the configuration that this would make."""

    file: Path
    before: str
    after: str
    config: Config


@dataclass(frozen=True, slots=True)
class Editing:
    """Changes the files of one home. All of it waits for the disk: use it in a thread."""

    home: Path
    environ: Mapping[str, str]

    def prepare(self, file: Path, edit: Callable[[str], str]) -> Change:
        """See what an edit would make of the configuration; one that a start would refuse raises.

        Nothing is changed.
        """
        before = _text(file)
        after = edit(before)
        draft = file.resolve().with_name(f".{file.name}.{secrets.token_hex(8)}")
        try:
            write_private(draft, after)
            config = load(self.home, self.environ, instead={file.absolute(): draft})
        except OSError as error:
            raise _unwritable(file, error) from error
        finally:
            draft.unlink(missing_ok=True)
        return Change(file=file, before=before, after=after, config=config)

    def commit(self, change: Change) -> None:
        """Write it, unless somebody else wrote meanwhile; what was there is kept beside it."""
        file = change.file.resolve()
        try:
            with _one_at_a_time(self.home):
                if _text(file) != change.before:
                    raise Conflict(
                        f"{change.file} was changed meanwhile.", way_out="do it once more"
                    )
                mode = _mode(file)
                if file.exists():
                    write_private(file.with_name(f"{file.name}.bak"), change.before)
                write_private(file, change.after)
                file.chmod(mode)
                sync_parent(file)
        except OSError as error:
            raise _unwritable(change.file, error) from error


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise HomeError(f"{file} cannot be read.", way_out="openfang config check") from error


def _mode(file: Path) -> int:
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except FileNotFoundError:
        return _PRIVATE


def _unwritable(file: Path, error: OSError) -> HomeError:
    return HomeError(
        f"{file} cannot be written: {error.strerror}.", way_out="look at its folder's permissions"
    )


@contextmanager
def _one_at_a_time(home: Path) -> Generator[None]:
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
