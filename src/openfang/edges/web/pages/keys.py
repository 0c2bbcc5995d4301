"""Keys: who may come in, made and ended here by an administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError, Rejected
from openfang.core.keys import EDGES, Key
from openfang.core.wire import key_body, read_key
from openfang.edges.web.asking import Page

if TYPE_CHECKING:
    from openfang.edges.web.asking import Ask

LIFETIMES: Final = {"": "never", "3600": "1 hour", "86400": "1 day", "2592000": "30 days"}


async def show(ask: Ask) -> Page:
    """List keys; make one, whose secret is on this answer only, or end one."""
    await ask.came.node.require(ask.caller)
    made: dict[str, Any] = {"secret": "", "error": None, "ended": ""}
    if ask.came.method == "POST":
        try:
            made |= await _act(ask)
        except OpenFangError as error:
            made["error"] = error
    now = ask.came.node.now()
    return Page(
        template="keys.html",
        title="Keys",
        section="keys",
        values={
            "keys": [key_body(key, now) for key in await ask.session.keys()],
            "roles": [role.value for role in Role],
            "edges": sorted(EDGES),
            "lifetimes": LIFETIMES,
            **made,
        },
    )


async def _act(ask: Ask) -> dict[str, Any]:
    name = ask.form.get("name", "").strip()
    if ask.form.get("act") == "revoke":
        return {"ended": (await ask.session.revoke_key(name)).name}
    if not name:
        raise Rejected("A key needs a name.", status=422, rule="form")
    wanted = read_key({"name": name, **_chosen(ask)})
    life = ask.form.get("life", "")
    ttl = float(life) if life in LIFETIMES and life else None
    if not isinstance(wanted, Key):
        raise Rejected("This is no key.", status=422, rule="form")
    made, secret = await ask.session.create_key(wanted, ttl=ttl)
    return {"secret": secret, "made": made.name}


def _chosen(ask: Ask) -> dict[str, Any]:
    role, edge = ask.form.get("role", ""), ask.form.get("edge", "")
    known = {one.value for one in Role}
    tools = ask.form.get("tools", "").split()
    return {
        "role": role if role in known else Role.USER.value,
        **({"edges": [edge]} if edge in EDGES else {}),
        **({"tools": tools} if tools else {}),
    }
