"""What the command line knows, for pages that name a command."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING, Final

from cyclopts import CycloptsError

from openfang.cli.app import _COMMANDS, _GROUPS, _PLAIN, build_app

if TYPE_CHECKING:
    from cyclopts import App

_ALWAYS: Final = frozenset({"--help", "-h", "--version", "-V"})
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
# Where another program, a file or a comment follows.
_ENDS = re.compile(r" -- | [|<>#&;]|[|&;]{1,2} |\)")
WORD = re.compile(r"[a-z][a-z0-9-]*\Z")


def mistake(line: str) -> str:
    """What is wrong with the names of a command line that begins with `openfang`, if anything."""
    words = _ENDS.split(line)[0].split()[1:]
    if not words or not WORD.match(words[0]):
        return "" if not words or words[0] in _ALWAYS or words[0].isupper() else f"{words[0]}?"
    words[:2] = ["connect"] if words[:2] == ["mcp", "install"] else words[:2]
    path, unknown = _path(words)
    if unknown:
        return f"there is no command {unknown}"
    known = options(path) | _ALWAYS
    wrong = [one for word in words for one in _OPTION.findall(word) if one not in known]
    return f"{' '.join(path)} has no option {wrong[0]}" if wrong else ""


def _path(words: list[str]) -> tuple[tuple[str, ...], str]:
    if words[0] in _COMMANDS:
        return (words[0],), ""
    if words[0] not in _GROUPS:
        return (), words[0]
    if len(words) == 1 or not WORD.match(words[1]):
        return (words[0],), ""
    known = words[1] in _GROUPS[words[0]][1]
    return (words[0], words[1]), "" if known else " ".join(words[:2])


@cache
def _parser() -> App:
    return build_app()


@cache
def options(path: tuple[str, ...]) -> frozenset[str]:
    """Every option of a command; of a group, none."""
    app = _parser()
    for name in path:
        app = app[name]
    if path[0] in _GROUPS and len(path) == 1:
        return frozenset()
    found = app.assemble_argument_collection(default_parameter=_PLAIN, parse_docstring=True)
    return frozenset(name for one in found for name in one.names)


def unparsed(line: str) -> str:
    """What the parser says of a whole command line, if it does not take it."""
    words = shlex.split(line, comments=True)[1:]
    try:
        build_app(words).parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return str(error)
    return ""
