"""The pages, by address: each takes what was asked and makes what goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.edges.web.pages import (
    agents,
    approvals,
    audit,
    call,
    calls,
    keys,
    overview,
    policy,
    servers,
    settings,
    tasks,
    tools,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.edges.web.asking import Ask, Flow, Go, Page

PAGES: Final[dict[str, Callable[[Ask], Awaitable[Page | Go | Flow]]]] = {
    "/": overview.show,
    "/calls": calls.show,
    "/calls/live": calls.live,
    "/calls/{id}": call.show,
    "/approvals": approvals.show,
    "/approvals/{id}": approvals.one,
    "/tools": tools.show,
    "/tools/{id}": tools.one,
    "/servers": servers.show,
    "/servers/{name}": servers.one,
    "/agents": agents.show,
    "/agents/{name}": agents.one,
    "/agents/{name}/stream": agents.stream,
    "/tasks": tasks.show,
    "/tasks/{id}": tasks.one,
    "/policy": policy.show,
    "/audit": audit.show,
    "/audit/export": audit.export,
    "/keys": keys.show,
    "/settings": settings.show,
}
