"""Tools: find one, see how a call of it would be decided, then make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.bodies import tool_body
from openfang.core.calls import Mode
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Parked, UnknownTool
from openfang.core.session import Options
from openfang.core.tools import Risk
from openfang.edges.web.asking import Page
from openfang.edges.web.schemas import arguments, fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tools import Tool
    from openfang.edges.web.asking import Ask

_MOST: Final = 500
_LONGEST: Final = 200


async def show(ask: Ask) -> Page:
    """List the tools that this key can see."""
    found = await ask.session.tools(disabled=True)
    text = ask.query.get("q", "").strip()[:_LONGEST].lower()
    source, risk = ask.query.get("source", ""), ask.query.get("risk", "")
    shown = [
        one
        for one in found
        if _source(one).startswith(source)
        and risk in {"", one.risk.name}
        and all(word in _words(one) for word in text.split())
    ]
    return Page(
        template="tools.html",
        title="Tools",
        section="tools",
        values={
            "tools": shown[:_MOST],
            "total": len(found),
            "matching": len(shown),
            "text": text,
            "source": source,
            "risk": risk,
            "sources": sorted({_source(one) for one in found}),
            "risks": [one.name for one in Risk],
        },
    )


def _source(tool: Tool) -> str:
    return tool.kind.value if tool.source == tool.kind.value else f"{tool.kind.value}:{tool.source}"


def _words(tool: Tool) -> str:
    told = f"{tool.id} {tool.wire_name} {tool.title or ''} {tool.description} {' '.join(tool.tags)}"
    return told.lower()


async def one(ask: Ask) -> Page:
    """Show one tool, with a form to try it."""
    tool, held = await ask.session.tool(ask.names["id"])
    tried = await _tried(ask, tool) if ask.came.method == "POST" else {}
    return Page(
        template="tool.html",
        title=tool.id,
        section="tools",
        crumbs=(("Tools", "/tools"), (tool.id, "")),
        values={
            "tool": tool_body(tool),
            "schema": dict(tool.input_schema),
            "held": held,
            "fields": fields(tool.input_schema, ask.form),
            "form": ask.form,
            "more": ask.form.get("more", ""),
            "mode": ask.form.get("mode", ""),
            "explanation": None,
            "result": None,
            "failure": None,
            "refusal": None,
            "parked": "",
            **tried,
        },
    )


async def _tried(ask: Ask, tool: Tool) -> dict[str, Any]:
    """Explain, or make the call; whatever becomes of it is shown beside the form."""
    chosen = ask.form.get("mode", "")
    options = Options(mode=Mode(chosen) if chosen in {"planning", "execution"} else None)
    try:
        given = arguments(tool.input_schema, ask.form)
        if ask.form.get("act") == "call":
            return await _called(ask, tool, given, options)
        return {"explanation": await ask.session.explain(tool.id, given, options), "given": given}
    except CallFailed as failure:
        return {"failure": failure}
    except Parked as parked:
        return {"refusal": parked, "parked": parked.question_id}
    except OpenFangError as refusal:
        return {"refusal": refusal}


async def _called(
    ask: Ask, tool: Tool, given: Mapping[str, Any], options: Options
) -> dict[str, Any]:
    try:
        return {"result": await ask.session.call(tool.id, given, options), "given": given}
    except UnknownTool:
        ask.came.node.charge(ask.caller, "call")
        raise
    except CallRefused as refusal:
        if not isinstance(refusal, Parked):
            return {"refusal": refusal, "verdicts": refusal.verdicts}
        raise
