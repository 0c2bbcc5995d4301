"""How the node of a home is: by its own word where a daemon runs, else by what lies in the home."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.app.daemon.discovery import Found, daemon_of, look
from openfang.app.environment import credential
from openfang.app.remote.asking import Asking
from openfang.core.errors import OpenFangError
from openfang.host.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.daemon.discovery import Absent
    from openfang.app.home.paths import Home

_SECONDS: Final = 5.0


async def read_status(home: Home, environ: Mapping[str, str]) -> dict[str, Any]:
    """Say whether a daemon runs, which one, and how the node is."""
    found = await look(home.path)
    if isinstance(found, Found):
        return {**_running(home, found), **await _by_its_word(found.url, home, environ)}
    return await to_thread.run_sync(_at_rest, home, environ, found)


async def reload_config(home: Home, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Let the daemon read its configuration anew; none runs, none is told."""
    found = await daemon_of(home.path)
    if found is None:
        return None
    secret = await to_thread.run_sync(credential, home, environ)
    async with Loopback(found.url, headers=[("Authorization", f"Bearer {secret}")]) as client:
        return await Asking(client).act("POST", "/api/config/reload", dict[str, Any], {})


def _running(home: Home, found: Found) -> dict[str, Any]:
    return {
        "running": True,
        **({"busy": found.busy} if found.busy else {}),
        "home": str(home.path),
        "url": found.url,
        "pid": found.pid,
        "version": found.version,
        "started_at": found.started_at,
    }


async def _by_its_word(url: str, home: Home, environ: Mapping[str, str]) -> dict[str, Any]:
    """Ask it; that it tells this key nothing is no reason to say that it does not run."""
    try:
        secret = await to_thread.run_sync(credential, home, environ)
        async with Loopback(url, headers=[("Authorization", f"Bearer {secret}")]) as client:
            return await Asking(client).get("/api/status", dict[str, Any], timeout=_SECONDS)
    except OpenFangError as error:
        return {"problem": error.message, "way_out": error.way_out}


def _at_rest(home: Home, environ: Mapping[str, str], absent: Absent) -> dict[str, Any]:
    body: dict[str, Any] = {"running": absent.silent, "home": str(home.path)}
    if absent.why:
        body["found"] = absent.why
    if absent.pid is not None:
        body["pid"] = absent.pid
    if not home.exists:
        return {**body, "problem": "There is no home here.", "way_out": "openfang init"}
    from openfang.config.load import check  # noqa: PLC0415 - 0.2 s that a daemon saves

    problems = [problem.as_json() for problem in check(home.path, environ)]
    state = "wrong" if problems else "in order"
    body["config"] = {"state": state, "file": str(home.config_file), "problems": problems}
    try:
        return {**body, **_of_database(home, environ)}
    except OpenFangError as error:
        return body if problems else {**body, "problem": error.message, "way_out": error.way_out}


def _of_database(home: Home, environ: Mapping[str, str]) -> dict[str, Any]:
    from openfang.app.anchor import audit_body  # noqa: PLC0415 - as above
    from openfang.app.home.naming import known_as  # noqa: PLC0415 - as above
    from openfang.app.home.resting import at_rest  # noqa: PLC0415 - as above
    from openfang.config.load import load  # noqa: PLC0415 - as above
    from openfang.storage.approvals import ApprovalStore  # noqa: PLC0415 - as above
    from openfang.storage.database import at_once  # noqa: PLC0415 - as above
    from openfang.storage.health import chain_head  # noqa: PLC0415 - as above

    config = load(home.path, environ)
    database = at_rest(home, config)
    try:
        node = at_once(known_as(home, config, database))
        head = chain_head(database, node)
        return {
            "node": node,
            "approvals": at_once(ApprovalStore(database).count_pending(time.time_ns())),
            "audit": at_once(audit_body(database, node, head, config)),
        }
    finally:
        database.close()
