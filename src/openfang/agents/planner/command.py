"""A command in a request: in backticks, or from the name of a program to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.agents.planner.tokens import Sort
from openfang.agents.planner.words import bag

if TYPE_CHECKING:
    from openfang.agents.planner.reading import Reading

_RUNNING: Final = bag("run execute exec launch start")
_BEFORE: Final = bag("the command program")
_PROSE: Final = bag(
    "a an the and then or but if when after before until please me in on at for with from to into "
    "of now later today tonight tomorrow every again"
)
_PROGRAMS: Final = bag(
    "awk bash cargo cat cmake cp curl cut date df diff docker du echo env find gcc git go grep "
    "gunzip gzip head hostname id java jq kubectl ls make mkdir mv node npm npx pip printf ps "
    "pwd pytest python python3 rm ruff sed seq sh sleep sort ssh stat tail tar tee touch tr true "
    "uname uniq unzip uv wc wget which whoami xargs yarn zip"
)


def command_of(reading: Reading) -> tuple[str, range] | None:
    """The command that is to be run and the pieces it takes, if one is."""
    at, end = reading.head + 1, len(reading.tokens)
    if reading.first not in _RUNNING:
        return None
    while at < end and (reading.tokens[at].sort is Sort.MARK or reading.word(at) in _BEFORE):
        at += 1
    if at < end and reading.tokens[at].sort is Sort.CODE:
        return reading.tokens[at].text, range(reading.head + 1, at + 1)
    return _bare(reading, at)


def _bare(reading: Reading, at: int) -> tuple[str, range] | None:
    """One without backticks; a sentence that goes on after it cannot be told from it."""
    end = len(reading.tokens)
    while end > at and reading.tokens[end - 1].sort is Sort.MARK:
        end -= 1
    if at >= end or not _is_program(reading.tokens[at].text):
        return None
    if not _PROSE.isdisjoint(reading.words(at, end)):
        return None
    return reading.between(at, end), range(reading.head + 1, end)


def _is_program(text: str) -> bool:
    return text in _PROGRAMS or text.startswith(("./", "/"))
