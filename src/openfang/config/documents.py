"""Reading one file: its data, where each key stands, or the one problem that kept it from us."""

from __future__ import annotations

import re
import stat
import tomllib
from typing import TYPE_CHECKING, Any, cast

from openfang.config.jsonc import JsonProblem, read_json
from openfang.config.lines import Key, toml_lines
from openfang.config.models import Place
from openfang.config.problems import Problem
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES = 256 * 1024
MOST_PARTS = 100
# The parser, and our index of lines, take the square of a key's parts: a long one takes minutes.
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP = re.compile(rf"""(?<![\w."'-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MOST_PARTS}}}""")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file as it was read. `name` is how messages call it."""

    name: str
    path: Path
    data: Mapping[str, Any]
    lines: Mapping[Key, int]

    def place(self, key: Key) -> Place:
        """Find the line of a key, or of the nearest table around it."""
        while key and key not in self.lines:
            key = key[:-1]
        return Place(self.name, self.lines.get(key, 1))


def read_text(path: Path, name: str) -> str | Problem:
    """Read a plain file of text, without the mark at its beginning that some write."""
    try:
        return _text(path)
    except OSError as error:
        return Problem(Place(name), "", f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return Problem(Place(name, line), "", "expected UTF-8 text, got other bytes")


def read_document(path: Path, name: str) -> Document | Problem:
    """Read a TOML, YAML or JSON file by its suffix."""
    text = read_text(path, name)
    if isinstance(text, Problem):
        return text
    try:
        return _READERS.get(path.suffix, _toml)(path, name, text)
    except RecursionError:
        return Problem(Place(name), "", "expected less than a hundred levels of nesting")


def parse_document(text: str, path: Path, name: str) -> Document | Problem:
    """Read a TOML text that stands in no file."""
    if len(text.encode()) > MAX_BYTES:
        return Problem(Place(name), "", f"it has more than {MAX_BYTES} bytes")
    try:
        return _toml(path, name, text)
    except RecursionError:
        return Problem(Place(name), "", "expected less than a hundred levels of nesting")


def _text(path: Path) -> str:
    # A pipe or a device could keep the start waiting for ever, so only plain files are opened.
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "it is not a plain file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(None, f"it has more than {MAX_BYTES} bytes")
    return content.decode("utf-8-sig")


def _toml(path: Path, name: str, text: str) -> Document | Problem:
    if deep := _DEEP.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        return Problem(Place(name, line), "", f"expected a key of at most {MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return _toml_problem(name, text, str(error))
    except ValueError as error:
        return Problem(Place(name), "", f"not valid TOML: {error}")
    return Document(name=name, path=path, data=data, lines=toml_lines(text))


def _toml_problem(name: str, text: str, message: str) -> Problem:
    found = _POSITION.search(message)
    if found is None:
        return Problem(Place(name), "", f"not valid TOML: {message}")
    reason = f"not valid TOML: {message[: found.start()]}"
    if found[1] is None:
        return Problem(Place(name, text.count("\n") + 1), "", f"{reason} at the end of the file")
    return Problem(Place(name, int(found[1])), "", reason, column=int(found[2]))


def _yaml(path: Path, name: str, text: str) -> Document | Problem:
    import yaml  # noqa: PLC0415 - most homes have none

    from openfang.config.positions import YamlProblem, read_yaml  # noqa: PLC0415 - it needs yaml

    try:
        data, lines = read_yaml(text)
    except YamlProblem as problem:
        return Problem(Place(name, problem.line), "", str(problem), column=problem.column)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        return Problem(Place(name, line), "", f"not valid YAML: {error.problem}", column=column)
    except (yaml.YAMLError, ValueError) as error:
        return Problem(Place(name), "", f"not valid YAML: {error}")
    if not isinstance(data, dict):
        return Problem(Place(name, 1), "", "expected a table with the key mcp_servers")
    return Document(name=name, path=path, data=cast("dict[str, Any]", data), lines=lines)


def _json(path: Path, name: str, text: str) -> Document | Problem:
    try:
        data, lines = read_json(text)
    except JsonProblem as problem:
        message = f"not valid JSON: {problem}"
        return Problem(Place(name, problem.line), "", message, column=problem.column)
    if not isinstance(data, dict):
        return Problem(Place(name, 1), "", "expected a table in braces")
    return Document(name=name, path=path, data=cast("dict[str, Any]", data), lines=lines)


_READERS = {".yaml": _yaml, ".yml": _yaml, ".json": _json}
