"""Settings: the configuration in force, and what this browser keeps of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError
from openfang.edges.web.asking import Go, Page
from openfang.edges.web.cookies import KEYS, read_cookies, set_cookie

if TYPE_CHECKING:
    from openfang.edges.web.asking import Ask

_OFF: Final = "off"


async def show(ask: Ask) -> Page | Go:
    """Show how the node is configured, read it anew, or change what the browser keeps."""
    error: OpenFangError | None = None
    act = ask.form.get("act", "")
    if act == "keys":
        wanted = _OFF if ask.form.get("letters") == _OFF else ""
        cookie = set_cookie(KEYS, wanted, secure=False, script=True)
        return Go(where="/settings", cookies=(cookie,))
    if act == "reload":
        await ask.came.node.require(ask.caller)
        try:
            await ask.came.node.reload()
            return Go(where="/settings")
        except OpenFangError as refused:
            error = refused
    shown: Any = ask.came.node.config() if ask.may(Role.AUDITOR) else None
    return Page(
        template="settings.html",
        title="Settings",
        section="settings",
        values={
            "status": await ask.came.node.status(ask.caller),
            "config": shown and shown["config"],
            "config_state": shown and shown["state"],
            "admin": ask.caller.admin,
            "letters_off": read_cookies(ask.came.headers).get(KEYS) == _OFF,
            "error": error,
        },
    )
