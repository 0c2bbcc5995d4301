"""What a call carries, where that may go, and what of it all was said by somebody trusted (C9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.pipeline.verdicts import flow_verdict

if TYPE_CHECKING:
    from openfang.core.calls import Call
    from openfang.core.decisions import Verdict
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.pipeline.trusted import TrustedTexts
    from openfang.safety.redact import Redactor


@dataclass(frozen=True, slots=True)
class Flow:
    """Follows labels and words from call to call."""

    trusted: TrustedTexts
    redactor: Redactor

    def carried(self, call: Call, tool: Tool, canonical: bytes, held: Labels) -> Labels:
        """Join what the call carries, what its run holds, and what its arguments contain."""
        labels = call.labels | held
        if tool.sink.external and self.redactor.leaks(canonical):
            return labels | Labels.SECRET
        return labels

    def verdict(self, call: Call, tool: Tool, labels: Labels) -> Verdict:
        """Judge where what a call carries would go."""
        return flow_verdict(
            tool,
            labels,
            lambda: self.trusted.unnamed(call, tool),
            lambda text: self.redactor.text(text).text,
        )

    def said(self, call: Call, labels: Labels, canonical: bytes) -> None:
        """Hear the arguments of who began the chain: untainted, they are their own words."""
        if not (labels.untrusted or call.asker):
            self.trusted.hear(call, canonical, len(canonical))

    def answered(self, call: Call, result: Result, weight: int) -> None:
        """Hear a result of that weight, unless somebody outside could have written it."""
        if not result.labels.untrusted:
            self.trusted.hear(call, result, weight)
