"""`openfang explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.cli.errors import PARKED, REFUSED
from openfang.cli.options import NO_ARGUMENTS, NO_CHOICE, Arguments, Choice, Json
from openfang.cli.output import print_json, say, table
from openfang.cli.session import on_home
from openfang.core.bodies import explanation_body

if TYPE_CHECKING:
    from openfang.core.decisions import Explanation
    from openfang.core.session import Session

_CODES = {"allow": 0, "ask": PARKED, "deny": REFUSED}
_WORDS = {"allow": "would run", "ask": "would wait for a person", "deny": "would be refused"}


def explain(
    tool: str,
    /,
    *,
    arguments: Arguments = NO_ARGUMENTS,
    choice: Choice = NO_CHOICE,
    as_json: Json = False,
) -> int:
    """Show how a call would be decided, without making it.

    For example `openfang explain shell_exec --args '{"command": "date"}'`.

    Exits with 0 when it would run, 3 when it would be refused, 5 when it would wait for a person.

    Args:
        tool: Its name or its id.
    """
    given, options = arguments.read(), choice.options()

    async def work(session: Session) -> Explanation:
        return await session.explain(tool, given, options)

    explanation = on_home(work)
    if as_json:
        print_json(explanation_body(explanation))
    else:
        show_explanation(explanation)
    return _CODES[explanation.outcome]


def show_explanation(explanation: Explanation) -> None:
    """Print every step's verdict, with its reason and the way out."""
    table(
        ("step", "verdict", "reason", "way out"),
        (
            (verdict.gate, verdict.verdict, verdict.reason, verdict.way_out)
            for verdict in explanation.verdicts
        ),
    )
    carried = ", ".join(explanation.labels) or "no labels"
    say(f"{explanation.tool.id} {_WORDS[explanation.outcome]}. The call carries: {carried}.")
