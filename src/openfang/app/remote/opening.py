"""How a session with a daemon begins: with the key of the environment, and as part of its chain."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import to_thread

from openfang.app.environment import credential, incoming_chain
from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.errors import Unauthenticated
from openfang.host.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.app.home.paths import Home
    from openfang.core.session import Session


@asynccontextmanager
async def open_remote(url: str, home: Home, environ: Mapping[str, str]) -> AsyncGenerator[Session]:
    """Speak to the daemon at an address, as the holder of the home's key."""
    secret = await to_thread.run_sync(credential, home, environ)
    async with Loopback(url, headers=_headers(secret, environ)) as client:
        yield Remote(Asking(client))


def _headers(secret: str, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Say who calls, and as part of whose chain."""
    if not (secret.isascii() and secret.isprintable()):
        raise Unauthenticated(
            "The key holds what no key of this node holds.",
            way_out="look at OPENFANG_API_KEY, or: openfang keys create NAME",
        )
    headers = [("Authorization", f"Bearer {secret}")]
    chain = incoming_chain(environ)
    if chain.shared:
        headers.append(("traceparent", chain.traceparent))
    if chain.starry_id:
        headers.append(("X-OpenStarry-Trace-ID", chain.starry_id))
    if chain.ancestors:
        headers.append(("OpenFang-Chain", ",".join(chain.ancestors)))
    return headers
