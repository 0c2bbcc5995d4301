"""The shape of a request for a chat completion, as JSON Schema: checked before anything is read."""

from __future__ import annotations

from typing import Any, Final

from openfang.edges.api.schemas import CONTEXT, LONGEST_WORD

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_PERHAPS: Final[Schema] = {"type": ["string", "null"]}
_MAP: Final[Schema] = {"type": "object"}
_WORDS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}


def _shaped(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _content(*types: str, null: bool = False) -> Schema:
    """A text, or parts of these types."""
    part = _shaped(
        ("type",),
        type={"enum": list(types)},
        text=_TEXT,
        refusal=_TEXT,
        image_url=_shaped(("url",), url=_TEXT),
        file=_shaped((), file_data=_TEXT, filename=_TEXT, file_id=_TEXT),
    )
    kinds = ["string", "array", "null"] if null else ["string", "array"]
    return {"type": kinds, "items": part, "maxItems": 1000}


_FUNCTION: Final = _shaped(("name", "arguments"), name=_TEXT, arguments=_TEXT)
_CALL: Final = _shaped(
    ("id", "type", "function"), id=_TEXT, type={"const": "function"}, function=_FUNCTION
)
_CALLS: Final[Schema] = {"type": ["array", "null"], "items": _CALL, "maxItems": 1000}
_SYSTEM: Final = _shaped(("content",), content=_content("text"))
MESSAGES: Final[dict[str, Schema]] = {
    "system": _SYSTEM,
    "developer": _SYSTEM,
    "user": _shaped(
        ("content",), content=_content("text", "image_url", "file", "input_audio"), name=_TEXT
    ),
    "assistant": _shaped(
        (), content=_content("text", "refusal", null=True), refusal=_PERHAPS, tool_calls=_CALLS
    ),
    "tool": _shaped(("content", "tool_call_id"), content=_content("text"), tool_call_id=_TEXT),
}
_ONE_MESSAGE: Final = _shaped(("role",), role={"enum": sorted(MESSAGES)})
_NAME: Final[Schema] = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
_TOOL: Final = _shaped(
    ("type", "function"),
    type={"const": "function"},
    function=_shaped(
        ("name",),
        name=_NAME,
        description=_PERHAPS,
        parameters={"type": ["object", "null"]},
        strict={"type": ["boolean", "null"]},
    ),
)
_TOKENS: Final[Schema] = {"type": ["integer", "null"], "minimum": 1}

REQUEST: Final = _shaped(
    ("model", "messages"),
    model={"type": "string", "minLength": 1, "maxLength": LONGEST_WORD},
    messages={"type": "array", "items": _ONE_MESSAGE, "minItems": 1, "maxItems": 10_000},
    stream={"type": ["boolean", "null"]},
    stream_options={
        "type": ["object", "null"],
        "properties": {"include_usage": {"type": ["boolean", "null"]}},
    },
    temperature={"type": ["number", "null"], "minimum": 0, "maximum": 2},
    max_tokens=_TOKENS,
    max_completion_tokens=_TOKENS,
    tools={"type": ["array", "null"], "items": _TOOL, "maxItems": 128},
    user=_PERHAPS,
    metadata={**_WORDS, "type": ["object", "null"]},
    context=CONTEXT,
)
