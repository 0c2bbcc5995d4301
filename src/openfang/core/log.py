"""What can be asked of the audit log, and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.bookmarks import Bookmark

QUERY_ROWS = 10_000
Table: TypeAlias = tuple[list[str], list["Sequence[Any]"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for; an empty field matches everything.

    `record` is one record, by its number, or `node:number` where several nodes have that number.
    """

    event: str = ""
    tool: str = ""
    caller: str = ""
    call_id: str = ""
    task_id: str = ""
    level: str = ""
    text: str = ""
    node: str = ""
    record: str = ""
    after: int | Bookmark = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where the log is not what was written."""

    kind: str
    node: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was read, and what does not fit; `key` is the public key that checkpoints need."""

    records: int
    checkpoints: int
    heads: Mapping[str, int]
    key: str
    findings: tuple[Finding, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether the log has a record as its receipt says; `signed` is the checkpoint that covers it.

    It tells nothing of the record: whoever has its hash may ask.
    """

    proven: bool
    signed: int | None
    text: str
