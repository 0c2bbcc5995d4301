"""The extension of A2A that is ours: a message tells whose call it goes on with (C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.results import RECEIPT
from openfang.protocols.hops.labels import LABELS
from openfang.protocols.hops.words import ANSWER

if TYPE_CHECKING:
    from openfang.core.tasks import Task

CHAIN: Final = "urn:openfang:a2a:chain:1"
HEADER: Final = "A2A-Extensions"
_HOP: Final = (LABELS, ANSWER)


def beside(task: Task) -> dict[str, Any]:
    """Write what is told of an answer where the rest of a task's metadata is not: often nothing."""
    return _told(task, (*_HOP, RECEIPT))


def signed(task: Task) -> dict[str, Any]:
    """Write what nodes tell each other of an answer, where there is no other metadata at all."""
    return _told(task, _HOP)


def _told(task: Task, names: tuple[str, ...]) -> dict[str, Any]:
    told = {name: task.metadata[name] for name in names if name in task.metadata}
    return {"metadata": told} if told else {}
