"""Grants are globs. Nothing granted means nothing allowed; `*` must be written."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openfang.core.calls import Caller
    from openfang.core.tools import Tool


@lru_cache(maxsize=4096)
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs))


@lru_cache(maxsize=65_536)
def matches(globs: tuple[str, ...], name: str) -> bool:
    """Whether any of the globs covers the whole name, case and all."""
    return bool(globs) and _pattern(globs).match(name) is not None


def can_see(caller: Caller, tool: Tool) -> bool:
    """Whether the tool exists for this caller: by its canonical id or by its wire name."""
    granted = caller.grants.tools
    return matches(granted, tool.id) or matches(granted, tool.wire_name)
