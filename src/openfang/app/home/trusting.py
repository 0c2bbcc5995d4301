"""Whom and what the home trusts: definitions that wait for a person, and keys that nobody has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.app.home.checks import Check, ok, warn
from openfang.storage.database import at_once
from openfang.storage.health import held_back
from openfang.storage.keys import KeyStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.config.models import Config
    from openfang.storage.database import Database

_SHOWN = 3


def held(database: Database) -> Check:
    """Say what was held back at first sight, and is still not accepted."""
    ids = held_back(database)
    if not ids:
        return ok("definitions", "none waits for a person")
    names = ", ".join(ids[:_SHOWN]) + (" and more" if len(ids) > _SHOWN else "")
    text = f"{len(ids)} held back at first sight: {names}"
    return warn("definitions", text, "openfang servers held, then openfang servers accept ID")


def peers(database: Database, config: Config) -> Check:
    """Say which peers are to come in with a key that is not there: they would not be known."""
    keys = {key.name for key in at_once(KeyStore(database, b"").all()) if key.revoked_at is None}
    lost = [f"{name} comes as {key}" for name, key in _named(config) if key not in keys]
    if not lost:
        return ok("peers", "each comes with a key that is there")
    fix = "openfang keys create NAME, or correct comes_as"
    return warn("peers", f"there is no such key: {', '.join(lost)}", fix)


def _named(config: Config) -> Iterator[tuple[str, str]]:
    for one in (*config.nodes, *config.mcp_servers, *config.a2a.external_agents):
        if one.comes_as:
            yield one.name, one.comes_as
