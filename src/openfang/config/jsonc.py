"""JSON with comments and line numbers: `//` and `/* */` are blanks, and nothing else is forgiven.

Pure. No key twice, no comma too many, no number that is none, and a bound on the depth.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.config.lines import Key

MAX_DEPTH = 64
MAX_DIGITS = 400
_OUTER = 2
_DECODER = json.JSONDecoder()
_GAP = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*[\s\S]*?\*/)*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z.+-])")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}


class JsonProblem(Exception):  # noqa: N818 - what it is called in messages
    """A text that is not JSON, or JSON that we do not take."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Span:
    """Where a member stands in its text: its key, its value, and the end of that."""

    key: int
    start: int
    end: int


def json_spans(text: str) -> tuple[Any, dict[Key, Span]]:
    """Read one document as editors read theirs: its value, and where its outer members stand.

    Halves of a character, which JavaScript writes where it cuts a text, are let through.
    """
    spans: dict[Key, Span] = {}
    scan = _Scan(text, trailing=True, halves=True, spans=spans)
    start = scan.skip()
    value = scan.value((), start)
    spans[()] = Span(start, start, scan.at)
    if scan.skip() < len(text):
        scan.fail("expected the end of the file")
    return value, spans


def after_gap(text: str, at: int) -> int:
    """Step over blanks and comments."""
    found = _GAP.match(text, at)
    return found.end() if found else at


def read_json(text: str, *, trailing: bool = False) -> tuple[Any, dict[Key, int]]:
    """Read one document: its value, and the line of each key and list entry.

    `trailing` forgives a comma before a closing bracket, as editors do in their own files.
    """
    scan = _Scan(text, trailing=trailing)
    value = scan.value((), scan.skip())
    if scan.skip() < len(text):
        scan.fail("expected the end of the file")
    return value, scan.lines


@dataclass(slots=True)
class _Scan:
    text: str
    at: int = 0
    trailing: bool = False
    halves: bool = False
    lines: dict[Key, int] = field(default_factory=dict["Key", int])
    spans: dict[Key, Span] | None = None
    _counted: tuple[int, int] = (0, 1)

    def value(self, path: Key, start: int) -> Any:  # noqa: ANN401 - any JSON value
        if len(path) > MAX_DEPTH:
            self.fail(f"expected at most {MAX_DEPTH} levels of nesting", start)
        if self.spans is not None and len(path) >= _OUTER:
            with suppress(ValueError, RecursionError):  # a comment inside: it is read below
                value, self.at = _DECODER.raw_decode(self.text, start)
                return value
        match self.text[start : start + 1]:
            case "{":
                return self.table(path)
            case "[":
                return self.entries(path)
            case '"':
                return self.string()
            case _:
                return self.scalar()

    def table(self, path: Key) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for start in self.members("}"):
            key = self.string()
            if key in found:
                self.fail(f"expected each key once, got {json.dumps(key[:60])} twice", start)
            self.lines[*path, key] = self.line(start)
            self.skip()
            self.expect(":")
            begin = self.skip()
            found[key] = self.value((*path, key), begin)
            if self.spans is not None:
                self.spans[*path, key] = Span(start, begin, self.at)
        return found

    def entries(self, path: Key) -> list[Any]:
        found: list[Any] = []
        for start in self.members("]"):
            here = (*path, len(found))
            self.lines[here] = self.line(start)
            found.append(self.value(here, start))
        return found

    def members(self, bracket: str) -> Iterator[int]:
        """Stop at the start of each member, from the opening bracket to the closing one."""
        self.at += 1
        self.skip()
        if self.took(bracket):
            return
        while True:
            yield self.at
            self.skip()
            if self.took(bracket):
                return
            self.expect(",", f" or {bracket}")
            if self.text.startswith(bracket, self.skip()):
                if not self.trailing:
                    self.fail(f"expected no comma before {bracket}")
                self.at += len(bracket)
                return

    def string(self) -> str:
        start = self.at
        found = _STRING.match(self.text, start)
        if found is None:
            self.fail("expected a string in double quotes, on one line, with valid escapes")
        self.at = found.end()
        word: str = json.loads(found[0])
        if not self.halves and _SURROGATE.search(word):
            self.fail("expected whole characters, got half of a pair", start)
        return word

    def scalar(self) -> float | bool | None:
        if word := _WORD.match(self.text, self.at):
            self.at = word.end()
            return _WORDS[word[0]]
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.fail("expected a value")
        number = self.number(found)
        self.at = found.end()
        return number

    def number(self, found: re.Match[str]) -> float:
        whole = found[1] is None and found[2] is None
        if len(found[0]) > MAX_DIGITS:
            self.fail(f"expected a number of at most {MAX_DIGITS} digits")
        number = int(found[0]) if whole else float(found[0])
        if not whole and math.isinf(number):
            self.fail("expected a number that is finite")
        return number

    def skip(self) -> int:
        """Step over blanks and comments, and say where that led."""
        self.at = after_gap(self.text, self.at)
        if self.text.startswith("/*", self.at):
            self.fail("expected */ at the end of this comment")
        return self.at

    def took(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def expect(self, mark: str, also: str = "") -> None:
        if not self.took(mark):
            self.fail(f"expected {mark}{also}")

    def line(self, at: int) -> int:
        # Positions only grow while a text is read, so each stretch is counted once.
        before, line = self._counted if self._counted[0] <= at else (0, 1)
        self._counted = (at, line + self.text.count("\n", before, at))
        return self._counted[1]

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        start = self.at if at is None else at
        column = start - self.text.rfind("\n", 0, start)
        raise JsonProblem(message, self.line(start), column)
