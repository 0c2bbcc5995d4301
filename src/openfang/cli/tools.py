"""`openfang tools list|show|accept`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.held import reasons
from openfang.cli.options import Json, tags
from openfang.cli.output import fields, first_sentence, json_text, note, print_json, say, table
from openfang.cli.session import on_home
from openfang.core.bodies import tool_body
from openfang.core.ids import Kind
from openfang.core.tools import Risk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.tools import Tool

_INDENTED = 1
_KINDS = {word: kind for kind in Kind for word in (kind.value, kind.source_type)}


def list_tools(
    *,
    source: Annotated[str | None, Parameter(help="builtin, mcp, ext, agent or a2a.")] = None,
    risk: Annotated[str | None, Parameter(help="LOW, MEDIUM, HIGH or CRITICAL.")] = None,
    tag: Annotated[str | None, Parameter(help="A side effect, such as fs.write.")] = None,
    every: Annotated[
        bool, Parameter(name="--all", help="Also those that are disabled or held back.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the tools that your key can see."""
    kind, level = _kind(source), _risk(risk)
    if tag is not None:
        tags((tag,))
    found = on_home(lambda session: session.tools(kind=kind, risk=level, tag=tag, disabled=every))
    if as_json:
        print_json([tool_body(tool) for tool in found])
    else:
        _show_list(found)


def _show_list(found: Sequence[Tool]) -> None:
    if not found:
        note("No tool matches.")
        return
    headers = ("name", "risk", "side effects", "source", "what it does")
    table(
        headers,
        (
            (
                tool.wire_name,
                tool.risk.name,
                ", ".join(sorted(tool.tags)) or "none",
                tool.source,
                _state(tool) + first_sentence(tool.description.removeprefix(_said_by(tool))),
            )
            for tool in found
        ),
    )


def _state(tool: Tool) -> str:
    if tool.hold:
        return "(held back) "
    return "" if tool.enabled else "(disabled) "


def _said_by(tool: Tool) -> str:
    """What a description of a foreign tool begins with; in a list the source stands beside it."""
    return f"[MCP:{tool.source}] "


def _kind(word: str | None) -> Kind | None:
    if word is None:
        return None
    if word not in _KINDS:
        raise Usage(f"There is no source {word!r}.", way_out=f"one of {', '.join(sorted(_KINDS))}")
    return _KINDS[word]


def _risk(word: str | None) -> Risk | None:
    try:
        return None if word is None else Risk.parse(word)
    except KeyError:
        raise Usage(
            f"There is no risk {word!r}.", way_out="LOW, MEDIUM, HIGH or CRITICAL"
        ) from None


def show_tool(name: str, /, *, as_json: Json = False) -> None:
    """Show everything that is known of a tool.

    Args:
        name: Its name or its id.
    """
    tool, held = on_home(lambda session: session.tool(name))
    if as_json:
        diff = held["diff"] if held else ""
        print_json({**tool_body(tool), "diff": diff, "held_back": held})
    else:
        show(tool, held)


def show(tool: Tool, held: Mapping[str, Any] | None) -> None:
    """Print all of a tool; if it is held back, what a person decides by."""
    shown = {
        "name": tool.wire_name,
        "id": tool.id,
        "also called": ", ".join(tool.aliases),
        "title": tool.title or "",
        "description": tool.description,
        "source": tool.source,
        "kind": tool.kind.source_type,
        "trust": tool.trust.value,
        "risk": tool.risk.name,
        "side effects": ", ".join(sorted(tool.tags)) or "none",
        "effect": _effect(tool),
        "labels of results": ", ".join(tool.labels.names),
        "admin token": "required" if tool.requires_admin_token else "",
        "state": tool.hold or ("enabled" if tool.enabled else "disabled"),
        "input": _schema(tool.input_schema),
        "output": _schema(tool.output_schema) if tool.output_schema else "",
    }
    fields({name: value for name, value in shown.items() if value})
    if held:
        say("\nWhy it is held back:")
        for line in reasons(held):
            say(line)
        note(f"accept it as it is now: openfang tools accept {tool.id}")


def _effect(tool: Tool) -> str:
    effect, targets = tool.sink.effect.value, ", ".join(tool.sink.targets)
    return f"{effect}, chosen by {targets}" if targets else effect


def _schema(schema: object) -> str:
    return json_text(schema, _INDENTED)


def accept_tool(name: str, /) -> None:
    """Take a tool that is held back as it is now.

    Args:
        name: Its name or its id.
    """
    tool = on_home(lambda session: session.accept_tool(name))
    say(f"{tool.id} is accepted as it is now.")
