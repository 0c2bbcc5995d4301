"""The seams: Protocols that the layers above are handed, so that none imports the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Admitted, Call
    from openfang.core.decisions import Decision, Verdict
    from openfang.core.errors import CallRefused
    from openfang.core.events import AuditEvent
    from openfang.core.results import Outcome, Result
    from openfang.core.tools import Tool


class Clock(Protocol):
    """Time, handed in, so that a test can make it jump."""

    def monotonic(self) -> float:
        """Seconds that only go forward: for deadlines, rates and breakers."""
        ...

    def time_ns(self) -> int:
        """Nanoseconds since the epoch: for records and expiry."""
        ...


class ToolSource(Protocol):
    """Where tools come from, and who runs them."""

    @property
    def name(self) -> str:
        """The second part of its tools' ids (`builtin` for built-ins)."""
        ...

    def tools(self) -> Sequence[Tool]:
        """List the tools it offers now."""
        ...

    async def execute(self, admitted: Admitted) -> Result:
        """Run a call that carries the pipeline's stamp; refuse any other."""
        ...


class Gate(Protocol):
    """May it? A pure question: same tool and call, same answer."""

    @property
    def name(self) -> str:
        """How the decision record names it."""
        ...

    def check(self, tool: Tool, call: Call) -> Decision:
        """Decide on this call of this tool."""
        ...


class AuditSink(Protocol):
    """Somebody who reads behind the log: at least once, in order, never delaying a call."""

    async def handle_audit_event(self, event: AuditEvent) -> None:
        """Take one event that is already durable."""
        ...


class Observer(Protocol):
    """Somebody who watches calls end, to log and to count them. Must be quick, and never raise."""

    def ended(self, call: Call, tool: Tool, outcome: Outcome, seconds: float) -> None:
        """A call ran, and took so long."""
        ...

    def refused(self, call: Call, tool: Tool | None, refusal: CallRefused) -> None:
        """A call was refused; the message of the refusal is free of secrets."""
        ...


class Tracer(Protocol):
    """Somebody who tells of calls as spans. Must be quick, and never raise, as an observer."""

    def began(self) -> int:
        """A call enters now: what is returned is handed back when it is over."""
        ...

    def followed(
        self, call: Call, tool: Tool, verdicts: Sequence[Verdict], began: int, outcome: Outcome
    ) -> None:
        """A call went through the gates, and ran."""
        ...

    def stopped(
        self,
        call: Call,
        tool: Tool | None,
        verdicts: Sequence[Verdict],
        began: int,
        refusal: CallRefused,
    ) -> None:
        """A call was refused on its way."""
        ...
