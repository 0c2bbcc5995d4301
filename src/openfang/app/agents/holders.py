"""Who a run is for whose caller has gone: found again, and bound to what they may do now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.app.auth.scopes import BoundKey
from openfang.app.home.first_key import DEFAULT_PROJECT
from openfang.core.calls import Mode
from openfang.core.errors import PolicyViolation
from openfang.core.ids import Kind, tool_id
from openfang.core.keys import Key
from openfang.core.values import dataclass
from openfang.policy.context import Wish, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.agents.source import AgentSource
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller, Context

SCHEDULE: Final = "schedule"
TRIGGER: Final = "trigger"
OWN_TIME: Final = frozenset({SCHEDULE, TRIGGER})
"""The edges over which nobody comes: what an agent was told to do by itself."""
_KEY: Final = "key:"
_AGENT: Final = f"{Kind.AGENT.value}:"
_CONFIGURED: Final = "config"


@dataclass(frozen=True, slots=True)
class Holders:
    """Finds callers by their ids: those who have a key, and agents that have a manifest."""

    parts: Parts
    running: Mapping[str, AgentSource]

    async def find(self, caller: str) -> Caller | None:
        """Give who that is now; nothing if their key or their manifest is gone."""
        if caller.startswith(_AGENT):
            source = self.running.get(caller.removeprefix(_AGENT))
            return source.spec.caller if source and not source.spec.life else None
        return await self._by_key(caller.removeprefix(_KEY)) if caller.startswith(_KEY) else None

    async def must_find(self, caller: str, root: str = "") -> Caller:
        """Give who that is now, if they and whoever they act for may still call."""
        found = await self.find(caller)
        if found is None:
            raise _gone(caller)
        if root and root != caller and await self.find(root) is None:
            raise _gone(root)
        return found

    async def can_find(self, caller: Caller, root: str) -> bool:
        """Whether this one would be found again later, as it is, and whoever it acts for."""
        if caller.within is not None or await self.find(caller.id) is None:
            return False
        return root == caller.id or await self.find(root) is not None

    def context(self, caller: Caller, was: Context) -> Context:
        """Bind a caller to what it chose then. What it may not choose any more is refused."""
        blacklist = self.parts.config.policy.blacklist
        if caller.id.startswith(_AGENT):
            mode = Mode.PLANNING if was.mode is Mode.PLANNING else None
            wish = Wish(mode=mode, task_id=was.task_id, blacklist=was.blacklist)
            return bind(caller, wish, blacklist)
        wish = Wish(
            mode=was.mode,
            project_id=was.project,
            spec_hash=was.spec_hash,
            task_id=was.task_id,
            blacklist=was.blacklist,
        )
        return bind(caller, wish, blacklist)

    async def _by_key(self, name: str) -> Caller | None:
        if name == _CONFIGURED and self.parts.config.api_key is not None:
            return Key(id=name, name=name, projects=(DEFAULT_PROJECT,)).caller()
        now = self.parts.clock.time_ns()
        keys = [key for key in await self.parts.keys.all() if isinstance(key, Key)]
        return next(
            (self._caller(key) for key in keys if key.name == name and _holds(key, now)), None
        )

    def _caller(self, key: Key) -> Caller:
        return BoundKey(key, self.parts.config).caller() if key.bound else key.caller()


def reaching(caller: Caller, agent: str) -> Caller:
    """Let a caller reach one more agent, for this one call."""
    grants = caller.grants
    if grants.agents is None:
        more = replace(grants, tools=(*grants.tools, tool_id(Kind.AGENT, agent)))
    else:
        more = replace(grants, agents=(*grants.agents, agent))
    return replace(caller, grants=more)


def _holds(key: Key, now: int) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def _gone(caller: str) -> PolicyViolation:
    what = "manifest" if caller.startswith(_AGENT) else "key"
    return PolicyViolation(
        f"The {what} of {caller} is not in force any more.",
        rule="holder_gone",
        way_out="openfang agents list" if what == "manifest" else "openfang keys list",
    )
