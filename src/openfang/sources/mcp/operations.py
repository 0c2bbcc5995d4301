"""What a server can be asked besides calls of its tools: resources, prompts, completions (C1.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.labels import Labels
from openfang.core.results import Part, Result, text_part
from openfang.core.tools import Risk, Trust
from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import BadAnswer
from openfang.registry.classify import Declared, ForeignTool
from openfang.sources.mcp.abilities import COMPLETE, PROMPT, READ, SUBSCRIBE, UNSUBSCRIBE
from openfang.sources.mcp.adapter import tool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.abilities import Abilities
    from openfang.sources.mcp.spec import ServerSpec

_HARMLESS: Final = Declared(risk=Risk.LOW, tags=frozenset(), polls=True)
# The address of a resource is the server's own name for it: who is trusted leads nowhere by it.
_TRUSTED: Final = replace(_HARMLESS, labels=Labels.NONE)
_BESIDE: Final = frozenset({"_meta", "resultType"})


def operations_of(spec: ServerSpec, abilities: Abilities, rules: Rules) -> list[Tool]:
    """Make a tool of each that the server announces and the operator lets be seen."""
    return [
        _tool(spec, name, operation, rules)
        for name, operation in _OPERATIONS.items()
        if operation.announced(abilities) and spec.shows(name)
    ]


def operation_result(name: str, body: Mapping[str, Any]) -> Result:
    """Take what the server answered; nothing of it is lost."""
    operation = _OPERATIONS[name]
    known = {operation.holds, *_BESIDE}
    meta: object = body.get("_meta")
    return replace(
        operation.read(body.get(operation.holds)),
        meta=cast("dict[str, Any]", meta) if isinstance(meta, dict) else {},
        extra={key: value for key, value in body.items() if key not in known},
    )


def _tool(spec: ServerSpec, name: str, operation: _Operation, rules: Rules) -> Tool:
    foreign = ForeignTool(
        kind=spec.kind,
        source=spec.name,
        name=name,
        description=operation.description,
        input_schema=operation.schema,
        declared=_TRUSTED if spec.trust is Trust.HIGH else _HARMLESS,
        remote=spec.remote,
    )
    return replace(tool_of(spec, foreign, rules), operation=True)


def _contents(found: object) -> Result:
    return Result(content=tuple({"type": "resource", "resource": one} for one in _objects(found)))


def _messages(found: object) -> Result:
    return Result(content=tuple(part for one in _objects(found) for part in _said(one)))


def _said(message: Mapping[str, Any]) -> Sequence[Part]:
    role, content = message.get("role"), message.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else [content]
    who = role if isinstance(role, str) else "user"
    return [{**_part(part), "role": who} for part in parts]


def _part(part: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", part) if isinstance(part, dict) else text_part(str(part))


def _completion(found: object) -> Result:
    if not isinstance(found, dict):
        raise BadAnswer("The answer holds no completion")
    return Result(structured=cast("dict[str, Any]", found))


def _done(found: object) -> Result:
    del found
    return Result()


def _objects(found: object) -> list[dict[str, Any]]:
    if not isinstance(found, list):
        raise BadAnswer("The answer holds no list")
    entries = cast("list[object]", found)
    return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """One of them: what announces it, what it takes, and where its answer is."""

    description: str
    ability: str
    flag: str = ""
    schema: Mapping[str, Any]
    holds: str = ""
    read: Callable[[object], Result] = _done

    def announced(self, abilities: Abilities) -> bool:
        """Whether the server says that it can do this."""
        said = abilities.get(self.ability)
        return said is not None and (not self.flag or said.get(self.flag, False))


def _takes(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_URI: Final = {"type": "string", "minLength": 1, "maxLength": 8192}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_OPERATIONS: Final[Mapping[str, _Operation]] = {
    READ: _Operation(
        description="Read a resource.",
        ability="resources",
        schema=_takes(["uri"], uri=_URI),
        holds="contents",
        read=_contents,
    ),
    SUBSCRIBE: _Operation(
        description="Have a resource watched for changes.",
        ability="resources",
        flag="subscribe",
        schema=_takes(["uri"], uri=_URI),
    ),
    UNSUBSCRIBE: _Operation(
        description="Have a resource watched no longer.",
        ability="resources",
        flag="subscribe",
        schema=_takes(["uri"], uri=_URI),
    ),
    PROMPT: _Operation(
        description="Get a prompt, with these arguments in it.",
        ability="prompts",
        schema=_takes(["name"], name=_TEXT, arguments=_TEXTS),
        holds="messages",
        read=_messages,
    ),
    COMPLETE: _Operation(
        description="Complete what a person has begun to write.",
        ability="completions",
        schema=_takes(
            ["ref", "argument"],
            ref={"type": "object"},
            argument=_takes(["name", "value"], name=_TEXT, value=_TEXT),
            context={"type": "object", "properties": {"arguments": _TEXTS}},
        ),
        holds="completion",
        read=_completion,
    ),
}
