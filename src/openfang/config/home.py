"""Where the home is. Every command asks this first, so nothing else is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_home(environ: Mapping[str, str]) -> Path:
    """Say where the home is: `$OPENFANG_HOME`, else `~/.openfang`."""
    user = user_home(environ)
    named = environ.get("OPENFANG_HOME")
    if not named:
        return user / ".openfang"
    return user / named[2:] if named.startswith("~/") else Path.cwd() / named


def user_home(environ: Mapping[str, str]) -> Path:
    """Say where the user's own home is."""
    named = environ.get("HOME")
    return Path(named) if named else Path.home()
