"""Why a model did not answer, as a person can act on it. Pure.

What others said of it is for the log: it may hold anything.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from openfang.core.errors import OpenFangError


class Trouble(Enum):
    """What went wrong, in one word."""

    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    NO_MODEL = "no_model"
    WINDOW = "window"
    RATE = "rate"
    QUOTA = "quota"
    BUSY = "busy"
    LOST = "lost"
    TIME = "time"
    GARBAGE = "garbage"
    REJECTED = "rejected"
    ADDRESS = "address"
    MISSING = "missing"


_PASSES: Final = frozenset({Trouble.RATE, Trouble.BUSY, Trouble.LOST})
"""What may be otherwise a moment later."""


class ModelFailed(OpenFangError):  # noqa: N818 - it reads as what it is
    """A model that did not answer. `detail` is for the log; `retry_after` is in seconds."""

    code = "model_failed"

    def __init__(
        self,
        message: str,
        *,
        trouble: Trouble,
        way_out: str = "",
        detail: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, way_out=way_out)
        self.trouble = trouble
        self.detail = detail
        self.retry_after = retry_after

    @property
    def passes(self) -> bool:
        """Whether it may be otherwise a moment later."""
        return self.trouble in _PASSES

    @property
    def reason(self) -> str:
        """The whole of it, for a person."""
        way_out = f" Way out: {self.way_out}." if self.way_out else ""
        return f"{self.message}{way_out}"
