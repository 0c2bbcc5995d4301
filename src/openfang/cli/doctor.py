"""`openfang doctor`."""

from __future__ import annotations

import os
import time

from openfang.app.home.doctor import Health, examine
from openfang.cli.errors import ERROR
from openfang.cli.options import Json
from openfang.cli.output import print_json, table
from openfang.config.home import find_home


def doctor(*, as_json: Json = False) -> int:
    """Look whether home and machine are in order; exits with 1 when something fails."""
    checks = examine(find_home(os.environ), os.environ, time.time_ns())
    if as_json:
        print_json(
            [
                {"check": c.name, "health": c.health.value, "text": c.text, "fix": c.fix}
                for c in checks
            ]
        )
    else:
        rows = ((c.name, c.health.value, c.text, c.fix) for c in checks)
        table(("check", "health", "what was found", "fix"), rows)
    return ERROR if any(check.health is Health.FAIL for check in checks) else 0
