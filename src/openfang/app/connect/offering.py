"""The toolset that a client is wired to: the tools of all that was accepted on this node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.app.home.editing import Editing
from openfang.app.home.paths import Home
from openfang.config.edit import with_table
from openfang.config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.config.show import Plain

TOOLSET: Final = "servers"
_WHOLE: Final[dict[str, Plain]] = {"tools": ["mcp:*", "ext:*"]}


def write_toolset(home: Path, environ: Mapping[str, str]) -> bool:
    """Write it into the configuration; one of that name stays as it is, and nothing is done."""
    if TOOLSET in load(home, environ).toolsets:
        return False
    editing = Editing(home, environ)
    file, place = Home(home).config_file, ("toolsets", TOOLSET)
    editing.commit(editing.prepare(file, lambda text: with_table(text, place, _WHOLE)))
    return True
