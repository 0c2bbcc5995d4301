"""Errors as people and programs read them, and the exit code of each."""

from __future__ import annotations

import os
import re
import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from openfang.cli.output import clean, folded, is_terminal, paint, print_json
from openfang.cli.shell import on_path, preparation
from openfang.config.home import find_home
from openfang.core.bodies import failure_body, problem_body
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Parked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ERROR, USAGE, REFUSED, FAILED, PARKED = 1, 2, 3, 4, 5
INTERRUPTED = 130
_BAD_REQUEST = 400
_ALTERNATIVES = re.compile(r"(?<=[,;]) ")


class Usage(OpenFangError):  # noqa: N818 - it reads as what it is
    """The command line says something that cannot be meant."""

    code = "usage"


_CODES: tuple[tuple[type[OpenFangError], int], ...] = (
    (Usage, USAGE),
    (Parked, PARKED),
    (CallRefused, REFUSED),
    (CallFailed, FAILED),
)


def exit_code(error: OpenFangError) -> int:
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ERROR)


def error_body(error: OpenFangError) -> dict[str, Any]:
    """The error as one JSON object."""
    if isinstance(error, CallFailed):
        return failure_body(error)
    body = problem_body(error)
    return {**body, "status": _BAD_REQUEST} if isinstance(error, Usage) else body


def report(error: OpenFangError, *, as_json: bool) -> int:
    """Tell what went wrong, and return the exit code."""
    if as_json:
        print_json(error_body(error))
    else:
        _tell(error)
    return exit_code(error)


def _tell(error: OpenFangError) -> None:
    word, colour = ("waits", "yellow") if isinstance(error, Parked) else ("error", "red")
    sys.stdout.flush()
    message = folded(clean(error.message), sys.stderr, beside=len(word) + 2)
    _print(word, message, colour)
    if error.way_out:
        _print("way out", _clauses(clean(error.way_out)))
        _tell_first(error.way_out)


def _print(label: str, lines: Sequence[str], colour: str = "") -> None:
    painted = paint(f"{label}:", colour, sys.stderr) if colour else f"{label}:"
    print(painted, f"\n{'':<{len(label) + 2}}".join(lines), file=sys.stderr)


def _clauses(way_out: str) -> list[str]:
    """Break between alternatives, if at all: a command stays in one line, to be copied."""
    fits = len(way_out) + len("way out: ") <= get_terminal_size().columns
    return [way_out] if fits or not is_terminal(sys.stderr) else _ALTERNATIVES.split(way_out)


def _tell_first(way_out: str) -> None:
    """Where a shell would not find `openfang`, say how it does."""
    if "openfang " in way_out and is_terminal(sys.stderr) and not on_path():
        _print("first", preparation(find_home(os.environ)))


def report_usage(message: str, command: Sequence[str]) -> int:
    """Tell what is wrong with the command line."""
    way_out = " ".join(("openfang", *command, "--help"))
    return report(Usage(message, way_out=way_out), as_json=False)
