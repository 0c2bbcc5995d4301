"""Errors as people and programs read them, and the exit code of each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from openfang.cli.output import clean, paint, print_json
from openfang.core.bodies import failure_body, problem_body
from openfang.core.errors import CallFailed, CallRefused, OpenFangError, Parked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ERROR, USAGE, REFUSED, FAILED, PARKED = 1, 2, 3, 4, 5
INTERRUPTED = 130
_BAD_REQUEST = 400


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
    print(f"{paint(f'{word}:', colour, sys.stderr)} {clean(error.message)}", file=sys.stderr)
    if error.way_out:
        print(f"way out: {clean(error.way_out)}", file=sys.stderr)


def report_usage(message: str, command: Sequence[str]) -> int:
    """Tell what is wrong with the command line."""
    way_out = " ".join(("openfang", *command, "--help"))
    return report(Usage(message, way_out=way_out), as_json=False)
