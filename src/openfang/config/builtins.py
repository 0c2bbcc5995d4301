"""The names of the built-in tools, as a manifest may grant them; a test holds them to the real."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from openfang.core.ids import Kind

_PREFIX: Final = "builtin:"
_GLOB: Final = frozenset("*?[")
_KINDS: Final = frozenset(kind.value for kind in Kind)
_SPELLED: Final = ", ".join(f"{kind}:" for kind in sorted(_KINDS))
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
ALIASES: Final = {"bash_exec": "shell_exec"}


def canonical(grant: str) -> str:
    """Write the grant of a built-in by its id; anything else stays as it is."""
    name = grant.removeprefix(_PREFIX)
    return f"{_PREFIX}{ALIASES.get(name, name)}" if name in BUILTINS else grant


def mistaken(grant: str) -> str:
    """Say what is wrong with a granted tool that cannot exist; empty if it may.

    A name without a prefix may be that of a tool that others bring, unless it is nearly ours.
    """
    kind, colon, _ = grant.partition(":")
    if kind == Kind.AGENT.value:
        return f'expected a tool, got "{grant}"; agents are granted by agent_message'
    if colon and kind not in _KINDS and not _GLOB & set(kind):
        return f'expected a tool that exists, got "{grant}"; ids begin with {_SPELLED}'
    name = grant.removeprefix(_PREFIX)
    if name in BUILTINS or _GLOB & set(grant) or ":" in name:
        return ""
    near = get_close_matches(name.lower(), sorted(BUILTINS), n=1, cutoff=0.8)
    if not near and name == grant:
        return ""
    meant = f"; {near[0]} is meant?" if near else ""
    return f'expected a tool that exists, got "{grant}"{meant}'


def no_host(grant: str) -> str:
    """Say what is wrong with a network grant that can match no host; empty if it may."""
    if "/" not in grant:
        return ""
    return f'expected a host, or host:port, got "{grant}"'
