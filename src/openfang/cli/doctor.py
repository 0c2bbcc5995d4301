"""`openfang doctor`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfang.app.home.doctor import Check, Health, examine
from openfang.cli.errors import ERROR
from openfang.cli.manner import Manner
from openfang.cli.options import Json
from openfang.cli.output import note, print_json, say, table
from openfang.config.home import find_home
from openfang.core.errors import OpenFangError

if TYPE_CHECKING:
    from collections.abc import Sequence


def doctor(
    *,
    fix: Annotated[
        bool, Parameter(help="Mend what can be mended safely; asks before each.")
    ] = False,
    yes: Annotated[bool, Parameter(help="With --fix: be asked nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Look whether home and machine are in order; exits with 1 when something fails."""
    checks = _examined()
    if fix and _mended(checks, Manner(yes=yes, as_json=as_json)):
        checks = _examined()
    if as_json:
        print_json([_body(check) for check in checks])
    else:
        rows = ((c.name, c.health.value, c.text, c.fix) for c in checks)
        table(("check", "health", "what was found", "fix"), rows)
        if not fix and any(check.mend for check in checks):
            note("Some of it can be mended here: openfang doctor --fix")
    return ERROR if any(check.health is Health.FAIL for check in checks) else 0


def _examined() -> list[Check]:
    return examine(find_home(os.environ), os.environ, time.time_ns())


def _body(check: Check) -> dict[str, object]:
    return {
        "check": check.name,
        "health": check.health.value,
        "text": check.text,
        "fix": check.fix,
        "mends": check.mend is not None,
    }


def _mended(checks: Sequence[Check], manner: Manner) -> bool:
    """Do what is agreed to, one after the other; true if anything was done."""
    able = [check for check in checks if check.mend]
    if not able:
        note("There is nothing that could be mended here.")
    elif not (manner.yes or manner.asks):
        note("Nothing was mended, since nobody can be asked: openfang doctor --fix --yes")
    return any([_done(check, manner) for check in able])  # noqa: C419 - each is asked for


def _done(check: Check, manner: Manner) -> bool:
    question = f"{check.name}: {check.text}\n  {check.fix}?"
    if check.mend is None or not manner.agrees(question):
        return False
    try:
        check.mend()
    except (OpenFangError, OSError) as error:
        note(f"{check.name}: not mended: {error}")
        return False
    (note if manner.as_json else say)(f"{check.name}: mended ({check.fix})")
    return True
