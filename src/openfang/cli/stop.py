"""`openfang stop`."""

from __future__ import annotations

import math
import os
from typing import Annotated

from cyclopts import Parameter

from openfang.app.daemon.background import end_daemon
from openfang.cli.errors import Usage
from openfang.cli.output import say
from openfang.config.home import find_home


def stop(
    *,
    timeout: Annotated[float, Parameter(help="Seconds to wait for its end.")] = 15.0,
    kill: Annotated[bool, Parameter(help="End it at once, in the middle of calls.")] = False,
) -> None:
    """End the daemon of this home, and wait until it is gone. Where none runs, that is said.

    Calls in flight finish first. With `--kill` they do not: the next start records their ending.
    """
    if not 0 < timeout < math.inf:
        raise Usage(f"--timeout is {timeout:g}, expected seconds.", way_out="--timeout 15")
    home = find_home(os.environ)
    pid = end_daemon(home, seconds=timeout, kill=kill)
    if pid is None:
        say(f"No daemon serves {home}.")
    else:
        say(f"The daemon has {'been killed' if kill else 'ended'}: process {pid}.")
