"""The operator's own words: what the configuration names is trusted as a target (C9.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.safety.urls import without_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.config.models import Config


def operators_words(config: Config) -> Iterator[str]:
    """Addresses of servers, peers and the node itself, and the names of peers."""
    for server in config.mcp_servers:
        url = getattr(server.transport, "url", None)
        if url is not None:
            yield without_user(url)
    for peer in config.a2a.external_agents:
        yield without_user(peer.url)
        yield f'peer "{peer.name}"'
    if config.public_url is not None:
        yield without_user(config.public_url)
