"""The home folder: where everything lies. Every command reads this: nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.errors import HomeError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.config.models import Config


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one home."""

    path: Path

    @property
    def key_file(self) -> Path:
        """The first key, an admin's."""
        return self.path / "key"

    @property
    def old_key_file(self) -> Path:
        """A key file that was of no use any more."""
        return self.path / "key.old"

    @property
    def master_key(self) -> Path:
        """What every other key of the node is derived from."""
        return self.path / "master.key"

    @property
    def node_file(self) -> Path:
        """The name of the node, where several use one database."""
        return self.path / "node"

    @property
    def config_file(self) -> Path:
        """The configuration."""
        return self.path / "config.toml"

    def agents(self) -> list[str]:
        """The names of all folders that may be an agent's."""
        folder = self.path / "agents"
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(one.name for one in found if one.is_dir() and one.name[0] != ".")

    @property
    def processes(self) -> Path:
        """The locks of the processes that use the home."""
        return self.path / "run"

    def database(self, config: Config) -> Path:
        """The database file."""
        file = config.storage.file(self.path)
        if file is None:
            from openfang.storage.postgres.address import Address  # noqa: PLC0415 - start-up time

            raise HomeError(
                f"The home keeps its state at {Address(config.storage.url)}: this needs a file.",
                way_out="make a home on SQLite, then: openfang storage migrate --to URL",
            )
        return file

    def workspace(self, space: str) -> Path:
        """The folder of a caller's own files."""
        return self.path / "workspaces" / space

    @property
    def exists(self) -> bool:
        """Whether `openfang init` made it."""
        return self.key_file.exists() or self.config_file.exists()
