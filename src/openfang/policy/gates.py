"""The six gates, in the seed's order and words, and the two of ours that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.calls import Call, Mode
from openfang.core.decisions import ALLOW, Ask, Decision, Deny
from openfang.core.ids import Kind
from openfang.core.tools import Risk, Tool, Trust
from openfang.core.values import dataclass
from openfang.policy.grants import agent_name, matches, way_to_grant
from openfang.policy.places import ungranted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.calls import Caller
    from openfang.core.ports import Gate


@dataclass(frozen=True, slots=True)
class DisabledGate:
    """A tool that is switched off, or held back because it changed, does not run."""

    name: str = "disabled"

    def check(self, tool: Tool, call: Call) -> Decision:  # noqa: ARG002 - a gate is asked about both
        if tool.available:
            return ALLOW
        if tool.hold:
            way_out = f"openfang tools show {tool.id}, then: openfang tools accept {tool.id}"
            return Deny("Tool is disabled", "tool_held", way_out)
        return Deny(
            "Tool is disabled",
            "tool_disabled",
            "take it out of tools.disabled, or enable its server",
        )


@dataclass(frozen=True, slots=True)
class ModeGate:
    """While planning, nothing with a side effect runs."""

    name: str = "mode"

    def check(self, tool: Tool, call: Call) -> Decision:
        if call.context.mode is Mode.PLANNING and tool.effects:
            reason = "Planning mode cannot use tools with side effects"
            return Deny(
                reason, "planning_mode", "call it with --mode execution, by a key bound to it"
            )
        return ALLOW


@dataclass(frozen=True, slots=True)
class SpecFrozenGate:
    """What is risky runs only by a plan that was frozen: the call's papers say whether it was.

    In the guided profile a person's yes may stand in for a plan; a made-up one is refused.
    """

    guided: bool = True
    name: str = "spec_frozen"

    def check(self, tool: Tool, call: Call) -> Decision:
        context = call.context
        if context.mode is not Mode.EXECUTION or tool.risk < Risk.HIGH:
            return ALLOW
        if context.spec_hash and call.papers.frozen_for(context.project):
            return ALLOW
        reason = "Execution mode requires spec_frozen=True"
        way_out = "openfang spec freeze FILE, then call with --spec HASH"
        if self.guided and not context.spec_hash:
            return Ask(reason, "spec_not_frozen", f"{way_out}; or a person approves the call")
        return Deny(reason, "spec_not_frozen", way_out)


@dataclass(frozen=True, slots=True)
class ProjectGate:
    """Whatever is not harmless belongs to a project."""

    name: str = "project"

    def check(self, tool: Tool, call: Call) -> Decision:
        if tool.risk >= Risk.MEDIUM and not call.context.project:
            return Deny("Tool requires project_id", "project_missing", _to_a_project(call.caller))
        return ALLOW


def _to_a_project(caller: Caller) -> str:
    if agent := agent_name(caller):
        return f'project = "default" in [policy]: openfang agents edit {agent}'
    return "a key made with: openfang keys create NAME --project default"


@dataclass(frozen=True, slots=True)
class BlacklistGate:
    """No tag of the tool is on the caller's blacklist or among those its server is denied."""

    name: str = "policy"

    def check(self, tool: Tool, call: Call) -> Decision:
        blacklist = call.context.blacklist
        if tool.tags.isdisjoint(blacklist) and tool.tags.isdisjoint(tool.denied_tags):
            return ALLOW
        barred = tool.tags & (blacklist | tool.denied_tags)
        reason = f"Side effect {min(barred)} is blacklisted"
        return Deny(
            reason,
            "side_effect_blacklisted",
            "policy.blacklist, the key's, or deny_side_effect_tags",
        )


def reads_papers(tool: Tool) -> bool:
    """Whether a gate here would read the papers of a call of this tool."""
    return tool.risk >= Risk.HIGH or tool.requires_admin_token or tool.trust is Trust.LOW


def _opens(call: Call, tool: Tool) -> bool:
    return bool(call.admin_token) and matches(call.papers.tools, tool.id)


@dataclass(frozen=True, slots=True)
class AdminTokenGate:
    """Some tools want a second credential, which opens them."""

    name: str = "admin_token"

    def check(self, tool: Tool, call: Call) -> Decision:
        if not tool.requires_admin_token:
            return ALLOW
        if _opens(call, tool):
            return ALLOW
        way_out = "openfang keys create NAME --admin-token, then call with --admin-token-file FILE"
        return Deny("Tool requires admin_token", "admin_token_missing", way_out)


@dataclass(frozen=True, slots=True)
class TrustGate:
    """What a source of low trust does to the world, a person or an admin token allows (C11.4)."""

    name: str = "trust"

    def check(self, tool: Tool, call: Call) -> Decision:
        if tool.trust is not Trust.LOW or not tool.effects:
            return ALLOW
        if _opens(call, tool):
            return ALLOW
        reason = f"{tool.source} has low trust, and {tool.name} has side effects"
        return Ask(
            reason, "low_trust", f'approve the call, or set trust = "medium" for {tool.source}'
        )


@dataclass(frozen=True, slots=True)
class GrantGate:
    """What a tool would do with its arguments is granted; `checks` are by tool id.

    An agent that hands an address to somebody else's tool needs a grant for its host.
    """

    checks: Mapping[str, Callable[[Call], Deny | None]]
    name: str = "grants"

    def check(self, tool: Tool, call: Call) -> Decision:
        check = self.checks.get(tool.id)
        if check is not None:
            return check(call) or ALLOW
        if call.caller.grants.agents is None or tool.kind in _OURS:
            return ALLOW
        return _beyond_network(tool, call) or ALLOW


def _beyond_network(tool: Tool, call: Call) -> Deny | None:
    """Find what among the arguments would reach further than the network grants."""
    caller = call.caller
    # What names a resource of a server is an address only if it says so.
    arguments = {"": [*call.arguments.values()]} if tool.operation else call.arguments
    found = ungranted(arguments, caller.grants.network, targets=tool.sink.targets)
    if found is None:
        return None
    host, what = found
    return Deny(
        f"{what} by the network grants of {caller.id}" if host else f"{what} ({caller.id})",
        "network_not_granted",
        way_to_grant(caller, "network", host or "HOST"),
    )


_OURS = frozenset({Kind.BUILTIN, Kind.AGENT})


def standard_gates(
    *,
    checks: Mapping[str, Callable[[Call], Deny | None]],
    guided: bool,
) -> tuple[Gate, ...]:
    """Every call passes these, top to bottom."""
    return (
        DisabledGate(),
        ModeGate(),
        SpecFrozenGate(guided),
        ProjectGate(),
        BlacklistGate(),
        AdminTokenGate(),
        TrustGate(),
        GrantGate(checks),
    )
