"""The nodes that share the database of a home, for a command that only looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.app.cluster.people import node_body
from openfang.app.home.paths import Home
from openfang.app.home.resting import at_rest
from openfang.config.load import load
from openfang.storage.database import at_once
from openfang.storage.members import members

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def together(home: Path, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Describe them as the database knows them; on a file there is one node alone, and no such."""
    config = load(home, environ)
    if config.storage.file(home) is not None:
        return []
    database = at_rest(Home(home), config)
    try:
        return [node_body(one) for one in at_once(members(database))]
    finally:
        database.close()
