"""Servers: how each MCP server is, what it wrote, and what of it is held back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError, Rejected
from openfang.edges.web.asking import Go, Page
from openfang.edges.web.pages.overview import latency, servers_shown
from openfang.edges.web.words import segment

if TYPE_CHECKING:
    from openfang.edges.web.asking import Ask

ACTS: Final = ("restart", "enable", "disable")


async def show(ask: Ask) -> Page | Go:
    """List the servers; an administrator may have them all asked again."""
    told: dict[str, Any] = {}
    if ask.came.method == "POST":
        told = dict(await ask.session.refresh_servers())
    figures = await ask.watch.figures(ask.caller, 60)
    return Page(
        template="servers.html",
        title="Servers",
        section="servers",
        values={
            "servers": await servers_shown(ask, figures),
            "held": await ask.session.held() if ask.may(Role.AUDITOR) else (),
            "insider": ask.may(Role.AUDITOR),
            "admin": ask.caller.admin,
            "refreshed": told,
        },
    )


async def one(ask: Ask) -> Page | Go:
    """Show one server, or do something about it."""
    name = ask.names["name"]
    error: OpenFangError | None = None
    if ask.came.method == "POST":
        try:
            await _act(ask, name)
            return Go(where=f"/servers/{segment(name)}")
        except OpenFangError as refused:
            error = refused
    figures = await ask.watch.figures(ask.caller, 60, f"mcp:{name}")
    return Page(
        template="server.html",
        title=name,
        section="servers",
        crumbs=(("Servers", "/servers"), (name, "")),
        values={
            "server": await ask.session.server(name),
            "log": await ask.session.server_log(name),
            "held": await ask.session.held(name),
            "calls": figures.sources.get(f"mcp:{name}", (0, None)),
            "chart": latency(figures),
            "admin": ask.caller.admin,
            "error": error,
        },
    )


async def _act(ask: Ask, name: str) -> None:
    act = ask.form.get("act", "")
    if act == "accept":
        await ask.session.accept(ask.form.get("id", ""), ask.form.get("digest", ""))
    elif act in ACTS:
        await ask.session.change_server(name, act)
    else:
        raise Rejected(f"{act[:60]!r} can not be done with a server.", status=422, rule="form")
