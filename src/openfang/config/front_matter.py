"""The table at the head of a Markdown file, between lines of `---`, as others write it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from openfang.config.positions import YamlProblem, read_yaml
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.lines import Key

_OPEN: Final = re.compile(r"\A\s*---[ \t]*\n")
_CLOSE: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
# A sentence behind a key, over several lines or one, in which YAML would see a table or a comment.
_SENTENCE: Final = re.compile(
    r"""^([A-Za-z_][\w-]*):([ \t]+[^\s"'\[{|>&*!%@`#].*(?:\n[ \t]+\S.*)*)$"""
    r"""|^(description):[ \t]*((?:\n[ \t]+[^\s"'].*)+)$""",
    re.MULTILINE,
)
UNQUOTED: Final = "a sentence without quotes, in which YAML sees more than a sentence"


class FrontMatterProblem(Exception):  # noqa: N818 - what it is called in messages
    """Why there is no table to read."""

    def __init__(self, message: str, line: int, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """What stands at the head, the line of each key, and the rest of the text.

    `mended` is the line at which a sentence was read that no strict parser takes.
    """

    data: Mapping[str, Any]
    lines: Mapping[Key, int]
    body: str
    mended: int = 0


def split(text: str) -> FrontMatter:
    """Read a text. Ends of lines may be those of any system."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    opened = _OPEN.match(text)
    closed = _CLOSE.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        raise FrontMatterProblem("expected a table between two lines of ---", 1)
    # As many lines as before: so the parser counts those of the file.
    above = "\n" * text.count("\n", 0, opened.end())
    head = above + text[opened.end() : closed.start()]
    data, lines, mended = _read(head)
    body = text[closed.end() :].strip("\n")
    return FrontMatter(data=data, lines=lines, body=body, mended=mended)


def _read(head: str) -> tuple[Mapping[str, Any], Mapping[Key, int], int]:
    try:
        return *_table(head), 0
    except yaml.MarkedYAMLError as error:
        problem = _marked(error)
    quoted = _SENTENCE.sub(_quoted, head)
    try:
        return *_table(quoted), problem.line
    except yaml.YAMLError:
        raise problem from None


def _table(head: str) -> tuple[Mapping[str, Any], Mapping[Key, int]]:
    try:
        data, lines = read_yaml(head)
    except YamlProblem as error:
        raise FrontMatterProblem(str(error), error.line, error.column) from error
    except yaml.reader.ReaderError as error:
        raise FrontMatterProblem(f"not valid YAML: {error.reason}", 1) from error
    except RecursionError:
        raise FrontMatterProblem("expected less than a hundred levels of nesting", 1) from None
    if not isinstance(data, dict):
        raise FrontMatterProblem("expected a table with the keys name and description", 1)
    return cast("dict[str, Any]", data), lines


def _marked(error: yaml.MarkedYAMLError) -> FrontMatterProblem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 0)
    return FrontMatterProblem(f"not valid YAML: {error.problem}", line, column)


def _quoted(found: re.Match[str]) -> str:
    said = found[2] or found[4]
    if ": " not in said:
        return found[0]
    sentence = said.strip().replace("'", "''")
    before = said[: len(said) - len(said.lstrip())]  # with its ends of lines, which are counted
    return f"{found[1] or found[3]}:{before}'{sentence}'"
