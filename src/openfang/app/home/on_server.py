"""What is looked at where a home is on a Postgres server: it, its schema, its clock, its nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.app.cluster.sealing import same_key
from openfang.app.home.checks import Check, fail, ok, warn
from openfang.app.home.new import require_master_key
from openfang.core.errors import HomeError
from openfang.host.secrets import MasterKey
from openfang.storage.database import at_once, migrations
from openfang.storage.health import schema_version
from openfang.storage.members import members
from openfang.storage.queued import ON_QUEUES, QUEUE

if TYPE_CHECKING:
    from openfang.app.home.paths import Home
    from openfang.config.models import Config
    from openfang.storage.database import Database

Look: TypeAlias = Callable[[], Check]
_LOOKS: Final = 3
_SLOW_MS: Final = 20.0
_OFF_SECONDS: Final = 5.0
_FAR_OFF_SECONDS: Final = 60.0
"""What another node signed longer ago than that is refused."""
_OLDEST: Final = "SELECT oldest FROM migrations ORDER BY number DESC LIMIT 1"


def of_server(database: Database, home: Home, config: Config) -> tuple[Look, ...]:
    """List what can be looked at, each by itself."""
    return (
        partial(_answers, database),
        partial(_schema, database),
        partial(_master_key, database, home, config),
        partial(_clock, database),
        partial(_members, database),
        partial(_engine, database, config),
    )


def _answers(database: Database) -> Check:
    """Say how far away it is: by the quickest of some looks, behind the one that connects."""
    version = database.read_now("SHOW server_version")[0][0]
    took = min(_took(database) for _ in range(_LOOKS))
    text = f"{database.path} answers within {took:.1f} ms (PostgreSQL {version})"
    if took > _SLOW_MS:
        return warn("database", text, "run nodes near the server: each call waits for its record")
    return ok("database", text)


def _took(database: Database) -> float:
    began = time.perf_counter()
    database.read_now("SELECT 1")
    return 1e3 * (time.perf_counter() - began)


def _schema(database: Database) -> Check:
    from openfang.storage.postgres.migrate import refuse_newer  # noqa: PLC0415 - start-up time

    found, known = schema_version(database), migrations("postgres")[-1][0]
    if found < known:
        fix = "openfang start: the first node of this version does that"
        return warn("schema", f"{found}, this version brings it to {known}", fix)
    try:
        refuse_newer(found, known, int(database.read_now(_OLDEST)[0][0]))
    except HomeError as error:
        return fail("schema", error.message, error.way_out)
    newer = f", of a later version; this one ({known}) can live with it" if found > known else ""
    return ok("schema", f"{found}{newer}")


def _master_key(database: Database, home: Home, config: Config) -> Check:
    try:
        require_master_key(home, config)
        master = MasterKey.open(home.path, keyring=config.secrets.keyring)
        at_once(same_key(database, master))
    except HomeError as error:
        return fail("master key", error.message, error.way_out)
    return ok("master key", "the one of all nodes of this database")


def _clock(database: Database) -> Check:
    """Hold our clock against that of the server."""
    before = time.time_ns()
    there = int(database.read_now("SELECT clock_ns()")[0][0])
    off = ((before + time.time_ns()) / 2 - there) / 1e9
    text = f"{abs(off):.1f} s {'ahead of' if off > 0 else 'behind'} that of the database"
    if abs(off) < _OFF_SECONDS:
        return ok("clock", text)
    fix = "let a time service (NTP) keep the clock, here and on the database server"
    return (fail if abs(off) > _FAR_OFF_SECONDS else warn)("clock", text, fix)


def _members(database: Database) -> Check:
    found = at_once(members(database))
    if not found:
        return ok("members", "no node has served this database yet")
    states = sorted({one.state for one in found})
    by_state = {state: [one.node for one in found if one.state == state] for state in states}
    text = "; ".join(f"{state}: {', '.join(nodes)}" for state, nodes in by_state.items())
    if "dead" not in by_state:
        return ok("members", text)
    name = by_state["dead"][0]
    return warn("members", text, f"start it again, or: openfang nodes remove {name}")


def _engine(database: Database, config: Config) -> Check:
    wanted, installed = config.cluster.engine, find_spec("dbos") is not None
    if wanted != "inline" and installed:
        return ok("engine", "dbos: any node works on a task, from queues in the database")
    if wanted == "dbos":
        return fail("engine", "dbos is wanted, and not installed", "pip install 'openfang[scale]'")
    why = "a task is worked on by the node that took it"
    if wanted != "inline":
        why = "the extra `scale` is not installed"
    return _nobody_takes(database) or ok("engine", f"inline: {why}")


def _nobody_takes(database: Database) -> Check | None:
    """Say what is left on queues from which such a node takes nothing."""
    count = int(database.read_now(ON_QUEUES, (f"{QUEUE}%", f"{QUEUE}%"))[0][0])
    if not count:
        return None
    left = f"inline, and what is on queues waits for a node that takes from them: {count}"
    return warn("engine", left, 'start one node with cluster.engine = "dbos" until they have ended')
