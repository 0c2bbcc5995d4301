"""Where each key of a TOML text stands. Pure; the parser of the standard library does not say.

The text is one that the parser has accepted. On any other the index stops where it loses its way.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from dataclasses import field
from typing import TypeAlias

from openfang.core.values import dataclass

Key: TypeAlias = tuple[str | int, ...]

_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED_KEY = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'')
# A multi-line string may end in up to two quotes of its own before the three that close it.
_STRING = re.compile(
    r'"""(?:\\[\s\S]|[^\\])*?"""(?:"{0,2})'
    r"|'''[\s\S]*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_LITERAL = re.compile(r"[^,\]}#\n]+")


class _LostError(Exception):
    """The text is not what the parser would have accepted."""


def toml_lines(text: str) -> dict[Key, int]:
    """Index a TOML text: the path of each table, key and list entry, and its line from 1."""
    scan = _Scan(text, [match.start() for match in re.finditer("\n", text)])
    with suppress(_LostError):
        scan.document()
    return scan.lines


def toml_headers(text: str) -> list[tuple[Key, int]]:
    """List the headers of a TOML text in order: the path of the table below each, and its line."""
    scan = _Scan(text, [match.start() for match in re.finditer("\n", text)])
    with suppress(_LostError):
        scan.document()
    return scan.headers


@dataclass(slots=True)
class _Scan:
    text: str
    breaks: list[int]
    at: int = 0
    table: Key = ()
    lines: dict[Key, int] = field(default_factory=dict[Key, int])
    sizes: dict[Key, int] = field(default_factory=dict[Key, int])
    headers: list[tuple[Key, int]] = field(default_factory=list[tuple[Key, int]])

    def document(self) -> None:
        self.skip(_GAP)
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                self.header()
            else:
                self.pair(self.table)
            self.skip(_GAP)

    def header(self) -> None:
        line = self.line()
        is_list = self.text.startswith("[[", self.at)
        self.at += 2 if is_list else 1
        *parents, name = self.key()
        path: Key = ()
        for part in parents:
            path = self.last(self.note((*path, part), line))
        path = self.note((*path, name), line)
        self.table = self.grown(path, line) if is_list else self.last(path)
        self.headers.append((self.table, line))
        self.expect("]]" if is_list else "]")

    def pair(self, table: Key) -> None:
        line = self.line()
        path = table
        for part in self.key():
            path = self.note((*path, part), line)
        self.expect("=")
        self.value(path)

    def value(self, path: Key) -> None:
        self.skip(_BLANK)
        match self.text[self.at : self.at + 1]:
            case "[":
                self.entries(path)
            case "{":
                self.pairs(path)
            case '"' | "'":
                self.take(_STRING)
            case _:
                self.take(_LITERAL)

    def entries(self, path: Key) -> None:
        self.at += 1
        index = 0
        while not self.closed("]"):
            self.value(self.note((*path, index), self.line()))
            index += 1

    def pairs(self, path: Key) -> None:
        self.at += 1
        while not self.closed("}"):
            self.pair(path)

    def closed(self, bracket: str) -> bool:
        self.skip(_GAP)
        if self.text.startswith(",", self.at):
            self.at += 1
            self.skip(_GAP)
        if not self.text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def key(self) -> list[str]:
        parts = [self.part()]
        while self.text.startswith(".", self.at):
            self.at += 1
            parts.append(self.part())
        return parts

    def part(self) -> str:
        self.skip(_BLANK)
        quoted = self.text[self.at : self.at + 1] in {'"', "'"}
        word = self.take(_QUOTED_KEY if quoted else _BARE_KEY)
        self.skip(_BLANK)
        return _unquoted(word) if quoted else word

    def last(self, path: Key) -> Key:
        """Step from a list of tables to its newest entry."""
        return (*path, self.sizes[path] - 1) if path in self.sizes else path

    def grown(self, path: Key, line: int) -> Key:
        self.sizes[path] = self.sizes.get(path, 0) + 1
        return self.note(self.last(path), line)

    def note(self, path: Key, line: int) -> Key:
        self.lines.setdefault(path, line)
        return path

    def line(self) -> int:
        return bisect_right(self.breaks, self.at - 1) + 1

    def skip(self, pattern: re.Pattern[str]) -> None:
        if found := pattern.match(self.text, self.at):
            self.at = found.end()

    def take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _LostError
        self.at = found.end()
        return found[0]

    def expect(self, mark: str) -> None:
        if not self.text.startswith(mark, self.at):
            raise _LostError
        self.at += len(mark)


def _unquoted(word: str) -> str:
    try:
        return tomllib.loads(f"key = {word}")["key"]
    except tomllib.TOMLDecodeError as error:
        raise _LostError from error
