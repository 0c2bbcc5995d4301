"""A session on the home of the environment: with its daemon where one runs, else in process.

The choice is made once, before anything heavy is imported. What was sent to a daemon that then
dies is never made again in process.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import to_thread

from openfang.app.daemon.discovery import daemon_of
from openfang.app.environment import credential, incoming_chain
from openfang.app.home.paths import Home
from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.config.home import find_home
from openfang.core.errors import Unauthenticated
from openfang.host.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.core.session import Session


@asynccontextmanager
async def open_session(environ: Mapping[str, str] | None = None) -> AsyncGenerator[Session]:
    """Open the home of the environment, as the holder of its key."""
    environ = os.environ if environ is None else environ
    home = Home(find_home(environ))
    daemon = await daemon_of(home.path)
    if daemon is None:
        from openfang.app.local import open_local  # noqa: PLC0415 - 0.3 s that a daemon saves

        async with open_local(environ) as session:
            yield session
    else:
        secret = await to_thread.run_sync(credential, home, environ)
        async with Loopback(daemon.url, headers=_headers(secret, environ)) as client:
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
