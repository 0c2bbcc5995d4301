"""Grants are globs. Nothing granted means nothing allowed; `*` must be written."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.core.calls import Grants, Mode
from openfang.core.ids import Kind
from openfang.policy.commands import covers_command
from openfang.policy.globs import host_within, matches, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.calls import Caller
    from openfang.core.tools import Tool

__all__ = [
    "agent_name",
    "can_see",
    "covers",
    "exceeding",
    "held_to",
    "matches",
    "meet",
    "way_to_grant",
]
_BUILTIN: Final = f"{Kind.BUILTIN.value}:"
Covers: TypeAlias = "Callable[[tuple[str, ...], str], bool]"


def covers(granted: tuple[str, ...], glob: str) -> bool:
    """Whether everything that a glob stands for is granted; in doubt it is not."""
    return any(within(glob, one) for one in granted)


def _covers_tool(granted: tuple[str, ...], glob: str) -> bool:
    """Whether these tools are granted: a built-in by its id or by its name."""
    named = glob.removeprefix(_BUILTIN)
    return covers(granted, glob) or (named != glob and covers(granted, named))


def _covers_host(granted: tuple[str, ...], host: str) -> bool:
    return any(host_within(host, one) for one in granted)


def exceeding(wanted: Grants, granted: Grants) -> list[str]:
    """Say what of one set of grants the other does not cover, each in words."""
    compared = [
        ("tools", wanted.tools, granted.tools, _covers_tool),
        ("network", wanted.network, granted.network, _covers_host),
        ("shell", wanted.shell, granted.shell, covers_command),
        ("memory_read", wanted.memory_read, granted.memory_read, covers),
        ("memory_write", wanted.memory_write, granted.memory_write, covers),
        ("agent_message", wanted.agents or (), granted.agents or (), covers),
        ("agent_kill", wanted.agent_kill, granted.agent_kill, covers),
    ]
    found = [
        f"{name} {glob}"
        for name, asked, given, within_given in compared
        for glob in asked
        if not within_given(given, glob)
    ]
    spawns = wanted.agent_spawn and not granted.agent_spawn
    return [*found, "agent_spawn"] if spawns else found


@lru_cache(maxsize=1024)
def meet(one: Grants, other: Grants) -> Grants:
    """Grant what both of them do; of patterns that overlap only in part, nothing."""
    return Grants(
        tools=_common(one.tools, other.tools, _covers_tool),
        network=_common(one.network, other.network, _covers_host),
        shell=_common(one.shell, other.shell, covers_command),
        memory_read=_common(one.memory_read, other.memory_read),
        memory_write=_common(one.memory_write, other.memory_write),
        agents=_common_agents(one, other),
        agent_spawn=one.agent_spawn and other.agent_spawn,
        agent_kill=_common(one.agent_kill, other.agent_kill),
        closed=tuple(dict.fromkeys((*one.closed, *other.closed))),
    )


def held_to(caller: Caller, bounds: Caller) -> Caller:
    """Hold one caller to what another may do."""
    planning = Mode.PLANNING in {caller.mode, bounds.mode}
    return replace(
        caller,
        grants=meet(caller.grants, bounds.grants),
        mode=Mode.PLANNING if planning else Mode.EXECUTION,
        projects=tuple(one for one in caller.projects if one in bounds.projects),
        blacklist=caller.blacklist | bounds.blacklist,
    )


def _common(
    one: tuple[str, ...], other: tuple[str, ...], covered: Covers = covers
) -> tuple[str, ...]:
    kept = [glob for glob in one if covered(other, glob)]
    return tuple(dict.fromkeys((*kept, *(glob for glob in other if covered(one, glob)))))


def _common_agents(one: Grants, other: Grants) -> tuple[str, ...] | None:
    if one.agents is None and other.agents is None:
        return None
    return _common(_agents(one), _agents(other))


def _agents(grants: Grants) -> tuple[str, ...]:
    """Give the agents that are granted, also where they are granted as tools."""
    if grants.agents is not None:
        return grants.agents
    kind = f"{Kind.AGENT.value}:"
    named = (glob.removeprefix(kind) for glob in grants.tools if glob.startswith(kind))
    return ("*",) if "*" in grants.tools else tuple(named)


def can_see(caller: Caller, tool: Tool) -> bool:
    """Whether the tool exists for this caller: by its canonical id or by any of its names."""
    if caller.within is not None and not caller.within.holds(tool):
        return False
    granted, agents = caller.grants.tools, caller.grants.agents
    if tool.kind is Kind.AGENT and agents is not None:
        return matches(agents, tool.name)
    if tool.kind is Kind.AGENT and tool.operation:  # it is for who may call the agent
        return matches(granted, f"{Kind.AGENT.value}:{tool.source}")
    if matches(granted, tool.id) or matches(granted, tool.wire_name):
        return True
    return any(matches(granted, alias) for alias in tool.aliases)


def agent_name(caller: Caller) -> str:
    """The name of an agent that calls; empty if it is somebody else."""
    kind, _, name = caller.id.partition(":")
    return name if kind == Kind.AGENT.value else ""


def way_to_grant(caller: Caller, grant: str, value: str) -> str:
    """Say how a caller is granted something: an agent by its manifest, anybody else by a key."""
    if agent := agent_name(caller):
        return f'{grant} = ["{value}"] in [capabilities]: openfang agents edit {agent}'
    option = grant.replace("_", "-")
    return f"openfang keys create NAME --{option} '{value}'"
