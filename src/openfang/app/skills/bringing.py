"""What is brought to the door from where a person says: a folder, an archive, a git repository.

A repository is cloned by the `git` of this machine, which has no hooks, no submodules, no links and
no configuration of anybody's. One at an address is reached as all that is foreign: in a sandbox,
through the guarded egress; without a sandbox it is not.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import anyio

from openfang.app.confine import Confiner
from openfang.app.installs.parcels import parcel_of
from openfang.config.home import find_home, user_home
from openfang.config.skill_files import SkillFile, is_skill, read_skill
from openfang.core.errors import NotFound, Rejected, SourceFailed
from openfang.core.values import dataclass
from openfang.host.command import Command
from openfang.host.parcels import pack
from openfang.host.process import LaunchFailed, Limits, run
from openfang.safety.environment import DEFAULT_PATH
from openfang.safety.urls import without_user

_SECONDS: Final = 120.0
_LARGEST: Final = 256 << 20
_DEEPEST: Final = 3
_SHOWN: Final = 500
_REF: Final = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9._/-]{0,199}\Z")
_SCHEMES: Final = {"https": "https", "git+https": "https", "file": "file", "git+file": "file"}
_SAFE: Final = (
    "core.symlinks=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "credential.helper=",
    "init.templateDir=",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
    "http.followRedirects=false",
    "protocol.allow=never",
)


@dataclass(frozen=True, slots=True)
class Brought:
    """An archive, where it came from, and what is odd about the place."""

    parcel: bytes
    origin: str
    notes: tuple[str, ...] = ()


def brought(where: str, *, ref: str = "", folder: str = "") -> Brought:
    """Pack what is there. It blocks."""
    address = _address(where)
    if address:
        return _cloned(address, ref, folder)
    if ref:
        raise _wrong(f"{where} is no repository, and has no {ref}.", "leave --ref out")
    found = Path(where).expanduser().resolve()
    if not found.is_dir():
        return Brought(*parcel_of(where))
    chosen = _chosen(found, folder)
    return Brought(pack(chosen), str(chosen), _notes(chosen))


def _address(where: str) -> str:
    """Give the address of a repository; nothing where it is a folder or a file."""
    scheme = _SCHEMES.get(where.partition("://")[0]) if "://" in where else None
    if scheme:
        return f"{scheme}://{where.partition('://')[2]}"
    if "://" in where or re.match(r"\A[\w.-]+@[\w.-]+:", where):
        raise _wrong(
            f"{where} is reached in no way that is taken.", "https://, git+file:// or a path"
        )
    found = Path(where).expanduser().resolve()
    bare = (found / "HEAD").is_file() and (found / "objects").is_dir()
    return f"file://{found}" if bare else ""


def _notes(folder: Path) -> tuple[str, ...]:
    """Say whether it is called otherwise than its folder; all else is said where it is read."""
    found = read_skill(folder)
    said = found.notes if isinstance(found, SkillFile) else ()
    return tuple(str(one) for one in said if one.key.endswith("name"))


def _cloned(address: str, ref: str, folder: str) -> Brought:
    if ref and not _REF.match(ref):
        raise _wrong(f"{ref!r} is no branch and no tag.", "name one of the repository's")
    with TemporaryDirectory(prefix="openfang-skill-") as made:
        room = Path(made).resolve()
        anyio.run(_clone, address, ref, room)
        chosen = _chosen(room / "work" / "copy", folder)
        whole = chosen == room / "work" / "copy"  # a name of ours, and no folder's
        return Brought(pack(chosen), _origin(address, ref, folder), () if whole else _notes(chosen))


def _origin(address: str, ref: str, folder: str) -> str:
    plain = without_user(address)
    return f"git+{plain}" + (f"@{ref}" if ref else "") + (f"#{folder}" if folder else "")


async def _clone(address: str, ref: str, room: Path) -> None:
    confiner = Confiner(find_home(os.environ), user_home(os.environ))
    command = _command(address, ref, room)
    try:
        async with confiner.command(command) as launch:
            finished = await run(launch)
    except LaunchFailed as error:
        raise SourceFailed(
            f"{without_user(address)} is not fetched: {error.message}",
            way_out="clone it yourself, look at it, and install the folder",
        ) from error
    if finished.exit_code != 0:
        last = finished.stderr.decode(errors="replace").strip()[-_SHOWN:]
        why = f"git took longer than {_SECONDS:g} s" if finished.timed_out else last
        raise SourceFailed(
            f"{without_user(address)} cannot be cloned: {why}",
            way_out="clone it yourself, and install the folder",
        )


def _command(address: str, ref: str, room: Path) -> Command:
    remote = urlsplit(address).scheme == "https"
    safe = (*_SAFE, f"protocol.{'https' if remote else 'file'}.allow=always")
    settings = [word for one in safe for word in ("-c", one)]
    branch = ["--branch", ref] if ref else []
    clone = ["clone", "--quiet", "--depth", "1", "--no-tags", "--single-branch"]
    return Command(
        name="git",
        argv=(
            "git",
            *settings,
            *clone,
            "--no-recurse-submodules",
            *branch,
            "--",
            address,
            str(room / "work" / "copy"),
        ),
        environment={
            "PATH": os.environ.get("PATH") or DEFAULT_PATH,
            "HOME": str(room / "home"),
            "TMPDIR": str(room / "tmp"),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
        },
        cwd=room / "work",
        home=room / "home",
        tmp=room / "tmp",
        workspace=room / "work",
        own=() if remote else (Path(urlsplit(address).path),),
        sandbox="required" if remote else "auto",
        network=remote,
        limits=Limits(file_size=_LARGEST, open_files=1024),
        timeout=_SECONDS,
    )


def _chosen(root: Path, folder: str) -> Path:
    """Find the skill in a folder: itself, the one that was named, or the only one below."""
    if folder:
        found = (root / folder).resolve()
        if not found.is_relative_to(root.resolve()) or not is_skill(found):
            raise NotFound(f"{folder} is no skill there.", way_out=_names(root) or "look there")
        return found
    if is_skill(root):
        return root
    below = _below(root)
    if len(below) == 1:
        return below[0]
    if below:
        raise _wrong(f"There are {len(below)} skills.", f"--folder, one of: {_names(root)}")
    return root  # what is missing is said where it is read


def _below(root: Path) -> list[Path]:
    found = list[Path]()
    for depth in range(1, _DEEPEST + 1):
        places = root.glob("/".join("*" * depth))
        found += [one for one in places if one.is_dir() and not one.is_symlink() and is_skill(one)]
    return sorted(one for one in found if ".git" not in one.relative_to(root).parts)


def _names(root: Path) -> str:
    return ", ".join(str(one.relative_to(root)) for one in _below(root)[:20])


def _wrong(message: str, way_out: str) -> Rejected:
    return Rejected(message, status=422, rule="skill_source", way_out=way_out)
