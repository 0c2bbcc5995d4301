"""The published JSON Schema, which is the list of keys, and what it says at one place."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from openfang.config.fields import MEANING
from openfang.config.models import Config
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.config.fields import Section

Schema: TypeAlias = "Mapping[str, Any]"

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_KINDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
    "array": "a list",
    "object": "a table",
}


def json_schema(
    model: type[Section] = Config, title: str = "OpenFang configuration"
) -> dict[str, Any]:
    """Describe a file as JSON Schema, draft 2020-12; the configuration unless told otherwise."""
    return {"$schema": DRAFT, **_schema(model), "title": title}


def _schema(model: type[Section]) -> dict[str, Any]:
    schema = model.model_json_schema()
    _complete(schema, schema.get("$defs", {}))
    return schema


def _complete(node: object, definitions: Schema) -> None:
    """Add what the generator leaves out: closed tables, and descriptions it thinks redundant."""
    if isinstance(node, list):
        for value in cast("list[object]", node):
            _complete(value, definitions)
    if not isinstance(node, dict):
        return
    table = cast("dict[str, Any]", node)
    if "patternProperties" in table:
        table["additionalProperties"] = False
    if "$ref" in table:
        table.setdefault("description", definitions[_referred(table)].get("description", ""))
    for value in table.values():
        _complete(value, definitions)


def _referred(node: Schema) -> str:
    return str(node["$ref"]).rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key: `[]` is each entry of a list, `NAME` is a name that the operator chooses."""

    key: str
    kind: str
    required: bool
    default: Any
    description: str
    secret: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """One place of the schema: the forms that a value may have there."""

    forms: tuple[Schema, ...]
    definitions: Schema
    tagged: bool = False

    def child(self, part: str | int, value: object) -> Shape:
        """Step to a key or an entry; `value` is the table, whose `type` may choose the form."""
        found = [node for form in self.fitting(value) for node in _children(form, part)]
        return shape(found, self.definitions)

    def fitting(self, value: object) -> tuple[Schema, ...]:
        """Keep the forms whose `type` is that of the value; all, when it says none of them."""
        kind = cast("Mapping[str, object]", value).get("type") if isinstance(value, dict) else None
        chosen = tuple(form for form in self.forms if kind in _literals(_property(form, "type")))
        return chosen or self.forms

    def keys(self, value: object) -> list[str]:
        """List the keys that may stand in this table."""
        forms = self.fitting(value)
        return list(dict.fromkeys(key for form in forms for key in form.get("properties", {})))

    @property
    def secret(self) -> bool:
        """Whether the value must not be shown."""
        return any(form.get("writeOnly") for form in self.forms)

    @property
    def literals(self) -> list[str]:
        """The words that may stand here, where they are few enough to be listed."""
        return [str(word) for form in self.forms for word in _literals(form)]

    @property
    def meaning(self) -> str:
        """What a pattern means, in words."""
        return next((form[MEANING] for form in self.forms if MEANING in form), "")

    @property
    def kind(self) -> str:
        """What stands here, in words."""
        words = [_one_of(self.literals)] if self.literals else []
        others = (form for form in self.forms if not _literals(form))
        kinds = (_KINDS.get(form.get("type", ""), "a value") for form in others)
        return " or ".join(dict.fromkeys((*words, *kinds)))


def shape(nodes: list[Schema], definitions: Schema) -> Shape:
    """Resolve references and unions; a null stands for an unset key and is no form."""
    forms = tuple(form for node in nodes for form in _forms(node, definitions))
    return Shape(forms, definitions, tagged=any("oneOf" in node for node in nodes))


@cache
def shape_of(model: type[Section]) -> Shape:
    """Describe the whole of a model."""
    schema = _schema(model)
    return shape([schema], schema.get("$defs", {}))


def settings(model: type[Section] = Config) -> list[Setting]:
    """List every key of a file, in the order of its model."""
    return list(_settings(shape_of(model), ""))


def _settings(at: Shape, prefix: str) -> Iterator[Setting]:
    for key in at.keys(None):
        nodes = [_property(form, key) for form in at.forms if _property(form, key)]
        inner = shape(nodes, at.definitions)
        yield Setting(
            key=prefix + key,
            kind=inner.kind,
            required=all(
                key in form.get("required", ()) for form in at.forms if _property(form, key)
            ),
            default=next((node["default"] for node in nodes if "default" in node), None),
            description=nodes[0].get("description", ""),
            secret=inner.secret,
        )
        yield from _inside(inner, prefix + key)


def _inside(at: Shape, key: str) -> Iterator[Setting]:
    yield from _settings(at, f"{key}.")
    for step, name in (
        ("items", "[]"),
        ("additionalProperties", ".NAME"),
        ("patternProperties", ".NAME"),
    ):
        nodes = [node for form in at.forms for node in _free_nodes(form, step)]
        if nodes:
            yield from _settings(shape(nodes, at.definitions), f"{key}{name}.")


def _free_nodes(form: Schema, step: str) -> list[Schema]:
    node = form.get(step)
    if not isinstance(node, dict):
        return []
    table = cast("dict[str, Any]", node)
    return list(table.values()) if step == "patternProperties" else [table]


def _children(form: Schema, part: str | int) -> list[Schema]:
    if isinstance(part, int):
        return _free_nodes(form, "items")
    if found := _property(form, part):
        return [found]
    return _free_nodes(form, "additionalProperties") + _free_nodes(form, "patternProperties")


def _property(form: Schema, key: str) -> Schema:
    return form.get("properties", {}).get(key, {})


def _forms(node: Schema, definitions: Schema) -> Iterator[Schema]:
    if "$ref" in node:
        yield from _forms(definitions[_referred(node)], definitions)
    elif choices := node.get("oneOf") or node.get("anyOf"):
        for choice in choices:
            yield from _forms(choice, definitions)
    elif node.get("type") != "null":
        yield node


def _literals(form: Schema) -> list[Any]:
    return [form["const"]] if "const" in form else list(form.get("enum", ()))


def _one_of(words: list[str]) -> str:
    quoted = [f'"{word}"' for word in dict.fromkeys(words)]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
