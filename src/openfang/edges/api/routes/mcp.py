"""`/api/mcp`: the MCP servers whose tools are offered, how they are, and changes of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.servers import NEW_SERVER

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ONE = "/api/mcp/servers/{name}"
_ACTS = {
    "restart": "Connect to a server anew.",
    "enable": "Accept a server: it is connected, now and at every start.",
    "disable": "Let a server go; its entry stays.",
    "login": "Connect to a server anew: somebody has signed in to it.",
    "logout": "Forget the sign-in to a server.",
}


async def _list(asked: Asked) -> Answer:
    return json_answer(await asked.session.servers())


async def _health(asked: Asked) -> Answer:
    return json_answer(await asked.session.server_health())


async def _show(asked: Asked) -> Answer:
    return json_answer(await asked.session.server(asked.path["name"]))


async def _logs(asked: Asked) -> Answer:
    lines = await asked.session.server_log(asked.path["name"])
    return json_answer({"lines": lines, "total": len(lines)})


async def _refresh(asked: Asked) -> Answer:
    return json_answer(await asked.session.refresh_servers())


async def _test(asked: Asked) -> Answer:
    return json_answer(await asked.session.try_server(asked.path["name"]))


async def _add(asked: Asked) -> Answer:
    return json_answer(await asked.session.add_server(asked.body), 201)


async def _remove(asked: Asked) -> Answer:
    return json_answer(await asked.session.remove_server(asked.path["name"]))


async def _change(act: str, asked: Asked) -> Answer:
    return json_answer(await asked.session.change_server(asked.path["name"], act))


def _act(act: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"{_ONE}/{act}",
        name=f"{act}_server",
        summary=summary,
        handle=partial(_change, act),
        access=Access.ADMIN,
        body=schemas.NOTHING,
        answers={200: "Server"},
        problems=(403, 404, 409, 422),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/mcp/servers",
        name="list_servers",
        summary="MCP servers, and the tools of those that are connected; details for insiders.",
        handle=_list,
        answers={200: "Servers"},
    ),
    Endpoint(
        method="GET",
        path="/api/mcp/health",
        name="server_health",
        summary="The health of each MCP server.",
        handle=_health,
        answers={200: "ServerHealth"},
    ),
    Endpoint(
        method="POST",
        path="/api/mcp/servers/refresh",
        name="refresh_servers",
        summary="Ask the MCP servers for their tools again: how many answered, and who did not.",
        handle=_refresh,
        awaited=True,
        access=Access.ADMIN,
        body=schemas.NOTHING,
        answers={200: "Refreshed"},
        problems=(403, 422),
    ),
    Endpoint(
        method="POST",
        path="/api/mcp/servers",
        name="add_server",
        summary="Write an MCP server down; it waits until it is enabled.",
        handle=_add,
        access=Access.ADMIN,
        body=NEW_SERVER,
        answers={201: "Server"},
        problems=(403, 409, 422),
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_server",
        summary="Everything that is known of an MCP server.",
        handle=_show,
        access=Access.AUDITOR,
        answers={200: "Server"},
        problems=(403, 404),
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="remove_server",
        summary="Take an MCP server out of the configuration.",
        handle=_remove,
        access=Access.ADMIN,
        answers={200: "Server"},
        problems=(403, 404, 409, 422),
    ),
    Endpoint(
        method="GET",
        path=f"{_ONE}/logs",
        name="server_log",
        summary="What an MCP server last wrote for people.",
        handle=_logs,
        access=Access.AUDITOR,
        answers={200: "ServerLog"},
        problems=(403, 404),
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/test",
        name="test_server",
        summary="Connect to an MCP server once more, and say what is wrong.",
        handle=_test,
        awaited=True,
        access=Access.ADMIN,
        work="call",
        body=schemas.NOTHING,
        answers={200: "Trial"},
        problems=(403, 404, 422),
    ),
    *(_act(act, summary) for act, summary in _ACTS.items()),
)
