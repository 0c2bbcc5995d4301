"""What a server lists becomes tools, what it answers becomes results; nothing is lost."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from openfang.core.ids import Kind
from openfang.core.results import Result, text_part
from openfang.registry.classify import Declared, ForeignTool, classified_tool, classify
from openfang.safety.schemas import MAX_SCHEMA_DEPTH
from openfang.safety.sizes import measure
from openfang.sources.mcp.spec import NO_OVERRIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.spec import Override, ServerSpec

_log = logging.getLogger("openfang.mcp")
_KNOWN = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_LONGEST_NAME = 200
_LONGEST_TEXT = 100_000


def tools_of(
    spec: ServerSpec,
    listed: Iterable[object],
    rules: Rules,
    rejected: dict[str, str] | None = None,
) -> list[Tool]:
    """Make tools of everything that is one; the rest is left out, told in the log and noted."""
    found: dict[str, Tool] = {}
    for number, entry in enumerate(listed):
        problem = _problem(entry)
        if problem:
            _log.warning("%s lists a tool that cannot be used: %s", spec.name, problem)
            if rejected is not None:
                rejected[_shown(entry, number)] = problem
            continue
        tool = _tool(spec, cast("Mapping[str, Any]", entry), rules)
        if tool.name in found:
            _log.warning("%s lists %s twice; the first one counts", spec.name, tool.name)
        elif spec.shows(tool.name):
            found[tool.name] = tool
    return list(found.values())


def _shown(entry: object, number: int) -> str:
    """What to call an entry that is no tool."""
    name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
    return name[:_LONGEST_NAME] if isinstance(name, str) and name else f"#{number + 1}"


def _problem(entry: object) -> str:
    """Say what is wrong with an entry of the list, if anything is."""
    if not isinstance(entry, dict):
        return "it is no object"
    tool = cast("dict[str, object]", entry)
    name, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        return "it has no name"
    if not isinstance(schema, dict):
        return f"{name} has no inputSchema"
    if measure(tool)[0] > MAX_SCHEMA_DEPTH:
        return f"{name} is nested deeper than {MAX_SCHEMA_DEPTH} levels"
    return ""


def _tool(spec: ServerSpec, entry: Mapping[str, Any], rules: Rules) -> Tool:
    override = spec.overrides.get(entry["name"], NO_OVERRIDE)
    foreign = ForeignTool(
        kind=Kind.MCP,
        source=spec.name,
        name=entry["name"],
        description=_text(entry.get("description")),
        title=_text(entry.get("title")) or None,
        input_schema=entry["inputSchema"],
        output_schema=_object(entry.get("outputSchema")),
        annotations=_object(entry.get("annotations")) or {},
        remote=spec.remote,
    )
    verdict = classify(foreign, trust=spec.trust, overrides=_stated(spec, override), rules=rules)
    return replace(
        classified_tool(foreign, verdict, trust=spec.trust),
        description=f"[MCP:{spec.name}] {foreign.description}".rstrip(),
        denied_tags=spec.denied_tags,
        enabled=override.enabled,
        timeout=override.timeout,
        lane=f"mcp:{spec.name}",
        at_once=spec.at_once,
    )


def _stated(spec: ServerSpec, override: Override) -> Declared:
    declared = override.declared
    return replace(declared, risk=spec.risk) if declared.risk is None else declared


def _text(value: object) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def result_of(body: Mapping[str, Any]) -> Result:
    """Take a server's answer as it is; what has the wrong shape becomes text that says so."""
    content: object = body.get("content", [])
    return Result(
        content=_parts(content),
        structured=body.get("structuredContent"),
        is_error=body.get("isError") is True,
        meta=_object(body.get("_meta")) or {},
        extra={name: value for name, value in body.items() if name not in _KNOWN},
    )


def _parts(content: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(content, list):
        return (text_part(f"The server answered with {type(content).__name__} as its content."),)
    return tuple(_part(part) for part in cast("Sequence[object]", content))


def _part(part: object) -> Mapping[str, Any]:
    if isinstance(part, dict):
        return cast("dict[str, Any]", part)
    return text_part(str(part))
