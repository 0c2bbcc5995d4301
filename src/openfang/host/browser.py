"""A person's browser, where there is one."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Final

_SCREENS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def open_browser(url: str) -> bool:
    """Open an address; not in a terminal, which is in use. It may take a while: use a thread."""
    if sys.platform != "darwin" and not any(map(os.environ.get, _SCREENS)):
        return False
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
