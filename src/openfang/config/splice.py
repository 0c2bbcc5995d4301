"""A JSON text changed in one place: comments, order and layout stay as they are. Pure.

Every change is checked against what the reader makes of it. A text that is written in a way that is
not understood here is left alone, and whoever asked is told to change it by hand.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Self, cast

from openfang.config.jsonc import JsonProblem, Span, after_gap, json_spans
from openfang.core.errors import ConfigError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.lines import Key

_BLANKS: Final = " \t\r\n"
_INDENTED = re.compile(r"^([ \t]+)[\"}]", re.MULTILINE)
_TWO: Final = "  "


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Put a value at a path, in the place of what is there or behind its last neighbour."""
    given = _Document.read(text if text.strip() else "{}\n")
    return _checked(given.with_member(path, value), _with(given.data, path, value))


def without_member(text: str, path: tuple[str, ...]) -> str:
    """Take a member out; what stands around it stays."""
    given = _Document.read(text)
    return _checked(given.without_member(path), _without(given.data, path))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    text: str
    data: Any
    spans: Mapping[Key, Span]
    unit: str
    line: str

    @classmethod
    def read(cls, text: str) -> Self:
        try:
            data, spans = json_spans(text)
        except JsonProblem as problem:
            raise ConfigError(
                f"It is not valid JSON: {problem} (line {problem.line}).", way_out="mend the file"
            ) from None
        return cls(
            text=text,
            data=data,
            spans=spans,
            unit=_unit(text),
            line="\r\n" if "\r\n" in text else "\n",
        )

    def with_member(self, path: tuple[str, ...], value: object) -> str:
        depth = next(at for at in range(len(path), -1, -1) if path[:at] in self.spans)
        if depth == len(path):
            return self._replaced(self.spans[path], value)
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        return self._added(path[:depth], path[depth], value)

    def without_member(self, path: tuple[str, ...]) -> str:
        text, span = self.text, self.spans[path]
        before = len(text[: span.key].rstrip(_BLANKS))
        comma = after_gap(text, span.end)
        if text.startswith(",", comma):
            behind = text[comma + 1 :]
            rest = text[span.end : comma] + (behind.lstrip(" ") if before == span.key else behind)
            return self._closed_up(path, text[:before], rest)
        rest = text[span.end :]
        ends = [one.end for one in self._members(path[:-1]) if one.end < span.key]
        if not ends:
            return self._closed_up(path, text[:before], rest)
        comma = after_gap(text, max(ends))
        return text[:comma] + text[comma + 1 : before] + rest

    def _closed_up(self, path: tuple[str, ...], before: str, rest: str) -> str:
        """Join what is left; of a table that had nothing else not even a line break is."""
        alone = len(self._members(path[:-1])) == 1
        return before + (rest.lstrip(_BLANKS) if alone and before.endswith("{") else rest)

    def _members(self, table: tuple[str, ...]) -> list[Span]:
        held: object = self.data
        for key in table:
            held = cast("dict[str, object]", held)[key]
        if not isinstance(held, dict):
            raise ConfigError(
                f"{'.'.join(table) or 'The whole'} is no table in braces.", way_out="mend the file"
            )
        return [self.spans[*table, key] for key in cast("dict[str, object]", held)]

    def _replaced(self, span: Span, value: object) -> str:
        old = self.text[span.start : span.end]
        one_line = "\n" not in old and old != "{}"
        new = (
            self._inline(value, span)
            if one_line
            else self._laid_out(value, self._line_indent(span.key))
        )
        return self.text[: span.start] + new + self.text[span.end :]

    def _added(self, table: tuple[str, ...], key: str, value: object) -> str:
        members, braces = self._members(table), self.spans[table]
        inside = self.text[braces.start + 1 : braces.end - 1]
        end = braces.start + 1 + len(inside.rstrip(_BLANKS))
        if not members:
            return self._first(braces, end, key, value)
        last = max(members, key=lambda member: member.end)
        comma = self.text.startswith(",", after_gap(self.text, last.end))
        if "\n" in inside:
            indent = self._set_in(members, braces)
            lead = self.line + indent
            new = f"{json.dumps(key)}: {self._laid_out(value, indent)}"
        else:
            lead = " " if self._is_spaced(last) else ""
            new = self._inline({key: value}, last)[1:-1]
        return "".join(
            (
                self.text[: last.end],
                "" if comma else ",",
                self.text[last.end : end],
                f"{lead}{new}{',' if comma else ''}",
                self.text[end:],
            )
        )

    def _first(self, braces: Span, end: int, key: str, value: object) -> str:
        """Fill a table that has no member; a comment in it stays in front."""
        outer = self._line_indent(braces.start)
        inner = outer + self.unit
        new = f"{self.line}{inner}{json.dumps(key)}: {self._laid_out(value, inner)}"
        rest = self.text[end:]
        kept = end > braces.start + 1 and rest.lstrip(" \t").startswith(("\n", "\r"))
        closing = rest if kept else f"{self.line}{outer}{rest.lstrip(_BLANKS)}"
        return f"{self.text[:end]}{new}{closing}"

    def _set_in(self, members: list[Span], braces: Span) -> str:
        """How far the members of a table are set in, by one that begins its line."""
        before = (self.text[self.text.rfind("\n", 0, one.key) + 1 : one.key] for one in members)
        deeper = self._line_indent(braces.start) + self.unit
        return next((blanks for blanks in before if not blanks.strip(_BLANKS)), deeper)

    def _line_indent(self, at: int) -> str:
        begin = self.text.rfind("\n", 0, at) + 1
        line = self.text[begin:at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _laid_out(self, value: object, indent: str) -> str:
        if not isinstance(value, dict) or not value:
            return json.dumps(value, ensure_ascii=False)
        inner = indent + self.unit
        members = (
            f"{self.line}{inner}{json.dumps(key)}: {self._laid_out(held, inner)}"
            for key, held in cast("dict[str, object]", value).items()
        )
        return f"{{{','.join(members)}{self.line}{indent}}}"

    def _inline(self, value: object, like: Span) -> str:
        marks = (", ", ": ") if self._is_spaced(like) else (",", ":")
        return json.dumps(value, ensure_ascii=False, separators=marks)

    def _is_spaced(self, member: Span) -> bool:
        return self.text[member.start - 1] in _BLANKS


def _unit(text: str) -> str:
    found = _INDENTED.search(text)
    return found[1] if found else _TWO


def _with(data: Any, path: tuple[str, ...], value: object) -> dict[str, Any]:  # noqa: ANN401 - as read
    held = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    key, *rest = path
    new = _with(held.get(key), tuple(rest), value) if rest else value
    return {**held, key: new}


def _without(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    key, *rest = path
    if rest:
        return {**data, key: _without(data[key], tuple(rest))}
    return {name: value for name, value in data.items() if name != key}


def _checked(text: str, expected: dict[str, Any]) -> str:
    try:
        understood = json_spans(text)[0] == expected
    except JsonProblem:
        understood = False
    if not understood:
        raise ConfigError(
            "It is written in a way that is changed by hand only.",
            way_out="change it in an editor",
        )
    return text
