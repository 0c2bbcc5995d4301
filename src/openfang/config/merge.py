"""Several TOML documents as one: tables join, named lists grow, and nothing is overruled."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from openfang.config.lines import Key
from openfang.config.models import Config, Place
from openfang.config.problems import Problem, shown, spell
from openfang.config.schema import shape_of
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.config.documents import Document

Table: TypeAlias = dict[str, Any]

NAMED_LISTS: tuple[Key, ...] = (("mcp_servers",), ("nodes",), ("a2a", "external_agents"))


@dataclass(slots=True)
class Merged:
    """All TOML documents together, and where each key came from."""

    data: Table = field(default_factory=dict[str, Any])
    places: dict[Key, Place] = field(default_factory=dict[Key, Place])
    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, document: Document) -> None:
        """Take in one more document."""
        sizes = {path: len(_list_at(self.data, path)) for path in NAMED_LISTS}
        self._fold(self.data, frozen(document.data), (), document)
        for key, line in document.lines.items():
            self.places.setdefault(_shifted(key, sizes), Place(document.name, line))

    def place(self, key: Key) -> Place:
        """Find where a key stands, or the nearest table around it."""
        while key and key not in self.places:
            key = key[:-1]
        return self.places.get(key, Place("config.toml", 1))

    def _fold(self, into: Table, data: Table, path: Key, document: Document) -> None:
        value: object
        for key, value in data.items():
            here = (*path, key)
            if key not in into:
                into[key] = value
            elif isinstance(value, dict) and isinstance(into[key], dict):
                self._fold(into[key], cast("Table", value), here, document)
            elif here in NAMED_LISTS and isinstance(value, tuple) and isinstance(into[key], tuple):
                into[key] += value
            elif not _same(into[key], cast("object", value)):
                self._disagree(here, into[key], cast("object", value), document)

    def _disagree(self, key: Key, first: object, second: object, document: Document) -> None:
        secret = _secret(key)
        message = (
            f"expected {shown(first, secret=secret)} as in {self.place(key)}, "
            f"got {shown(second, secret=secret)}"
        )
        self.problems.append(Problem(document.place(key), spell(key, document.data), message))


def frozen(value: object) -> Any:  # noqa: ANN401 - any TOML value
    """Copy a value with its lists as tuples, as the models want them."""
    match value:
        case dict():
            return {key: frozen(inner) for key, inner in cast("Table", value).items()}
        case list():
            return tuple(frozen(inner) for inner in cast("list[object]", value))
        case _:
            return value


def _same(first: object, second: object) -> bool:
    return type(first) is type(second) and first == second


def _list_at(data: object, path: Key) -> tuple[object, ...]:
    for part in path:
        data = cast("Table", data).get(str(part)) if isinstance(data, dict) else None
    return cast("tuple[object, ...]", data) if isinstance(data, tuple) else ()


def _shifted(key: Key, sizes: dict[Key, int]) -> Key:
    """Give an entry of a named list the number that it has in the whole."""
    for path, size in sizes.items():
        rest = key[len(path) :]
        if key[: len(path)] == path and rest and isinstance(rest[0], int):
            return (*path, rest[0] + size, *rest[1:])
    return key


def _secret(key: Key) -> bool:
    at = shape_of(Config)
    for part in key:
        at = at.child(part, None)
    return at.secret
