"""What the program logs while a command runs: only what is graver than the command's own words."""

from __future__ import annotations

import logging


def quiet_logs() -> None:
    """Send errors to standard error; refusals are the command's to tell."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("openfang: %(message)s"))
    handler.setLevel(logging.ERROR)
    log = logging.getLogger("openfang")
    log.handlers = [handler]
    log.propagate = False
