"""How a command line becomes an exit code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from openfang.cli.errors import INTERRUPTED, report, report_usage
from openfang.cli.logs import quiet_logs
from openfang.core.errors import HomeError, OpenFangError

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Run one command line. Whatever goes wrong is a sentence and an exit code."""
    _open_streams()
    quiet_logs()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        # A thread may still wait for input that nobody will type: do not wait for it.
        sys.stderr.write("\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    return code


def _open_streams() -> None:
    """Whoever started us may have closed some of them; and no text may fail to be printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - as long as we live
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: Sequence[str]) -> int:
    try:
        " ".join(arguments).encode()
    except UnicodeEncodeError:
        return report_usage("The command line is not UTF-8 text.", ())
    try:
        return _obey(arguments)
    except OpenFangError as error:
        return report(error, as_json="--json" in arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        return report(_of_system(error), as_json="--json" in arguments)


def _obey(arguments: Sequence[str]) -> int:
    """Run the command; a daemon would hold the command library as long as it lives."""
    if arguments[:1] == ["start"]:
        from openfang.cli.start import at_once  # noqa: PLC0415 - this command alone

        if at_once(arguments[1:]):
            return 0
    from openfang.cli.app import obey  # noqa: PLC0415 - the command library takes 0.1 s

    return obey(arguments)


def _of_system(error: OSError) -> HomeError:
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return HomeError(f"The system refuses: {what}.", way_out="openfang doctor")
