"""Grants are globs. Nothing granted means nothing allowed; `*` must be written."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

from openfang.core.ids import Kind

if TYPE_CHECKING:
    from openfang.core.calls import Caller, Grants
    from openfang.core.tools import Tool


@lru_cache(maxsize=4096)
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs))


@lru_cache(maxsize=65_536)
def matches(globs: tuple[str, ...], name: str) -> bool:
    """Whether any of the globs covers the whole name, case and all."""
    return bool(globs) and _pattern(globs).match(name) is not None


_STRETCH = "\x00" * 97


def covers(granted: tuple[str, ...], glob: str) -> bool:
    """Whether everything that a glob stands for is granted; in doubt it is not."""
    if glob in granted or "*" in granted:
        return True
    if "[" in glob:
        return False
    samples = (glob.replace("?", "\x00").replace("*", part) for part in ("", _STRETCH))
    return all(matches(granted, sample) for sample in samples)


def exceeding(wanted: Grants, granted: Grants) -> list[str]:
    """Say what of one set of grants the other does not cover, each in words."""
    pairs = {
        "tools": (wanted.tools, granted.tools),
        "network": (wanted.network, granted.network),
        "shell": (wanted.shell, granted.shell),
        "memory_read": (wanted.memory_read, granted.memory_read),
        "memory_write": (wanted.memory_write, granted.memory_write),
        "agent_message": (wanted.agents or (), granted.agents or ()),
        "agent_kill": (wanted.agent_kill, granted.agent_kill),
    }
    found = [
        f"{name} {glob}"
        for name, (asked, given) in pairs.items()
        for glob in asked
        if not covers(given, glob)
    ]
    spawns = wanted.agent_spawn and not granted.agent_spawn
    return [*found, "agent_spawn"] if spawns else found


def can_see(caller: Caller, tool: Tool) -> bool:
    """Whether the tool exists for this caller: by its canonical id or by its wire name."""
    granted, agents = caller.grants.tools, caller.grants.agents
    if tool.kind is Kind.AGENT and agents is not None:
        return matches(agents, tool.name)
    return matches(granted, tool.id) or matches(granted, tool.wire_name)
