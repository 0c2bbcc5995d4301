"""Policy: the operator's rules, what they would say of a call, and a draft held against the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.calls import Role
from openfang.core.errors import OpenFangError, Rejected
from openfang.edges.web.asking import Page

if TYPE_CHECKING:
    from openfang.edges.web.asking import Ask

_WHOM: Final = ("callers", "roles", "edges", "mode")
_WHAT: Final = ("tools", "kinds", "sources", "risk", "tags", "labels", "when", "condition")


async def show(ask: Ask) -> Page:
    """Show the rules; explain a call, or replay a draft."""
    auditor = ask.may(Role.AUDITOR)
    values: dict[str, Any] = {
        "rules": [_shown(dict(one)) for one in await ask.watch.rules(ask.caller)]
        if auditor
        else None,
        "explanation": None,
        "replay": None,
        "error": None,
        "tool": ask.form.get("tool", ask.query.get("tool", "")),
        "arguments": ask.form.get("arguments", "{}"),
        "draft": ask.form.get("draft", ""),
        "tools": [tool.id for tool in await ask.session.tools(disabled=True)],
        "auditor": auditor,
    }
    if ask.came.method == "POST":
        try:
            values |= await _act(ask)
        except OpenFangError as error:
            values["error"] = error
    return Page(template="policy.html", title="Policy", section="policy", values=values)


async def _act(ask: Ask) -> dict[str, Any]:
    if ask.form.get("act") == "replay":
        draft = ask.form.get("draft", "").replace("\r\n", "\n")
        return {"replay": await ask.watch.replay(ask.caller, draft)}
    given = _object(ask.form.get("arguments") or "{}")
    return {"explanation": await ask.session.explain(ask.form.get("tool", "").strip(), given)}


def _object(text: str) -> dict[str, Any]:
    try:
        given: object = json.loads(text)
    except ValueError:
        given = None
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    raise Rejected("The arguments must be a JSON object.", status=422, rule="arguments")


def _shown(rule: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": rule["name"],
        "effect": rule["effect"],
        "enabled": rule["enabled"],
        "shadow": rule["shadow"],
        "reason": rule.get("reason", ""),
        "whom": _said(rule, _WHOM),
        "what": _said(rule, _WHAT),
    }


def _said(rule: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    return [f"{name} {_text(rule[name])}" for name in names if rule.get(name)]


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return value if isinstance(value, str) else json.dumps(value)
