from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from openfang.compat import audit_logger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _no_handlers_left() -> Iterator[None]:
    """A process has one audit logger: what a test registers, it takes with it."""
    yield
    for handler in audit_logger.handlers:
        audit_logger.remove_handler(handler)
