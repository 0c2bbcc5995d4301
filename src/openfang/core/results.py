"""What a call brings back. Parts are plain dicts, so that what we do not know survives."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.labels import Labels
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping

Part: TypeAlias = "Mapping[str, Any]"
RECEIPT: Final = "openfang/receipt"
"""Where a receipt stands in what a protocol lets us say beside a result."""


class Outcome(Enum):
    """How a call ended, as the audit has it."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    __hash__ = object.__hash__


@value
class Receipt:
    """Where the call stands in the audit: its first and last record, and the hash of the last.

    With the hash its holder can ask later whether the log still has that record as it was.
    """

    start: int
    end: int
    hash: str = ""


@value
class Result:
    """What a tool answered. `is_error` is the tool's own word, not a failure of the call.

    `extra` is what a peer sent besides, and that we have no name for. `fault` is the error that it
    answered with in the place of a result: `code`, `message`, `data`. `vouched` says that a node of
    ours signed the labels: they are all that there are.
    """

    content: tuple[Part, ...] = ()
    structured: Any = None
    is_error: bool = False
    labels: Labels = Labels.NONE
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fault: Mapping[str, Any] | None = None
    vouched: bool = False
    call_id: str = ""
    receipt: Receipt | None = None

    @property
    def outcome(self) -> Outcome:
        """Whether the tool itself was content."""
        return Outcome.ERROR if self.is_error else Outcome.OK

    def labelled(self, labels: Labels) -> Result:
        """Give the same with other labels; `replace` would take three times as long."""
        return Result(
            content=self.content,
            structured=self.structured,
            is_error=self.is_error,
            labels=labels,
            meta=self.meta,
            extra=self.extra,
            fault=self.fault,
            vouched=self.vouched,
            call_id=self.call_id,
            receipt=self.receipt,
        )

    @property
    def text(self) -> str:
        """All text parts, joined."""
        texts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))


def text_part(text: str) -> dict[str, Any]:
    """One text part, as every protocol we speak writes it."""
    return {"type": "text", "text": text}


def text_result(text: str, *, labels: Labels = Labels.NONE, structured: Any = None) -> Result:  # noqa: ANN401 - any JSON
    """Answer with one text."""
    return Result(content=(text_part(text),), labels=labels, structured=structured)


def error_result(text: str, *, labels: Labels = Labels.NONE) -> Result:
    """Answer that the tool could not do it, in words that a model can act on."""
    return Result(content=(text_part(text),), is_error=True, labels=labels)
