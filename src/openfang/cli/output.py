"""What commands print: tables for people, plain columns for a pipe, JSON for programs.

Text from elsewhere never steers the terminal: its control characters are shown, not sent.
"""

from __future__ import annotations

import json
import os
import re
import sys
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# What steers a terminal, and what nobody sees: directions, empty marks, the letters of tags.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SHORT = 22
_NARROW = 12
_WHOLE_NAME = 40
_GAP = 2
_BREAKS = re.compile(r"\s*[\n\t]\s*")
_ANSI = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_STYLES = {
    **dict.fromkeys(("ok", "allow", "approved", "in force", "LOW", "intact"), "green"),
    **dict.fromkeys(("warn", "ask", "pending", "warning", "MEDIUM", "expired"), "yellow"),
    **dict.fromkeys(("fail", "deny", "denied", "error", "HIGH", "revoked"), "red"),
    "CRITICAL": "bold red",
    "not_reached": "dim",
}


def clean(text: str) -> str:
    """Show what is not seen instead of sending it; line breaks and tabs stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def one_line(text: str) -> str:
    """Put a text into one line that steers nothing."""
    return _BREAKS.sub(" ", clean(text).strip())


def first_sentence(text: str) -> str:
    """The beginning of a description, up to its first full stop."""
    line = one_line(text)
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at it."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Colour a word of ours, where that is wanted."""
    if not is_terminal(stream) or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_ANSI[colour]}m{text}\x1b[0m"


def say(text: str = "") -> None:
    """Print what was asked for."""
    print(text)


def note(text: str) -> None:
    """Tell something beside what was asked for."""
    sys.stdout.flush()
    for line in folded(clean(text), sys.stderr):
        print(paint(line, "dim", sys.stderr), file=sys.stderr)


def note_command(why: str, command: str) -> None:
    """Tell what can be typed next; it is not folded, so that it can be copied."""
    sys.stdout.flush()
    print(paint(f"{why}: {clean(command)}", "dim", sys.stderr), file=sys.stderr)


def print_json(value: object) -> None:
    """Print JSON: for a person over several lines, else in one."""
    layout = orjson.OPT_INDENT_2 if is_terminal(sys.stdout) else 0
    _write_json(json_text(value, layout))


def print_line(value: object) -> None:
    """Print JSON in one line, at once."""
    _write_json(json_text(value))
    sys.stdout.flush()


def _write_json(text: str) -> None:
    """On a screen, escapes stand for what would not be seen: it is the same value."""
    if is_terminal(sys.stdout):
        text = _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], text)
    sys.stdout.write(text + "\n")


def json_text(value: object, layout: int = 0) -> str:
    """Write a value as JSON; bytes as hex."""
    return orjson.dumps(value, default=_plain, option=layout).decode()


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def fields(values: Mapping[str, object]) -> None:
    """Print named values, one below the other; a value of several lines is set in."""
    width = max(map(len, values), default=0)
    for name, value in values.items():
        lines = folded(clean(str(value)), sys.stdout, beside=width + _GAP)
        print(f"{paint(f'{name:<{width}}', 'bold', sys.stdout)}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{width}}  {line}")


def folded(text: str, stream: TextIO, *, beside: int = 0) -> list[str]:
    """Break lines between words where a terminal would break them anywhere; a word stays whole."""
    room = get_terminal_size().columns - beside
    lines = text.split("\n")
    if room < _SHORT or not is_terminal(stream):
        return lines
    return [part for line in lines for part in _wrapped(line, room)]


def _wrapped(line: str, room: int) -> list[str]:
    if len(line) <= room:
        return [line]
    return wrap(
        line,
        room,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    ) or [line]


def entry(name: str, *lines: str) -> None:
    """Print something whose name is too long for a column, and what is known of it below."""
    print(paint(one_line(name), "bold", sys.stdout))
    for line in lines:
        for part in folded(one_line(line), sys.stdout, beside=_GAP):
            print(f"  {part}")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a table; to a pipe every cell is whole and every row one line."""
    cells = [[one_line(_text(cell)) for cell in row] for row in rows]
    if not cells or not is_terminal(sys.stdout):
        _columns(headers, cells)
        return
    room = get_terminal_size().columns - _GAP * len(headers)
    # What a person types again, the name in front, is broken only if nothing else helps.
    tried = (_least(headers, cells, name) for name in (_WHOLE_NAME, _SHORT))
    widths = next((widths for widths in tried if sum(widths) <= room), None)
    if widths is None:
        _stacked(headers, cells)
    else:
        _drawn(headers, cells, widths)


def _text(value: Any) -> str:  # noqa: ANN401 - any cell
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else str(value)


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [[header.upper() for header in headers], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def _stacked(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """What is too wide for the terminal goes one value below the other."""
    for row in rows:
        fields({name: cell for name, cell in zip(headers, row, strict=True) if cell})
        print()


def _least(headers: Sequence[str], rows: Sequence[Sequence[str]], name: int) -> list[int]:
    """How narrow each column can be: short ones stay whole, as does a `name` up to so long."""
    first, *rest = (max(map(len, column)) for column in zip(headers, *rows, strict=True))
    least = [length if length <= _SHORT else _NARROW for length in rest]
    return [first if first <= name else _NARROW, *least]


def _drawn(headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    from rich import box  # noqa: PLC0415 - 0.1 s that a pipe need not pay
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for header, width in zip(headers, widths, strict=True):
        drawn.add_column(header, overflow="fold", min_width=width)
    for row in rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(drawn)
