"""Follows calls, and keeps a little of each until the next batch leaves."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from openfang.app.tracing.spans import CLIENT, INTERNAL, SERVER, Span
from openfang.core.ids import Kind, random_hex
from openfang.core.results import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.agents import Asked
    from openfang.core.calls import Call
    from openfang.core.decisions import Verdict
    from openfang.core.errors import CallRefused
    from openfang.core.ports import Clock
    from openfang.core.tools import Tool
    from openfang.core.trace import Chain

MOST_KEPT: Final = 20_000
_ALL: Final = 1 << 32
_CLIENTS: Final = frozenset({Kind.MCP, Kind.A2A})


class Following:
    """Implements `core.ports.Tracer`. What nobody fetches in time is dropped, and counted."""

    def __init__(self, clock: Clock, *, sample: float = 1.0, most: int = MOST_KEPT) -> None:
        self.began = clock.time_ns
        self.dropped = 0
        self._below = int(sample * _ALL)
        self._most = most
        self._spans: deque[Span] = deque()

    def followed(
        self, call: Call, tool: Tool, verdicts: Sequence[Verdict], began: int, outcome: Outcome
    ) -> None:
        """Keep what is told of a call that ran."""
        if self._chosen(call.chain):
            error = "" if outcome is Outcome.OK else outcome.value
            self._keep(self._of(call, tool, began, verdicts=verdicts, error=error))

    def stopped(
        self,
        call: Call,
        tool: Tool | None,
        verdicts: Sequence[Verdict],
        began: int,
        refusal: CallRefused,
    ) -> None:
        """Keep what is told of a call that was refused."""
        if self._chosen(call.chain):
            rule, reason = refusal.rule, refusal.message
            self._keep(self._of(call, tool, began, verdicts=verdicts, error=rule, reason=reason))

    def thought(self, chain: Chain, asked: Asked) -> None:
        """Keep what is told of a question to a model."""
        if not self._chosen(chain):
            return
        usage, now = asked.usage, self.began()
        more = (
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", asked.model),
            ("gen_ai.provider.name", asked.model.partition(":")[0]),
            ("gen_ai.usage.input_tokens", usage.input_tokens),
            ("gen_ai.usage.output_tokens", usage.output_tokens),
            ("openfang.usage.cost_usd", usage.cost_usd),
        )
        self._keep(
            Span(
                trace=chain.trace_id,
                id=random_hex(8),
                parent=chain.span_id,
                began=now - int(asked.seconds * 1e9),
                ended=now,
                name=f"chat {asked.model}",
                kind=CLIENT,
                error=asked.error,
                more=more,
            )
        )

    def taken(self) -> list[Span]:
        """Give what was kept; from now on it is somebody else's."""
        spans, self._spans = self._spans, deque()
        return [*spans]

    def _chosen(self, chain: Chain) -> bool:
        """Choose whole traces: every node that samples alike chooses the same ones."""
        return self._below >= _ALL or int(chain.trace_id[-8:], 16) < self._below

    def _of(  # noqa: PLR0913 - what is known of a call
        self,
        call: Call,
        tool: Tool | None,
        began: int,
        *,
        verdicts: Sequence[Verdict],
        error: str,
        reason: str = "",
    ) -> Span:
        chain = call.chain
        return Span(
            trace=chain.trace_id,
            id=chain.span_id,
            parent=chain.parent,
            began=began,
            ended=self.began(),
            name="" if tool else "unknown_tool",
            kind=_kind(call, tool),
            tool=tool,
            call=call.id,
            caller=call.caller.id,
            edge=call.edge,
            error=error,
            reason=reason,
            verdicts=verdicts,
        )

    def _keep(self, span: Span) -> None:
        if len(self._spans) >= self._most:
            self.dropped += 1
        else:
            self._spans.append(span)


def _kind(call: Call, tool: Tool | None) -> int:
    """Who begins a chain is served; what leaves for somebody else is a client's."""
    if not call.asker:
        return SERVER
    return CLIENT if tool is not None and tool.kind in _CLIENTS else INTERNAL
