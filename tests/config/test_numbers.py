"""No number of the configuration may be one with which nothing can be compared, or without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from openfang.config.load import check
from openfang.config.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.6")

SERVER = '[[mcp_servers]]\nname = "one"\ntransport = {{type = "stdio", command = "x"}}\n{} = {}\n'


WHOLE = json_schema()


def numbers(schema: dict[str, Any], found: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Name every key of the schema that takes a number, by the tables that lead to it."""
    if "$ref" in schema:
        schema = WHOLE["$defs"][schema["$ref"].rpartition("/")[2]]
    if schema.get("type") in {"number", "integer"}:
        yield found
    for one in cast("list[dict[str, Any]]", schema.get("anyOf", [])):
        yield from numbers(one, found)
    for name, one in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).items():
        yield from numbers(one, (*found, name))
    if isinstance(items := schema.get("items"), dict):
        yield from numbers(cast("dict[str, Any]", items), (*found, "[]"))


KEYS = sorted(set(numbers(WHOLE)))


def written(key: tuple[str, ...], value: str) -> str | None:
    match key:
        case ("mcp_servers", "[]", name):
            return SERVER.format(name, value)
        case (*tables, name) if "[]" not in tables:
            head = f"[{'.'.join(tables)}]\n" if tables else ""
            return f"{head}{name} = {value}\n"
        case _:
            return None


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e308"])
def test_a_number_that_would_switch_a_limit_off_is_refused(tmp_path: Path, value: str) -> None:
    texts = {key: text for key in KEYS if (text := written(key, value))}
    assert len(texts) > 15
    for key, text in texts.items():
        (tmp_path / "config.toml").write_text(text)
        found = check(tmp_path, {"HOME": str(tmp_path)})
        assert (key, value, bool(found)) == (key, value, True)
