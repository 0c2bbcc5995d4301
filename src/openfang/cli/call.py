"""`openfang tools call`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfang.cli.errors import FAILED
from openfang.cli.options import NO_ARGUMENTS, NO_CHOICE, Arguments, Choice, Json
from openfang.cli.output import note, print_json
from openfang.cli.progress import shown_progress
from openfang.cli.results import print_text, readable
from openfang.cli.session import on_home
from openfang.core.bodies import result_body

if TYPE_CHECKING:
    from openfang.core.results import Result
    from openfang.core.session import Session


def call_tool(
    name: str,
    /,
    *,
    arguments: Arguments = NO_ARGUMENTS,
    choice: Choice = NO_CHOICE,
    wait: Annotated[float, Parameter(help="Seconds to wait for a person's answer.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Call a tool: `openfang tools call file_read --args '{"path": "notes.txt"}'`.

    What it takes is shown by `openfang tools show NAME`, how it would be decided by
    `openfang explain NAME`.

    Args:
        name: Its name or its id.
    """
    given, options = arguments.read(), choice.options(wait)

    async def work(session: Session) -> Result:
        with shown_progress() as told:
            return await session.call(name, given, replace(options, progress=told))

    result = on_home(work)
    if as_json:
        print_json(result_body(result))
    else:
        print_text(readable(result.content, result.structured))
        note(summary(result))
    return FAILED if result.is_error else 0


def summary(result: Result) -> str:
    """One line on how a call ended: outcome, place in the audit, labels."""
    words = [result.outcome.value, result.call_id]
    if result.receipt:
        words.append(f"audit {result.receipt.start}-{result.receipt.end}")
    if result.labels.names:
        words.append(f"labels {', '.join(result.labels.names)}")
    return " | ".join(words)
