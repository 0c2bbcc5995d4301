"""What stands in a request: addresses, paths, names, numbers, words in quotes. Each has a type.

Typed fields are filled from these alone, and never from the words that are left over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from openfang.agents.planner.words import straight

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
_URL = re.compile(r"\bhttps?://[^\s<>\"'`]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_SQL = re.compile(r"\b(?:select|with)\b.+\bfrom\b.+", re.IGNORECASE | re.DOTALL)
_ZONE = re.compile(r"\b(?:[A-Z][a-z]+(?:_[A-Z][a-z]+)*/[A-Z][A-Za-z_]+|UTC)\b")
_NUMBER = re.compile(
    r"(?<![\w.,/-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w/])|(?<![\w.,/-])-?\d+(?:\.\d+)?(?![\w/])"
)
_PATH = re.compile(
    r"(?<![\w/])(?:\.{1,2}/|~?/)?(?:[\w.@-]+/)*[\w@-][\w.@-]*(?:\.\w{1,8}|/)(?![\w/])|(?<![\w:/])(?:\.{1,2}/|~?/)[\w./@-]+|[\w.@-]+(?:/[\w.@-]+)+"
)
_NAME = re.compile(r"\b(?:in|for|of|at|from|to) ((?:[A-Z][\w'-]*)(?: [A-Z][\w'-]*)*)")
_TRAILING: Final = ".,;:!?"


@dataclass(frozen=True, slots=True)
class Found:
    """One typed thing and where it begins."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finds:
    """Everything typed in one request."""

    text: str
    quoted: tuple[Found, ...]
    code: tuple[Found, ...]
    urls: tuple[Found, ...]
    emails: tuple[Found, ...]
    paths: tuple[Found, ...]
    numbers: tuple[Found, ...]
    zones: tuple[Found, ...]
    names: tuple[Found, ...]
    sql: str

    @property
    def plain(self) -> str:
        """The request without what was found in quotes, addresses and paths."""
        text = self.text.replace(self.sql, " ") if self.sql else self.text
        for found in (*self.quoted, *self.code, *self.urls, *self.emails, *self.paths):
            text = text.replace(found.text, " ")
        return text


def find_all(request: str) -> Finds:
    """Look through a request."""
    text = straight(request)
    quotes = [
        (match, next(group for group in match.groups() if group))
        for match in _QUOTED.finditer(text)
    ]
    code = tuple(Found(inner, match.start()) for match, inner in quotes if match[1])
    quoted = tuple(Found(inner, match.start()) for match, inner in quotes if not match[1])
    outside = _QUOTED.sub(lambda match: " " * len(match[0]), text)
    urls = _matches(_URL, outside)
    emails = _matches(_EMAIL, outside)
    zones = _matches(_ZONE, outside)
    bare = _without(outside, (*urls, *emails, *zones))
    sql = _SQL.search(text)
    return Finds(
        text=text,
        quoted=quoted,
        code=code,
        urls=urls,
        emails=emails,
        paths=_matches(
            _PATH, _without(bare, ()) if not sql else bare.replace(sql[0], " " * len(sql[0]))
        ),
        numbers=_matches(_NUMBER, bare),
        zones=zones,
        names=tuple(
            Found(match[1].rstrip(_TRAILING), match.start(1)) for match in _NAME.finditer(outside)
        ),
        sql=sql[0].rstrip(_TRAILING) if sql else "",
    )


def _matches(pattern: re.Pattern[str], text: str) -> tuple[Found, ...]:
    found = ((match[0].rstrip(_TRAILING), match.start()) for match in pattern.finditer(text))
    return tuple(Found(inner, start) for inner, start in found if inner)


def _without(text: str, found: tuple[Found, ...]) -> str:
    for one in found:
        text = text[: one.start] + " " * len(one.text) + text[one.start + len(one.text) :]
    return text
