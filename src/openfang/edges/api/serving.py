"""The task that serves a request: it is cancelled to end it, and may have an answer yet."""

from __future__ import annotations

import asyncio
from typing import Any


def serving() -> asyncio.Task[Any]:
    """Return the task that serves this request."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    return task


def go_on() -> None:
    """Take back that it was cancelled."""
    serving().uncancel()
