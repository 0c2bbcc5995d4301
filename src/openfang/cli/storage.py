"""`openfang storage migrate`: a home on SQLite moves over to a Postgres server."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

from openfang.app.home.moving import MovedHome, move_home
from openfang.app.home.paths import Home
from openfang.cli.options import Json
from openfang.cli.output import fields, note, print_json, say
from openfang.cli.session import run_async
from openfang.config.home import find_home


def migrate(
    *,
    to: Annotated[str, Parameter(help="The server: postgresql://user:password@host/database")],
    as_json: Json = False,
) -> None:
    """Move a home on SQLite over to a Postgres server, all of it or nothing.

    The daemon must not run meanwhile. The audit log is checked on both sides. The file stays as it
    is, and the home goes on using it until the line that is shown stands in the configuration.
    """

    async def work() -> MovedHome:
        return await move_home(Home(find_home(os.environ)), os.environ, to)

    moved = run_async(work)
    if as_json:
        print_json(_body(moved))
        return
    say("The home is copied." if moved.new else "There is nothing to do: the home is there.")
    fields(
        {
            "from": moved.file,
            "to": moved.server,
            "records": f"{moved.rows.get('audit', 0):,}, checked on both sides",
            "rows": f"{sum(moved.rows.values()):,} in {len(moved.rows)} tables",
        }
    )
    note("To use it, write this into config.toml, with the password, and start the daemon:")
    note(f"[storage]\n{moved.line}")


def _body(moved: MovedHome) -> dict[str, object]:
    return {
        "new": moved.new,
        "file": str(moved.file),
        "to": moved.server,
        "rows": dict(moved.rows),
        "line": moved.line,
    }
