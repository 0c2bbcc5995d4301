"""What was used up, for who asks: an administrator and an auditor see everybody's."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from openfang.core.calls import Role
from openfang.core.errors import Conflict, OpenFangError
from openfang.storage.ledger import LedgerStore, fold
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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
        found = await _looked(parts, LedgerStore.unfolded)
        if found is None:
            return
        with suppress(Conflict):  # another process, or another node, was faster
            await parts.writer.write(Unit(statements=fold(found)))


async def _looked(parts: Parts, look: Callable[[LedgerStore], Coroutine[Any, Any, T]]) -> T:
    """Look aside: there may be much to add up."""
    return await parts.database.aside(lambda reader: look(LedgerStore(reader)))
