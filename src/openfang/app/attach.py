"""A session on the home of the environment: with its daemon where one runs, else in process.

The choice is made once, before anything heavy is imported. What was sent to a daemon that then
dies is never made again in process.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from openfang.app.daemon.discovery import daemon_of
from openfang.app.home.paths import Home
from openfang.config.home import find_home

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
        from openfang.app.remote.opening import open_remote  # noqa: PLC0415 - as the other one

        async with open_remote(daemon.url, home, environ) as session:
            yield session
