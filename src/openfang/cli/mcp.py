"""`openfang mcp`: read without the command library, which would take longer than all the rest."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from openfang.app.stdio.run import run_stdio
from openfang.cli.logs import quiet_logs
from openfang.core.errors import NotFound, OpenFangError

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS = ("--toolset", "--agent")
_FOR_A_PERSON = """\
This speaks MCP with a client that starts it: see `openfang connect`. Ctrl-C ends it.
"""


def at_once(arguments: Sequence[str]) -> int | None:
    """Run what follows `openfang mcp`; None if it says more than is understood here."""
    options = _read(arguments)
    if options is None:
        return None
    quiet_logs()
    try:
        return mcp(toolset=options.get("--toolset", ""), agent=options.get("--agent", ""))
    except OpenFangError as error:
        return _report(error)


def _read(arguments: Sequence[str]) -> dict[str, str] | None:
    """Read options with their values, each once."""
    words = [word for one in arguments for word in one.split("=", 1)]
    options = dict(zip(words[::2], words[1::2], strict=False))
    whole = len(words) == 2 * len(options) and all(options.values())
    known = all(name in _OPTIONS and not options[name].startswith("-") for name in options)
    return options if whole and known else None


def mcp(*, toolset: str = "", agent: str = "") -> int:
    """Serve an MCP client on standard input and output, by the daemon or without one.

    It is offered the agents of the home; never what only an administrator may.

    Args:
        toolset: The toolset that is offered besides.
        agent: The agent whose own tools are offered instead.
    """
    if toolset and agent:
        raise _usage("Both --toolset and --agent are given.", "give one of them")
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(_FOR_A_PERSON)
    try:
        run_stdio(os.environ, toolset=toolset, agent=agent)
    except NotFound as error:
        raise _usage(error.message, error.way_out) from error
    return 0


def _usage(message: str, way_out: str) -> OpenFangError:
    from openfang.cli.errors import Usage  # noqa: PLC0415 - only what went wrong needs it

    return Usage(message, way_out=way_out)


def _report(error: OpenFangError) -> int:
    from openfang.cli.errors import report  # noqa: PLC0415 - as above

    return report(error, as_json=False)
