"""The real servers that the tests run, each as a person writes it in `config.toml`.

`tools/test_peers.py` installs them. What is said here of eras, revisions and tools was found by
speaking to each without us in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.node import NODE, NPX

if TYPE_CHECKING:
    from collections.abc import Mapping

_PEERS = Path(sys.prefix) / "peers"
MODULES = _PEERS / "node" / "node_modules"
PACKAGES = MODULES / "@modelcontextprotocol"
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One entry of the configuration, and what is known of who answers."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    revision: str = HANDSHAKE
    tools: int = 0
    keys: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def entry(self) -> str:
        """Write it down."""
        lines = [f"{key} = {toml(value)}" for key, value in self.keys.items()]
        command = f'type = "stdio"\ncommand = {toml(self.command)}\nargs = {toml(self.args)}'
        head = ["[[mcp_servers]]", f'name = "{self.name}"', *lines, "[mcp_servers.transport]"]
        return "\n".join([*head, command, ""])


def toml(value: object) -> str:
    """Write a value: but for tables, TOML has JSON's spelling."""
    if isinstance(value, dict):
        pairs = (f"{name} = {toml(one)}" for name, one in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any table
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value)


def _npm(name: str) -> str:
    return str(PACKAGES / f"server-{name}" / "dist" / "index.js")


def _python(name: str) -> str:
    return str(_PEERS / name / "bin" / f"mcp-server-{name}")


def older_python() -> str:
    """The interpreter of the environment that has the SDK's version before the last."""
    return str(_PEERS / "sqlite" / "bin" / "python")


def install(home: Path) -> None:
    """Put the packages into a server's own home, as `npm install --prefix` does."""
    home.mkdir(parents=True)
    copy = ["cp", "--archive", MODULES, home]
    # Links are quicker; they cannot lead to another file system.
    if subprocess.run([*copy, "--link"], capture_output=True, check=False).returncode:
        subprocess.run([*copy, "--force"], check=True)


def runners(folder: Path) -> str:
    """Make a PATH with the package runners in it, as installers lay them out: as links."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    scripts = Path(sys.executable).parent
    for name, target in (
        ("node", NODE),
        ("npx", NPX),
        ("uv", scripts / "uv"),
        ("uvx", scripts / "uvx"),
        ("python3", Path(sys.base_prefix) / "bin" / "python3"),
    ):
        (programs / name).symlink_to(target)
    return f"{programs}:/usr/local/bin:/usr/bin:/bin"


def filesystem(*folders: Path, **keys: object) -> Server:
    args = (_npm("filesystem"), *map(str, folders))
    return Server(name="files", command=NODE, args=args, tools=14, keys=keys)


def everything(**keys: object) -> Server:
    return Server(name="everything", command=NODE, args=(_npm("everything"),), tools=16, keys=keys)


def memory(file: Path, **keys: object) -> Server:
    """Its file is named in a variable, so its folder has to be opened to it by name."""
    keys = {"env": {"MEMORY_FILE_PATH": str(file)}, "fs_write": [str(file.parent)], **keys}
    return Server(name="memory", command=NODE, args=(_npm("memory"),), tools=9, keys=keys)


def thinking(**keys: object) -> Server:
    """By the link that `npm install` made."""
    command = str(MODULES / ".bin" / "mcp-server-sequential-thinking")
    keys = {"env": {"PATH": f"{Path(NODE).parent}:/usr/bin:/bin"}, **keys}
    return Server(name="thinking", command=command, tools=1, keys=keys)


def time(**keys: object) -> Server:
    args = ("--local-timezone", "Europe/Berlin")
    return Server(
        name="time", command=_python("time"), args=args, revision=MODERN, tools=2, keys=keys
    )


def git(repository: Path | None = None, name: str = "git") -> Server:
    """Without a repository it takes any: then only the sandbox stands in its way."""
    args = ("--repository", str(repository)) if repository else ()
    return Server(name=name, command=_python("git"), args=args, revision=MODERN, tools=12)


def fetch(name: str = "fetch", *args: str, **keys: object) -> Server:
    """Where it finds Node it installs packages into its own, before the first page: not here."""
    command = _python("fetch")
    keys = {"env": {"PATH": str(Path(command).parent)}, **keys}
    return Server(name=name, command=command, args=args, revision=MODERN, tools=1, keys=keys)


def sqlite(file: Path, **keys: object) -> Server:
    args = ("--db-path", str(file))
    return Server(name="sqlite", command=_python("sqlite"), args=args, tools=6, keys=keys)
