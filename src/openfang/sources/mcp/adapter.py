"""What a server lists becomes tools, what it answers becomes results; nothing is lost."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import orjson

from openfang.core.ids import Kind
from openfang.core.progress import Progress
from openfang.core.results import Result, text_part
from openfang.protocols.hops.path import via_of
from openfang.registry.classify import Declared, ForeignTool, classified_tool, classify
from openfang.safety.schemas import MAX_SCHEMA_DEPTH
from openfang.safety.sizes import measure
from openfang.sources.mcp.abilities import OPERATIONS
from openfang.sources.mcp.spec import NO_OVERRIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.core.tools import Tool
    from openfang.protocols.mcp.errors import RpcError
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.spec import Override, ServerSpec

_log = logging.getLogger("openfang.mcp")
_KNOWN = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_LONGEST_NAME = 200
_SHORT_NAME = 100
_TOLD = 20
# What one call of any tool may take; a server whose own limit is higher may take that.
_USUAL_LIMIT = 60.0
_LONGEST_TEXT = 100_000


def tools_of(
    spec: ServerSpec,
    listed: Iterable[object],
    rules: Rules,
    rejected: dict[str, str] | None = None,
) -> list[Tool]:
    """Make tools of everything that is one; the rest is left out, told in the log and noted."""
    found: dict[str, Tool] = {}
    problems: dict[str, str] = {}
    for number, entry in enumerate(listed):
        problem = _problem(entry)
        if problem:
            name = _shown(entry, number)
            problems[name] = f"{name} {problem}"
            continue
        said = cast("Mapping[str, Any]", entry)
        tool = replace(tool_of(spec, _foreign(spec, said), rules), via=via_of(said))
        if tool.name in found:
            problems[f"#{number + 1}"] = f"{tool.name} is listed twice; the first one counts"
        elif spec.shows(tool.name):
            found[tool.name] = tool
    _tell(spec.name, problems)
    if rejected is not None:
        rejected.update(problems)
    return list(found.values())


def _tell(server: str, problems: Mapping[str, str]) -> None:
    """Put the first few into the log: a list may be wrong ten thousand times."""
    for problem in islice(problems.values(), _TOLD):
        _log.warning("%s lists a tool that cannot be used: %s", server, problem)
    if len(problems) > _TOLD:
        _log.warning("%s lists %d more of that kind", server, len(problems) - _TOLD)


def _shown(entry: object, number: int) -> str:
    """What to call an entry that is no tool."""
    name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        return f"#{number + 1}"
    short = name[:_SHORT_NAME] + ("..." if len(name) > _SHORT_NAME else "")
    return short if short.isprintable() else ascii(short)[1:-1]


def _problem(entry: object) -> str:
    """Say what is wrong with an entry of the list, if anything is."""
    if not isinstance(entry, dict):
        return "is no object"
    tool = cast("dict[str, object]", entry)
    if problem := _name_problem(tool.get("name")):
        return problem
    if not isinstance(tool.get("inputSchema"), dict):
        return "has no inputSchema"
    if measure(tool)[0] > MAX_SCHEMA_DEPTH:
        return f"is nested deeper than {MAX_SCHEMA_DEPTH} levels"
    return ""


def _name_problem(name: object) -> str:
    if not isinstance(name, str) or not name:
        return "has no name"
    if len(name) > _LONGEST_NAME:
        return f"has a name of {len(name)} characters, more than {_LONGEST_NAME}"
    if name in OPERATIONS:
        return "has the name of what is no tool"
    return "" if name.isprintable() else "has control characters in its name"


def _foreign(spec: ServerSpec, entry: Mapping[str, Any]) -> ForeignTool:
    return ForeignTool(
        kind=spec.kind,
        source=spec.name,
        name=entry["name"],
        description=_text(entry.get("description")),
        title=_text(entry.get("title")) or None,
        input_schema=entry["inputSchema"],
        output_schema=_object(entry.get("outputSchema")),
        annotations=_object(entry.get("annotations")) or {},
        remote=spec.remote,
    )


def tool_of(spec: ServerSpec, foreign: ForeignTool, rules: Rules) -> Tool:
    """Weigh what is said of a tool, the operator's word on it and on its server included."""
    override = spec.overrides.get(foreign.name, NO_OVERRIDE)
    if spec.weigh is not None:
        foreign = replace(foreign, declared=spec.weigh(foreign, rules))
    verdict = classify(foreign, trust=spec.trust, overrides=_stated(spec, override), rules=rules)
    return replace(
        classified_tool(foreign, verdict, trust=spec.trust),
        description=f"{_prefix(spec)}{foreign.description}".rstrip(),
        denied_tags=spec.denied_tags,
        enabled=override.enabled,
        timeout=_timeout(spec, override),
        lane=f"{spec.kind.value}:{spec.name}",
        at_once=spec.at_once,
    )


def _prefix(spec: ServerSpec) -> str:
    return f"[MCP:{spec.name}] " if spec.kind is Kind.MCP else ""


def as_listed(spec: ServerSpec, definition: str) -> dict[str, Any]:
    """Turn what is remembered of a tool back into what the server listed."""
    entry: dict[str, Any] = orjson.loads(definition)
    entry["description"] = f"{entry['description']} ".removeprefix(_prefix(spec)).rstrip()
    return entry


def _timeout(spec: ServerSpec, override: Override) -> float | None:
    if override.timeout is not None:
        return override.timeout
    return spec.timeout if spec.timeout > _USUAL_LIMIT else None


def _stated(spec: ServerSpec, override: Override) -> Declared:
    declared = override.declared
    return replace(declared, risk=spec.risk) if declared.risk is None else declared


def _text(value: object) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def progress_of(params: Mapping[str, Any]) -> Progress:
    """Take what a server says of its progress; what is no number counts as none."""
    progress, total = _number(params.get("progress")), _number(params.get("total"))
    return Progress(progress=progress or 0, total=total, message=_text(params.get("message")))


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def fault_result(server: str, error: RpcError) -> Result:
    """Take a server's error for its answer: in words for a model, and as it is for a peer."""
    fault: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        fault["data"] = error.data
    text = f"{server} answered with error {error.code}: {error.message}"
    return Result(content=(text_part(text),), is_error=True, fault=fault)


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
    if isinstance(content, list):
        return tuple(map(_part, cast("Sequence[object]", content)))
    if content is None:
        return ()
    return (text_part(f"[no list of parts, but:] {_json(content)}"),)


def _part(part: object) -> Mapping[str, Any]:
    if isinstance(part, dict):
        return cast("dict[str, Any]", part)
    return text_part(part if isinstance(part, str) else _json(part))


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
