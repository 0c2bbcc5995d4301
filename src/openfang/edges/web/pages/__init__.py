"""The pages, by address: each takes what was asked and makes what goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.edges.web.pages import approvals, call, calls, overview, tools

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
}
