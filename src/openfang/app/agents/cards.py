"""An agent as it is shown: what everybody sees who may call it, and what insiders see besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.agents.spec import Mind, Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.agents.spec import AgentSpec

PLANNER: Final = frozenset({"default", "embedded", "planner"})


def open_card(spec: AgentSpec) -> Mapping[str, Any]:
    """What is said of an agent to everybody who may call it."""
    return {
        "name": spec.name,
        "title": spec.title or spec.name,
        "description": spec.description,
        "version": spec.version,
        "tags": list(spec.tags),
        "model": _model(spec),
    }


def card(spec: AgentSpec, layers: Sequence[str] = ()) -> Mapping[str, Any]:
    """All that can be told of it: what it may reach, spend and is bound to.

    `layers` stand between its process and the machine, if it is a program and runs.
    """
    grants, budget = spec.grants, spec.budget
    bounds = budget.bounds
    return {
        **open_card(spec),
        "tools": list(grants.tools),
        "network": list(grants.network),
        "shell": list(grants.shell),
        "memory_read": list(grants.memory_read),
        "memory_write": list(grants.memory_write),
        "agents": list(grants.agents or ()),
        "agent_spawn": grants.agent_spawn,
        "agent_kill": list(grants.agent_kill),
        "mode": spec.mode.value,
        "projects": list(spec.projects),
        "spec": spec.spec,
        "blacklist": sorted(spec.blacklist),
        "tokens_per_hour": budget.tokens or None,
        "cost_usd_per_hour": budget.cost_usd or None,
        "tool_calls": bounds.tool_calls,
        "tool_calls_per_minute": bounds.calls_per_minute,
        "tool_timeout_secs": bounds.tool_seconds,
        "receive_from": None if spec.takes.senders is None else list(spec.takes.senders),
        "workspace": str(spec.workspace),
        "deny_paths": list(grants.closed),
        "sandbox": spec.does.sandbox if isinstance(spec.does, Program) else None,
        "layers": list(layers),
        "parent": spec.parent or None,
    }


def _model(spec: AgentSpec) -> str:
    does = spec.does
    if not isinstance(does, Mind):
        return f"python:{does.file.name}"
    if does.provider in PLANNER:
        return "planner"
    return f"{does.provider}/{does.model} (not served)"
