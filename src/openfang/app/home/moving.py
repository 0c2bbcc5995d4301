"""Moves a home's state from its SQLite file to a Postgres server; the file stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.app.home.naming import keep_name
from openfang.app.home.restore import to_ourselves
from openfang.audit.chain import Row, Verifier
from openfang.config.load import load
from openfang.core.errors import Conflict, HomeError
from openfang.core.values import dataclass
from openfang.storage.postgres.address import address
from openfang.storage.postgres.move import move

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from openfang.app.home.paths import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedHome:
    """What lies on the server now, where `server` is, and the `line` that makes the home use it."""

    file: Path
    server: str
    line: str
    rows: Mapping[str, int]
    new: bool


async def move_home(home: Home, environ: Mapping[str, str], url: str) -> MovedHome:
    """Copy all that the home keeps. Nobody may use it meanwhile."""
    target = address(url)
    config = load(home.path, environ)
    file = config.storage.file(home.path)
    if file is None:
        raise Conflict(
            "The home keeps its state on a Postgres server already.", way_out="openfang doctor"
        )
    if not file.exists():
        raise HomeError(f"There is no database {file}.", way_out="openfang init")
    with to_ourselves(home.path.resolve()):
        moved = await move(file, target, _check)
        keep_name(home, moved.node)
    line = f'url = "{target.to_write}"'
    return MovedHome(file=file, server=str(target), line=line, rows=moved.rows, new=moved.new)


def _check(rows: Iterable[tuple[Any, ...]]) -> None:
    """Refuse a log that is not what was written: it would be the other place's word then."""
    verifier = Verifier(())
    for row in rows:
        verifier.read(Row(row[0], row[1], row[2], row[3:9], row[9]))
    findings = verifier.finish()
    if findings:
        raise HomeError(
            f"The log is not what was written: {findings[0].text}.",
            way_out="see what is wrong with: openfang audit verify",
        )
