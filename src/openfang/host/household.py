"""Whose machine this is, and what of it a sandboxed child never sees.

The user's keys and the sockets of other services stay hidden wherever a folder around them is
shown, unless they are named themselves. Our own home is never shown. Everything here looks at the
disk.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from openfang.core.values import dataclass
from openfang.host.sandbox import Link, Mask, Mount, within

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERYBODYS: Final = tuple(
    Path("/", name)
    for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store")
)
# Enough to name users and the machine itself, to tell the time and to check certificates: no keys,
# no shadow, and no resolver, which would have nobody to ask. Each costs a fifth of a millisecond.
_ETC: Final = tuple(
    Path("/etc", name)
    for name in (
        *("passwd", "group", "nsswitch.conf", "hosts", "localtime", "ld.so.cache", "alternatives"),
        *("ssl/certs", "ssl/cert.pem", "pki/tls/certs", "pki/ca-trust", "crypto-policies"),
    )
)
# A folder that holds much besides one program: never shown for the sake of a file in it.
_SHARED: Final = frozenset(
    Path("/", name)
    for name in ("etc", "home", "media", "mnt", "opt", "run", "srv", "tmp", "var", "var/tmp")
)
_KEY_FOLDERS: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".password-store"),
    *(".config/gcloud", ".config/gh", ".config/op", ".config/rclone", ".config/containers"),
    *(".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".mozilla"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".local/share/uv/credentials"),
    ".terraform.d",
    *(".codex", ".codeium", ".gemini", ".config/Claude", ".config/github-copilot"),
)
_KEY_FILES: Final = (
    *(".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".vault-token"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(
        ".claude.json",
        ".claude/.credentials.json",
        ".cursor/mcp.json",
        ".config/Code/User/mcp.json",
    ),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history"),
)
_HOMES: Final = (".agentos", ".openfang")
# Where people's interpreters are installed, and nothing else.
_RUNTIMES: Final = (
    *(".local/share/uv/python", ".pyenv/versions", ".nvm/versions", ".local/share/fnm"),
    *(".asdf/installs", ".local/share/mise/installs", ".volta/tools", ".rye/py"),
    *("miniconda3", "miniforge3", "anaconda3"),
)
_DEVICES: Final = Path("/dev")
_MOST_LINKS: Final = 40
_SERVICES: Final = (
    *("docker.sock", "containerd", "podman", "crio", "user", "dbus", "systemd", "snapd.socket"),
)


def real(path: Path) -> Path:
    """The path without symlinks, whether it exists or not."""
    return Path(os.path.realpath(path))


def links(path: Path) -> Iterator[Path]:
    """Give every link that is followed on the way to a path, where it really is."""
    there, ahead, followed = Path("/"), [*reversed(path.parts[1:])], 0
    while ahead and followed < _MOST_LINKS:
        name = ahead.pop()
        step = there.parent if name == ".." else there / name
        if not os.path.islink(step):  # noqa: PTH114 - says no where we may not look
            there = step
            continue
        yield step
        followed += 1
        target = step.readlink()
        there = Path("/") if target.is_absolute() else there
        ahead.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))


def is_system(path: Path) -> bool:
    """Whether every child sees it anyway."""
    return any(within(path, folder) for folder in _EVERYBODYS)


@cache
def system() -> tuple[tuple[Mount, ...], tuple[Link, ...]]:
    """What every program needs of this machine, read-only. Looked up once."""
    links = [*map(_link, filter(Path.is_symlink, _EVERYBODYS)), *map(_link, filter(_leads, _ETC))]
    linked = {link.place for link in links}
    shown = [path for path in (*_EVERYBODYS, *_ETC) if path.exists() and path not in linked]
    return tuple(Mount(real(path), path) for path in shown), tuple(links)


def _link(path: Path) -> Link:
    return Link(str(path.readlink()), path)


def _leads(path: Path) -> bool:
    """Whether a file of /etc is a link into what everybody sees; any other is shown as a file."""
    return path.is_symlink() and is_system(real(path)) and path.exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """The user's home, ours, and what is hidden. Made by `look`.

    `absent` are folders of keys that are not there yet; `writable` is what the child could change
    before it is started again, so that nothing in it is believed.
    """

    user: Path
    ours: Path
    masks: tuple[Mask, ...]
    absent: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    @classmethod
    def look(cls, *, user: Path, ours: Path) -> Self:
        """Find what is there to hide."""
        user, ours = real(user), real(ours)
        absent = (user / name for name in _KEY_FOLDERS)
        return cls(
            user=user,
            ours=ours,
            masks=tuple(_hidden(user, ours)),
            absent=tuple(real(path) for path in absent if not path.exists()),
        )

    def is_shared(self, folder: Path) -> bool:
        """Whether a folder holds more than what one program is made of."""
        homes = (self.user, self.ours)
        return folder in _SHARED or any(within(home, folder) for home in homes)

    def is_hidden(self, path: Path) -> bool:
        """Whether it is a child's business only if it is named itself."""
        return any(within(path, mask.path) for mask in self.masks)

    def is_ours(self, path: Path) -> bool:
        """Whether it is never a child's business."""
        return within(path, self.ours)

    def may_lead(self, start: Path, end: Path) -> bool:
        """Whether a link or a file is believed about what belongs to it.

        What could be the child's own work is, where it leads to an interpreter or to what the child
        sees anyway.
        """
        return not self._is_of_the_child(start) or self._is_harmless(real(end))

    def _is_of_the_child(self, path: Path) -> bool:
        ways = (path, real(path), *links(path))
        return any(within(way, folder) for way in ways for folder in self.writable)

    def _is_harmless(self, path: Path) -> bool:
        # Not where a link says that they are: that could be the child's, too.
        runtimes = (self.user / name for name in _RUNTIMES)
        return (
            is_system(path)
            or any(within(path, folder) for folder in self.writable)
            or any(within(path.parent, folder) for folder in runtimes)
        )


def _hidden(user: Path, ours: Path) -> Iterator[Mask]:
    keys = (user / name for name in (*_KEY_FOLDERS, *_KEY_FILES, *_HOMES))
    services = (Path(folder, name) for folder in ("/run", "/var/run") for name in _SERVICES)
    # Where they are, and not where a link says they are: nothing can be laid over a link.
    there = dict.fromkeys(real(path) for path in (ours, *keys, *services) if path.exists())
    for path in there:
        if not (is_system(path) or within(path, _DEVICES)):
            yield Mask(path, folder=path.is_dir())
