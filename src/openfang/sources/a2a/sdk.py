"""The A2A library as a client: imported when a peer is first spoken to, and quiet."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from openfang.sources.a2a.modern import Modern


def load() -> type[Modern]:
    """Import what speaks the current dialects; it takes a third of a second: not in the loop."""
    os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
    # It writes a traceback for whatever a peer does wrong; we say so ourselves.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    module = import_module("openfang.sources.a2a.modern")
    return cast("type[Modern]", module.Modern)
