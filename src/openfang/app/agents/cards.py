"""An agent as it is shown: what everybody sees who may call it, and what insiders see besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.agents.models.providers import Choice, is_planner, settled, shown
from openfang.agents.spec import Mind, Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.agents.spec import AgentSpec


def open_card(spec: AgentSpec, default: Choice) -> Mapping[str, Any]:
    """What is said of an agent to everybody who may call it; `default` is the node's own model."""
    return {
        "name": spec.name,
        "title": spec.title or spec.name,
        "description": spec.description,
        "version": spec.version,
        "tags": list(spec.tags),
        "model": _model(spec, default),
    }


def card(spec: AgentSpec, default: Choice, layers: Sequence[str] = ()) -> Mapping[str, Any]:
    """All that can be told of it: what it may reach, spend and is bound to.

    `layers` stand between its process and the machine, if it is a program and runs.
    """
    grants, budget = spec.grants, spec.budget
    bounds = budget.bounds
    return {
        **open_card(spec, default),
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


def _model(spec: AgentSpec, default: Choice) -> str:
    does = spec.does
    if not isinstance(does, Mind):
        return f"python:{does.file.name}"
    if is_planner(does.choice, default):
        return "planner"
    return shown(settled(does.choice, default))
