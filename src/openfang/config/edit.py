"""A TOML text changed in one place: comments, order and all else stay as they are. Pure.

Every change is checked against what the parser makes of it. A text that is written in a way that
is not understood here is left alone, and whoever asked is told to write it by hand.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from openfang.config.lines import toml_headers, toml_lines
from openfang.config.show import toml_text
from openfang.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.show import Plain

_LIST: Final = "mcp_servers"
_SWITCH = re.compile(r"\A(\s*[\"']?enabled[\"']?\s*=\s*)(true|false)(?=\s|#|\Z)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INDENT = re.compile(r"\A[ \t]*")


def with_server(text: str, entry: Mapping[str, Plain]) -> str:
    """Add an entry at the end."""
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    expected = _parsed(text)
    expected[_LIST] = [*expected.get(_LIST, []), dict(entry)]
    return _checked(f"{text}{gap}{toml_text({_LIST: [dict(entry)]})}", expected)


def without_server(text: str, name: str) -> str:
    """Take an entry out, with the comment right above it."""
    expected, number = _found(text, name)
    del expected[_LIST][number]
    if not expected[_LIST]:
        del expected[_LIST]
    lines = _LINE.findall(text)
    for start, end in reversed(_stretches(text, lines, number)):
        del lines[start:end]
    while lines and not lines[-1].strip():
        lines.pop()
    return _checked("".join(lines), expected)


def switched(text: str, name: str, *, enabled: bool) -> str:
    """Set `enabled` of an entry."""
    expected, number = _found(text, name)
    expected[_LIST][number]["enabled"] = enabled
    lines, places = _LINE.findall(text), toml_lines(text)
    word = "true" if enabled else "false"
    if (at := places.get((_LIST, number, "enabled"))) is not None:
        lines[at - 1] = _SWITCH.sub(rf"\g<1>{word}", lines[at - 1])
    elif (at := places.get((_LIST, number, "name"))) is not None:
        _insert_below(lines, at, f"enabled = {word}")
    return _checked("".join(lines), expected)


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


def _found(text: str, name: str) -> tuple[dict[str, Any], int]:
    data = _parsed(text)
    names = [entry.get("name") for entry in data.get(_LIST, [])]
    if name not in names:
        raise ConfigError(f"No server {name} is written there.", way_out="openfang config check")
    return data, names.index(name)


def _stretches(text: str, lines: list[str], number: int) -> list[tuple[int, int]]:
    """Find the lines of an entry: its table and those below it, wherever they stand."""
    headers = toml_headers(text)
    starts = [_above(lines, line - 1) for _, line in headers] + [len(lines)]
    return [
        (starts[place], starts[place + 1])
        for place, (path, _) in enumerate(headers)
        if path[:2] == (_LIST, number)
    ]


def _above(lines: list[str], header: int) -> int:
    """Step from a header to the first line of the comment right above it."""
    while header and lines[header - 1].lstrip().startswith("#"):
        header -= 1
    return header


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    try:
        understood = tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        understood = False
    if not understood:
        raise ConfigError(
            "The file is written in a way that is changed by hand only.",
            way_out="write servers as [[mcp_servers]] tables, or change this one in an editor",
        )
    return text
