"""What is known of a call so far: enough to record it wherever it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.pipeline import records
from openfang.policy.engine import Decided

if TYPE_CHECKING:
    from openfang.core.calls import Call
    from openfang.core.tools import Tool

_NO_VERDICTS: Final = Decided(())
_LONGEST_KEPT: Final = 16_384
_LARGE: Final = 1_000_000


@dataclass(slots=True)
class Trail:
    """One call on its way. `held` is what its run carried before, `labels` what it carries now.

    `came`, `noted` and `answered` are when it came, was on record and had run; `asked` is how long
    a person was waited for.
    """

    call: Call
    tool: Tool | None = None
    entered: bool = False
    ran: bool = False
    canonical: bytes = b"{}"
    loop_key: bytes | None = None
    warning: str = ""
    labels: Labels = Labels.NONE
    held: Labels = Labels.NONE
    decided: Decided = _NO_VERDICTS
    context: str = ""
    weight: int = 0
    began: int = 0
    came: float = 0.0
    asked: float = 0.0
    noted: float = 0.0
    answered: float = 0.0

    def steps(self, began: float, ended: float) -> tuple[int, ...]:
        """How long it was judged, waited for a person, was put on record and ran, in microseconds.

        What is left of its time went into shaping what came back.
        """
        asked, noted = self.asked, self.noted or ended
        judged = began - self.came - asked
        ran = (self.answered or ended) - noted
        waited = int(asked * 1e6) if asked else 0
        return (int(judged * 1e6), waited, int((noted - began) * 1e6), int(ran * 1e6))

    @property
    def large(self) -> bool:
        """Whether to look at the result would hold everybody up."""
        return self.weight > _LARGE

    @property
    def ours(self) -> bool:
        """Whether nothing in the call's context was written by somebody else."""
        chain, context = self.call.chain, self.call.context
        told = chain.starry_id or chain.ancestors or context.spec_hash or context.excess
        return self.tool is not None and not (self.call.run or told)

    @property
    def given(self) -> records.Given:
        """Keep what the gates refused, if it is short: a draft of rules can be held against it."""
        kept = self.decided.verdicts and len(self.canonical) <= _LONGEST_KEPT
        kept = kept and not self.labels & Labels.SECRET
        return records.Given(self.labels, self.canonical if kept else b"")
