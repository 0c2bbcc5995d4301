"""Every endpoint, from the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tools.reference.tables import table

from openfang.edges.api.openapi import document
from openfang.edges.api.table import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADS: Final = ("name", "in", "value", "meaning")
_MOST_WORDS: Final = 12
_GROUPS: Final = {
    "tools": "Tools and results",
    "results": "Tools and results",
    "mcp": "MCP servers",
    "held": "What is held back",
    "extensions": "Extensions",
    "skills": "Skills",
    "agents": "Agents",
    "sessions": "Sessions",
    "memory": "Memory",
    "schedules": "Schedules",
    "usage": "Usage",
    "a2a": "Agents elsewhere, and tasks",
    "approvals": "Approvals",
    "specs": "Plans",
    "keys": "Keys",
    "secrets": "Secrets",
    "audit": "Audit",
}


def endpoints() -> str:
    """Each with who may, what it takes, and what it answers, by what it is about."""
    groups: dict[str, list[str]] = {}
    for path, methods in document(ENDPOINTS)["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(_group(path), []).append(_one(method, path, operation))
    return "\n".join(f"## {title}\n\n" + "\n".join(parts) for title, parts in groups.items())


def _group(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/.well-known"):
        return "Access tokens"
    return _GROUPS.get(parts[2], "The node") if len(parts) > 2 else "The node"  # noqa: PLR2004


def _one(method: str, path: str, operation: dict[str, Any]) -> str:
    head = f"### {method.upper()} {path}\n\n{operation['summary']} {operation['description']}\n"
    rows = list(_rows(operation))
    takes = f"\n{table(_HEADS, rows)}" if rows else ""
    return f"{head}{takes}\nAnswers {_answers(operation['responses'])}.\n"


def _rows(operation: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for one in operation["parameters"]:
        yield f"`{one['name']}`", one["in"], kind(one["schema"]), one["description"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for form in body.get("schema", {}).get("anyOf", [body.get("schema", {})]):
        yield from _keys(form, "")


def _keys(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for name, one in schema.get("properties", {}).items():
        if "description" in one:
            needed = ", required" if name in schema.get("required") or () else ""
            yield f"`{prefix}{name}`", "body", kind(one) + needed, one["description"]
            yield from _keys(one, f"{prefix}{name}.")


def kind(schema: dict[str, Any]) -> str:
    """What stands there, in words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        words = [f"`{one}`" for one in schema["enum"]]
        return ", ".join(words[:_MOST_WORDS]) + (", …" if len(words) > _MOST_WORDS else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one) for one in schema["anyOf"]))
    words = {"string": "text", "integer": "a whole number", "number": "a number"}
    more = {"boolean": "`true` or `false`", "object": "an object", "array": "a list"}
    found = (words | more).get(schema.get("type", ""), "a value")
    return found + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    return f", {least:,} to {most:,}" if least is not None and most is not None else ""


def _answers(responses: dict[str, Any]) -> str:
    """The statuses that are an answer, and the form of each."""
    told = [
        f"{status} with {_form(kind, content['schema'])}"
        for status, response in responses.items()
        for kind, content in response["content"].items()
        if kind != "application/problem+json"
    ]
    return ", or ".join(told)


def _form(kind: str, schema: dict[str, Any]) -> str:
    named = schema.get("$ref", "").rpartition("/")[2]
    if kind != "application/json":
        return f"`{kind}`"
    return f"`{named}`" if named else "JSON"
