"""Where a client on this machine reaches the node over HTTP, and the key that it is given."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openfang.app.daemon.discovery import Daemon, claimed, this_daemon
from openfang.core.calls import Grants
from openfang.core.errors import ConfigError, NotFound
from openfang.core.keys import Key, opened
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.config.models import Config
    from openfang.core.keys import AdminToken
    from openfang.core.session import Session

_EDGE: Final = "mcp"
_PROJECT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """An address, and what to know about it."""

    url: str
    notes: tuple[str, ...] = ()


def reached_at(home: Path, config: Config) -> Reached:
    """Say where the daemon is now, or where it will be when it is started."""
    running, port = claimed(home), config.listen[1]
    if not isinstance(running, Daemon):
        if not port:
            raise ConfigError(
                f"The node listens at {config.api_listen}: any port, which nobody knows yet.",
                way_out="openfang start, or a fixed port in api_listen",
            )
        return Reached(url=this_daemon(*config.listen).url, notes=(_NOT_RUNNING,))
    if running.url.endswith(f":{port}"):
        return Reached(url=running.url)
    passing = f"the daemon listens at {running.listen_addr} only until it is started again"
    return Reached(url=running.url, notes=(f"{passing}: set api_listen to keep it",))


_NOT_RUNNING: Final = "no daemon runs, and over HTTP nothing else answers: openfang start --detach"


async def keys_in_force(session: Session) -> list[Key | AdminToken]:
    """List the keys that open something now."""
    now = time.time_ns()
    return [
        key
        for key in await session.keys()
        if key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
    ]


async def make_key(
    session: Session, word: str, *, toolset: str | None = None, agent: str | None = None
) -> tuple[Key, str]:
    """Make a key that opens the MCP edge alone, called as the client is, or with a number.

    One for a toolset or an agent opens nothing else.
    """
    taken = {key.name for key in await session.keys()}
    name, number = word, 2
    while name in taken:
        name, number = f"{word}-{number}", number + 1
    toolsets, agents = bound_to(toolset, agent)
    wanted = Key(
        id="",
        name=name,
        edges=(_EDGE,),
        toolsets=toolsets,
        agents=agents,
        grants=Grants(tools=("*",)),
        projects=(_PROJECT,),
    )
    return await session.create_key(wanted)


def bound_to(toolset: str | None, agent: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say which toolsets and agents a key for this one opens; for neither, any."""
    return opened((toolset,) if toolset else None, (agent,) if agent else None)


async def end_key(session: Session, key: str) -> None:
    """End a key that nothing refers to any more; one that has ended is no mistake."""
    with suppress(NotFound):
        await session.revoke_key(key)
