"""A TOML text changed in one place: comments, order and all else stay as they are. Pure.

Every change is checked against what the parser makes of it. A text that is written in a way that
is not understood here is left alone, and whoever asked is told to write it by hand.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from openfang.config.lines import toml_headers, toml_lines
from openfang.config.show import toml_table, toml_text
from openfang.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.lines import Key
    from openfang.config.show import Plain

_LIST: Final = "mcp_servers"
_NODES: Final = "nodes"
_SWITCH = re.compile(r"\A(\s*[\"']?enabled[\"']?\s*=\s*)(true|false)(?=\s|#|\Z)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INDENT = re.compile(r"\A[ \t]*")
_OF_OURS: Final = "write it as a [[{}]] table, or change it in an editor"


def with_server(text: str, entry: Mapping[str, Plain]) -> str:
    """Add an MCP server at the end."""
    return _with_entry(text, _LIST, entry)


def without_server(text: str, name: str) -> str:
    """Take an MCP server out, with the comment right above it."""
    return _without_entry(text, _LIST, name)


def with_node(text: str, entry: Mapping[str, Plain]) -> str:
    """Add a node at the end, in the place of the one of its name."""
    named = any(one.get("name") == entry["name"] for one in _parsed(text).get(_NODES, []))
    rest = _without_entry(text, _NODES, str(entry["name"])) if named else text
    return _with_entry(rest, _NODES, entry)


def without_node(text: str, name: str) -> str:
    """Take a node out, with the comment right above it."""
    return _without_entry(text, _NODES, name)


def _with_entry(text: str, table: str, entry: Mapping[str, Plain]) -> str:
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    expected = _parsed(text)
    expected[table] = [*expected.get(table, []), dict(entry)]
    written = f"{text}{gap}{toml_text({table: [dict(entry)]})}"
    return _checked(written, expected, _OF_OURS.format(table))


def _without_entry(text: str, table: str, name: str) -> str:
    expected, number = _found(text, table, name)
    del expected[table][number]
    if not expected[table]:
        del expected[table]
    lines = _LINE.findall(text)
    for start, end in reversed(_stretches(text, lines, (table, number))):
        del lines[start:end]
    while lines and not lines[-1].strip():
        lines.pop()
    return _checked("".join(lines), expected, _OF_OURS.format(table))


def with_table(text: str, path: tuple[str, str], entry: Mapping[str, Plain]) -> str:
    """Write a table in the place of the one of that name, or at the end."""
    expected = _parsed(text)
    around: object = expected.setdefault(path[0], {})
    if isinstance(around, dict):
        around[path[1]] = dict(entry)
    lines = _LINE.findall(text)
    line = "\r\n" if "\r\n" in text else "\n"
    written = toml_table(path, entry).replace("\n", line)
    if old := _stretches(text, lines, path):
        _put(lines, old, written)
    else:
        lines += [*_gap(text, line), written]
    return _checked("".join(lines), expected, _by_table(path))


def without_table(text: str, path: tuple[str, str]) -> str:
    """Take a table out, with those below it and the comment right above it."""
    expected = _parsed(text)
    del expected[path[0]][path[1]]
    lines = _LINE.findall(text)
    old = _stretches(text, lines, path)
    at_the_end = bool(old) and old[-1][1] == len(lines)
    for start, end in reversed(old):
        del lines[start:end]
    while at_the_end and lines and not lines[-1].strip():
        lines.pop()
    left = "".join(lines)
    if not expected[path[0]] and path[0] not in _parsed(left):
        del expected[path[0]]
    return _checked(left, expected, _by_table(path))


def _gap(text: str, line: str) -> list[str]:
    """What parts a new table from the text before it."""
    if not text.strip() or text.endswith(line + line):
        return []
    return [line] if text.endswith("\n") else [line, line]


def _put(lines: list[str], old: list[tuple[int, int]], written: str) -> None:
    """Write in the place of the first stretch; the comment above and the blanks below stay."""
    for start, end in reversed(old[1:]):
        del lines[start:end]
    start, end = old[0]
    while lines[start].lstrip().startswith("#"):
        start += 1
    while not lines[end - 1].strip():
        end -= 1
    lines[start:end] = [written]


def _by_table(path: tuple[str, str]) -> str:
    return f"write it as a table [{'.'.join(path)}], or change it in an editor"


def switched(text: str, name: str, *, enabled: bool) -> str:
    """Set `enabled` of an entry."""
    expected, number = _found(text, _LIST, name)
    expected[_LIST][number]["enabled"] = enabled
    lines, places = _LINE.findall(text), toml_lines(text)
    word = "true" if enabled else "false"
    if (at := places.get((_LIST, number, "enabled"))) is not None:
        lines[at - 1] = _SWITCH.sub(rf"\g<1>{word}", lines[at - 1])
    elif (at := places.get((_LIST, number, "name"))) is not None:
        _insert_below(lines, at, f"enabled = {word}")
    return _checked("".join(lines), expected, _OF_OURS.format(_LIST))


def _insert_below(lines: list[str], at: int, added: str) -> None:
    above = lines[at - 1]
    indent = _INDENT.match(above)
    if not above.endswith("\n"):
        lines[at - 1] += "\n"
    lines.insert(at, f"{indent[0] if indent else ''}{added}\n")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"The file is not valid TOML: {error}.", way_out="openfang config check"
        ) from error


def _found(text: str, table: str, name: str) -> tuple[dict[str, Any], int]:
    data = _parsed(text)
    names = [entry.get("name") for entry in data.get(table, [])]
    if name not in names:
        raise ConfigError(
            f"No {name} is written in {table} there.", way_out="openfang config check"
        )
    return data, names.index(name)


def _stretches(text: str, lines: list[str], table: Key) -> list[tuple[int, int]]:
    """Find the lines of an entry: its table and those below it, wherever they stand."""
    headers = toml_headers(text)
    starts = [_above(lines, line - 1) for _, line in headers] + [len(lines)]
    return [
        (starts[place], starts[place + 1])
        for place, (path, _) in enumerate(headers)
        if path[:2] == table
    ]


def _above(lines: list[str], header: int) -> int:
    """Step from a header to the first line of the comment right above it."""
    while header and lines[header - 1].lstrip().startswith("#"):
        header -= 1
    return header


def _checked(text: str, expected: Mapping[str, Any], way_out: str) -> str:
    try:
        understood = tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        understood = False
    if not understood:
        raise ConfigError(
            "The file is written in a way that is changed by hand only.",
            way_out=way_out,
        )
    return text
