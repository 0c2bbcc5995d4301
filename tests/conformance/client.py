"""The client that the conformance suite is run against: our own core, and next to nothing else.

The suite starts it with the address of a server as the last argument, and names the scenario in the
environment. It does what our sources do: it connects, makes tools of what is listed, compiles their
schemas and calls them; and it reads every resource and gets every prompt. `CONFORMANCE_FAULT` makes
it misbehave, so that a test can see that the suite notices.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import anyio
import orjson
from tests.conformance.auth import oauth, sign_ins

from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.meta import ClientInfo
from openfang.registry.rules import DEFAULT_RULES
from openfang.safety.schemas import compile_schema
from openfang.sources.mcp.adapter import tools_of
from openfang.sources.mcp.answers import with_defaults
from openfang.sources.mcp.listing import list_all
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.spec import Http, ServerSpec
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from openfang.core.tools import Tool
    from openfang.sources.mcp.connection import Connection

SECONDS: Final = 50
SHOWN: Final = 2000
PLAIN: Final[Mapping[str, object]] = {
    "string": "text",
    "integer": 3,
    "number": 4,
    "boolean": True,
    "array": [],
    "null": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the suite wants."""

    url: str
    scenario: str
    revision: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fault: str = ""

    @property
    def spec(self) -> ServerSpec:
        signing = oauth(self.scenario, self.context)
        reached = Http(url=self.url, allow_private=True, oauth=signing)
        return ServerSpec(name="suite", reached=reached)


def say(text: str) -> None:
    sys.stdout.write(f"{text[:SHOWN]}\n")


# What servers may ask


class Offered:
    """A peer that answers by a table; a form is accepted without writing anything into it."""

    capabilities: ClassVar[Mapping[str, Any]] = {
        "sampling": {},
        "elicitation": {"form": {}},
        "roots": {},
    }

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method not in ANSWERS:
            raise RpcError(METHOD_NOT_FOUND, f"{method} is not offered")
        return with_defaults(params, ANSWERS[method])

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "elicitation/create": {"action": "accept"},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "an answer"},
        "model": "none",
        "stopReason": "endTurn",
    },
    "roots/list": {"roots": [{"uri": "file:///workspace", "name": "workspace"}]},
}


# What is asked of servers


def calls(task: Task, tools: Sequence[Tool]) -> list[tuple[str, Mapping[str, Any]]]:
    """Say what to call: what the suite wants called, or else every tool once."""
    if wanted := cast("list[dict[str, Any]]", task.context.get("toolCalls", [])):
        return [(call["name"], call["arguments"]) for call in wanted]
    if task.scenario == "json-schema-2020-12-preservation":
        schemas = {tool.name: tool.input_schema for tool in tools}
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(tool.name, arguments(tool.input_schema)) for tool in tools]


def arguments(schema: Mapping[str, Any]) -> dict[str, object]:
    """Give what a tool cannot do without."""
    fields = schema.get("properties", {})
    kinds = {name: fields.get(name, {}).get("type") for name in schema.get("required", [])}
    return {name: PLAIN.get(str(kind), {}) for name, kind in kinds.items()}


async def attempt(asking: Awaitable[object]) -> None:
    """Wait for an answer; an error is one too."""
    try:
        say(orjson.dumps(await asking).decode())
    except RpcError as error:
        say(f"error: {error}")


async def entries(connection: Connection, kind: str) -> list[dict[str, Any]]:
    async def page(params: Mapping[str, Any]) -> Mapping[str, Any]:
        return await connection.request(f"{kind}/list", params)

    return await list_all(page, kind) if kind in connection.abilities else []


async def use(connection: Connection, task: Task) -> None:
    tools = tools_of(task.spec, await connection.tools(), DEFAULT_RULES)
    for tool in tools:
        compile_schema(tool.input_schema)
    # All at once, so that what belongs to one call is seen not to get into another.
    async with anyio.create_task_group() as group:
        for name, values in calls(task, tools):
            group.start_soon(attempt, connection.call(name, values))
    for resource in await entries(connection, "resources"):
        await attempt(connection.ask("resources/read", {"uri": resource["uri"]}))
    for prompt in await entries(connection, "prompts"):
        await attempt(connection.ask("prompts/get", {"name": prompt["name"]}))


# What a client may get wrong


class Careless(Offered):
    """A peer that gives back an accepted form without its defaults."""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        del method, params
        return {"action": "accept", "content": {}}


def nothing(connection: Connection) -> None:
    """Leave it as it is."""
    del connection


def unmirrored(connection: Connection) -> None:
    """Leave out the headers that a tool wants."""
    connection._mirrored = lambda name, arguments: None  # noqa: ARG005 - a method's signature


def unsaid(connection: Connection) -> None:
    """Leave out who asks, and in which revision."""
    connection._stamp = {}


def credulous(connection: Connection) -> None:
    """Use the tools that want what is not allowed."""
    connection._usable = lambda tools: tools


def crashing(connection: Connection) -> None:
    """End with an error."""
    del connection
    raise SystemExit("the client fails")


FAULTS: Final = {
    "unmirrored": unmirrored,
    "unsaid": unsaid,
    "credulous": credulous,
    "crashing": crashing,
}


async def main(task: Task) -> None:
    reach = Reach(
        client=ClientInfo(name="openfang", version=__version__),
        capabilities=Offered.capabilities,
        complained=lambda name, line: say(f"{name}: {line}"),
        sign_ins=None if task.fault == "unsigned" else sign_ins(),
    )
    peer = Careless() if task.fault == "careless" else Offered()
    with anyio.fail_after(SECONDS):
        async with reach(task.spec, peer) as connection:
            say(f"{connection.transport.kind} {connection.version}")
            if connection.version != task.revision:
                raise SystemExit(f"{connection.version} was agreed on, not {task.revision}")
            FAULTS.get(task.fault, nothing)(connection)
            await use(connection, task)


def start() -> None:
    task = Task(
        url=sys.argv[-1],
        scenario=os.environ["MCP_CONFORMANCE_SCENARIO"],
        revision=os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        context=orjson.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
        fault=os.environ.get("CONFORMANCE_FAULT", ""),
    )
    anyio.run(main, task, backend_options={"use_uvloop": True})
    say("done")


if __name__ == "__main__":
    start()
