"""The database of a home that nobody serves, for commands that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from openfang.core.errors import HomeError
from openfang.storage.database import Database

if TYPE_CHECKING:
    from openfang.app.home.paths import Home
    from openfang.config.models import Config


def at_rest(home: Home, config: Config) -> Database:
    """Open it as it is. On a server the same looks are answered, but for those at a file."""
    file = config.storage.file(home.path)
    if file is None:
        from openfang.storage.postgres.address import address  # noqa: PLC0415 - start-up time
        from openfang.storage.postgres.resting import Resting  # noqa: PLC0415 - as above

        return cast("Database", Resting(address(config.storage.url)))
    if not file.exists():
        raise HomeError(f"{file} is missing.", way_out="openfang doctor")
    return Database(file)
