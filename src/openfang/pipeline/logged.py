"""Calls in the log of the process, in the seed's words (C14.2)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openfang.core.results import Outcome

if TYPE_CHECKING:
    from openfang.core.calls import Call
    from openfang.core.errors import CallRefused
    from openfang.core.tools import Tool

_log = logging.getLogger("openfang.pipeline")


class LoggedCalls:
    """Writes one line for each call that ended or was refused."""

    def ended(self, call: Call, tool: Tool, outcome: Outcome, seconds: float) -> None:
        """Say how it went."""
        del call, seconds
        if _log.isEnabledFor(logging.INFO):
            _log.info("Tool invoked: %s, result: %s", tool.id, outcome is Outcome.OK)

    def refused(self, call: Call, tool: Tool | None, refusal: CallRefused) -> None:
        """Say why; a policy violation says so itself."""
        del call, tool
        _log.warning("%s", refusal.message)
