"""The names of the built-in tools, as a manifest may grant them; a test holds them to the real."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

_PREFIX: Final = "builtin:"
_GLOB: Final = frozenset("*?[")
BUILTINS: Final = frozenset(
    {
        *("file_read", "file_write", "file_list", "web_fetch", "web_search", "shell_exec"),
        *("bash_exec", "memory_store", "memory_recall", "system_time"),
        *("agent_send", "agent_spawn", "agent_list", "agent_kill", "agent_find"),
        *("task_post", "task_claim", "task_complete", "task_list", "event_publish"),
        *("schedule_create", "schedule_list", "schedule_delete"),
        *("image_analyze", "location_get", "a2a_discover", "a2a_send"),
    }
)


def mistaken(grant: str) -> str:
    """Say what is wrong with a granted tool that cannot exist; empty if it may.

    A name without a prefix may be that of a tool that others bring, unless it is nearly ours.
    """
    name = grant.removeprefix(_PREFIX)
    if name in BUILTINS or _GLOB & set(grant) or ":" in name:
        return ""
    near = get_close_matches(name, sorted(BUILTINS), n=1, cutoff=0.8)
    if not near and name == grant:
        return ""
    meant = f"; {near[0]} is meant?" if near else ""
    return f'expected a tool that exists, got "{grant}"{meant}'
