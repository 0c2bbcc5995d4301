"""What no single key can tell: a name used twice, and a door left open."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Protocol, TypeVar

from openfang.config.problems import Problem, shown, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openfang.config.merge import Merged
    from openfang.config.models import Config, Place
    from openfang.config.servers import McpServer


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Named)
_TAKEN = frozenset({"api", "mcp", "metrics", "v1"})


def distinct_servers(
    placed: Iterable[tuple[McpServer, Place]],
) -> tuple[dict[str, tuple[McpServer, Place]], list[Problem]]:
    """Keep each server once. Two files may say the same of one server, and nothing else."""
    kept: dict[str, tuple[McpServer, Place]] = {}
    problems: list[Problem] = []
    for server, place in placed:
        first, there = kept.setdefault(server.name, (server, place))
        if there is place or (first == server and there.file != place.file):
            continue
        problems.append(_twice("mcp_servers", server.name, place, there))
    return kept, problems


def settled(config: Config, merged: Merged) -> Iterator[Problem]:
    """Check what one validated configuration as a whole must keep to."""
    yield from _distinct(("nodes",), config.nodes, merged)
    yield from _distinct(("a2a", "external_agents"), config.a2a.external_agents, merged)
    yield from _distinct(("triggers",), config.triggers, merged)
    if config.a2a.listen_path.split("/")[1] in _TAKEN:
        path = shown(config.a2a.listen_path)
        message = f"expected a path that nothing else is served at, got {path}"
        yield Problem(merged.place(("a2a", "listen_path")), "a2a.listen_path", message)
    if not config.auth.require_key and not is_loopback(config.listen[0]):
        message = f"expected true while api_listen is {config.api_listen}, got false"
        yield Problem(merged.place(("auth", "require_key")), "auth.require_key", message)


def unknown_servers(config: Config, merged: Merged) -> Iterator[Problem]:
    """Find the servers that a toolset names, and nothing else does."""
    known = {server.name for server in config.mcp_servers}
    for name, toolset in config.toolsets.items():
        for number, server in enumerate(toolset.servers):
            if server not in known:
                key = ("toolsets", name, "servers", number)
                message = f"expected the name of an entry of mcp_servers, got {shown(server)}"
                yield Problem(merged.place(key), spell(key, merged.data), message)


def _distinct(
    path: tuple[str, ...], entries: Sequence[_Entry], merged: Merged
) -> Iterator[Problem]:
    first: dict[str, Place] = {}
    for number, entry in enumerate(entries):
        place = merged.place((*path, number))
        if first.setdefault(entry.name, place) is not place:
            yield _twice(".".join(path), entry.name, place, first[entry.name])


def _twice(key: str, name: str, place: Place, first: Place) -> Problem:
    return Problem(
        place, f"{key}.{name}", f"expected one entry of this name, got another in {first}"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a node that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
