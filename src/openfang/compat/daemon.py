"""The seed's way to find a running daemon."""

from __future__ import annotations

import os
from pathlib import Path

from openfang.app.daemon.discovery import find_daemon_now
from openfang.config.home import find_home


def find_daemon(home: str | Path | None = None) -> str | None:
    """Return the base URL of the daemon that serves this home, or None. Takes two seconds at most.

    Without a home it is the one of the environment.
    """
    found = find_daemon_now(find_home(os.environ) if home is None else Path(home))
    return found.url if found else None
