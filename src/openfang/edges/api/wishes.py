"""What checks the context that a request chooses, whichever edge it comes by (C7.7)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from openfang.edges.api.schemas import CONTEXT
from openfang.safety.schemas import compile_schema

if TYPE_CHECKING:
    from openfang.safety.schemas import Validator


def wrong_with(context: object) -> str:
    """Say what of it is not as documented; nothing, if it is."""
    check = _check()
    fits = check.compiled is None or check.compiled.is_valid(context)
    return "" if fits else check.first_error(context)


@cache
def _check() -> Validator:
    return compile_schema(CONTEXT)
