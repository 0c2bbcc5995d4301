"""`agent_send`, `agent_list`, `agent_find`, `agent_spawn`, `agent_kill`: agents and each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.decisions import Deny
from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.results import text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.policy.grants import matches
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.results import Result


class Directory(Protocol):
    """Who is there."""

    def known(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """List the agents that this caller may call: name, description, tags and more."""
        ...

    async def spawn(self, call: Call, manifest: str) -> str:
        """Begin an agent that has at most what its parent has, and give its name."""
        ...

    async def kill(self, call: Call, name: str) -> None:
        """End an agent that was spawned."""
        ...


_LONGEST_RUN = 86_400.0
_AGENT = {"type": "string", "minLength": 1, "maxLength": 64, "description": "Its name."}
_SEND = builtin_tool(
    "agent_send",
    "Send a message to another agent and wait for its answer.",
    object_schema(
        ["agent_id", "message"],
        agent_id=_AGENT,
        message={"type": "string", "description": "What to tell it."},
        session={"type": "string", "minLength": 1, "maxLength": 200},
    ),
    risk=Risk.LOW,
    tags=frozenset(),
    timeout=_LONGEST_RUN,  # bounded by the chain, like the agent itself
    hands_on=True,
)
_LIST = builtin_tool(
    "agent_list",
    "List the agents that you may send messages to.",
    object_schema(),
    risk=Risk.LOW,
    tags=frozenset(),
    idempotent=True,
)
_FIND = builtin_tool(
    "agent_find",
    "Find agents by a word in their name, description or tags.",
    object_schema(["query"], query={"type": "string", "minLength": 1, "maxLength": 200}),
    risk=Risk.LOW,
    tags=frozenset(),
    idempotent=True,
)
_SPAWN = builtin_tool(
    "agent_spawn",
    "Start another agent from a manifest; it gets at most what you have.",
    object_schema(
        ["manifest_toml"],
        manifest_toml={"type": "string", "maxLength": 32_000, "description": "An agent.toml."},
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"system.exec"}),
    sink=Sink(effect=Effect.LOCAL_WRITE),
)
_KILL = builtin_tool(
    "agent_kill",
    "End an agent that was started by another.",
    object_schema(["agent_id"], agent_id=_AGENT),
    risk=Risk.MEDIUM,
    tags=frozenset({"system.exec"}),
    sink=Sink(effect=Effect.LOCAL_WRITE),
    idempotent=True,
)


def agent_tools(
    directory: Callable[[], Awaitable[Directory]], invoke: Callable[[Call], Awaitable[Result]]
) -> Sequence[Builtin]:
    """The family of agents."""
    family = _Agents(directory, invoke)
    return [
        Builtin(_SEND, family.send),
        Builtin(_LIST, family.list),
        Builtin(_FIND, family.find),
        Builtin(_SPAWN, family.spawn, _may_spawn),
        Builtin(_KILL, family.kill, _may_kill),
    ]


@dataclass(frozen=True, slots=True)
class _Agents:
    directory: Callable[[], Awaitable[Directory]]
    invoke: Callable[[Call], Awaitable[Result]]

    async def send(self, admitted: Admitted) -> Result:
        """Call the agent as the same caller, in the same place of the chain."""
        call = admitted.call
        arguments = {key: value for key, value in call.arguments.items() if key != "agent_id"}
        name = str(call.arguments["agent_id"]).removeprefix(f"{Kind.AGENT.value}:")
        sent = replace(
            call,
            id=new_id("call"),
            tool=tool_id(Kind.AGENT, name),
            arguments=arguments,
            labels=admitted.labels,
            admin_token=None,
            progress=None,
        )
        result = await self.invoke(sent)
        return replace(result, receipt=None, call_id="")

    async def list(self, admitted: Admitted) -> Result:
        return _shown((await self.directory()).known(admitted.call.caller))

    async def find(self, admitted: Admitted) -> Result:
        word = str(admitted.call.arguments["query"]).casefold()
        known = (await self.directory()).known(admitted.call.caller)
        return _shown([one for one in known if word in _words(one)])

    async def spawn(self, admitted: Admitted) -> Result:
        manifest = str(admitted.call.arguments["manifest_toml"])
        name = await (await self.directory()).spawn(admitted.call, manifest)
        return text_result(f"Started {name}.", structured={"agent_id": name})

    async def kill(self, admitted: Admitted) -> Result:
        name = str(admitted.call.arguments["agent_id"]).removeprefix("agent:")
        await (await self.directory()).kill(admitted.call, name)
        return text_result(f"Ended {name}.")


def _words(agent: Mapping[str, Any]) -> str:
    named = (agent["name"], agent["title"], agent["description"], *agent["tags"])
    return "\n".join(map(str, named)).casefold()


def _shown(agents: Sequence[Mapping[str, Any]]) -> Result:
    lines = [f"{one['name']}: {one['description'] or 'no description'}" for one in agents]
    text = "\n".join(lines) or "There is no agent that you may call."
    return text_result(text, structured={"agents": [dict(one) for one in agents]})


def _may_spawn(call: Call) -> Deny | None:
    if call.caller.grants.agent_spawn or call.caller.admin:
        return None
    return Deny(
        f"{call.caller.id} may start no agents",
        code="grants.agent_spawn",
        way_out="agent_spawn = true in its manifest",
    )


def _may_kill(call: Call) -> Deny | None:
    name = str(call.arguments.get("agent_id", "")).removeprefix("agent:")
    if call.caller.admin or matches(call.caller.grants.agent_kill, name):
        return None
    return Deny(
        f"{call.caller.id} may not end {name}",
        code="grants.agent_kill",
        way_out=f'agent_kill = ["{name}"] in its manifest',
    )
