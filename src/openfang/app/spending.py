"""What was used up, for who asks: an administrator and an auditor see everybody's."""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio import to_thread

from openfang.core.calls import Role
from openfang.core.errors import Conflict, OpenFangError
from openfang.storage.database import BUSY_SECONDS, Database
from openfang.storage.ledger import LedgerStore, fold
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.usage import Report, UsageQuery

T = TypeVar("T")
_log = logging.getLogger("openfang.spending")
_BETWEEN_FOLDS: Final = 600.0
_WATCHERS: Final = (Role.AUDITOR, Role.ADMIN)


async def spending_report(parts: Parts, caller: Caller, wanted: UsageQuery) -> Report:
    """Add up what is wanted, of what the caller may see."""
    whose = None if caller.role in _WATCHERS else caller.id
    now = parts.clock.time_ns()
    return await _looked(parts, lambda ledger: ledger.report(wanted, whose, now))


async def fold_now_and_then(parts: Parts) -> None:
    """Count the calls that people make themselves: from the log, which has them anyway.

    So a call itself pays nothing for it, and a report has less of the log to read.
    """
    while True:
        await anyio.sleep(_BETWEEN_FOLDS)
        try:
            await fold_calls(parts)
        except OpenFangError as error:
            _log.warning("Calls could not be counted: %s", error.message)


async def fold_calls(parts: Parts) -> None:
    """Count what the log has got since the last time, some at once."""
    while True:
        first, last, calls = await _looked(parts, LedgerStore.unfolded)
        if first == last:
            return
        with suppress(Conflict):  # another process was faster
            await parts.writer.write(Unit(statements=fold(first, last, calls)))


async def _looked(parts: Parts, look: Callable[[LedgerStore], T]) -> T:
    """Look in a thread: there may be much to add up."""
    work = partial(_on_its_own, parts.database.path, look)
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=parts.readers)


def _on_its_own(path: Path, look: Callable[[LedgerStore], T]) -> T:
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        return look(LedgerStore(database))
