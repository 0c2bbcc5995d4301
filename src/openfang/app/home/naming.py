"""The name of a node: one for each home, whatever other nodes use the same database."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from openfang.config.cluster import NAME
from openfang.core.errors import HomeError
from openfang.host.private import write_private
from openfang.storage.state import Settings

if TYPE_CHECKING:
    from openfang.app.home.paths import Home
    from openfang.config.models import Config
    from openfang.storage.ports import Reader


async def node_of(home: Home, config: Config, reader: Reader) -> str:
    """The name of the node whose home it is; on a server, one gets its name when it is new."""
    return await known_as(home, config, reader) or _named(home)


async def known_as(home: Home, config: Config, reader: Reader) -> str:
    """The name that the node has so far, if it has one."""
    first = await first_name(reader)
    if config.storage.file(home.path) is not None:
        return first
    return config.cluster.node or kept_name(home)


async def first_name(reader: Reader) -> str:
    """The name of the first node: to peers, all nodes of one database are one by this name."""
    first = await Settings(reader).get("node")
    if first is None:
        raise HomeError(
            "The home is only half made: it has no node.",
            way_out="openfang init; for a Postgres server: openfang storage migrate --to URL",
        )
    return first


def keep_name(home: Home, node: str) -> None:
    """Let the home go by this name on whatever server it moves to, if it has none there yet."""
    if not home.node_file.exists():
        write_private(home.node_file, f"{node}\n")


def new_name() -> str:
    """A name that no other node has."""
    return f"node-{secrets.token_hex(4)}"


def _named(home: Home) -> str:
    keep_name(home, new_name())
    return kept_name(home)


def kept_name(home: Home) -> str:
    """The name in the home's file, if there is one."""
    if not home.node_file.exists():
        return ""
    name = home.node_file.read_text("utf-8", errors="replace").strip()
    if not re.fullmatch(NAME, name):
        raise HomeError(
            f"{home.node_file} holds no name of a node: {name[:80]!r}.",
            way_out="write one into it: letters, digits, _ . and -, at most 63",
        )
    return name
