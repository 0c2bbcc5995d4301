"""The one path. Read `invoke` from top to bottom: that is what happens to every call."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

import anyio
import orjson
from anyio import to_thread

from openfang.core.calls import Admitted, Call
from openfang.core.errors import (
    AuditUnavailable,
    CallCancelled,
    CallFailed,
    CallRefused,
    CallTimedOut,
    Parked,
)
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Outcome, Receipt, Result, text_part
from openfang.core.trace import CURRENT_TRACE
from openfang.core.values import dataclass
from openfang.guard.loops import Warn
from openfang.pipeline import records
from openfang.pipeline.evidence import digest, evidence
from openfang.pipeline.execute import Executor, broke
from openfang.pipeline.logged import LoggedCalls
from openfang.pipeline.progress import Passing
from openfang.pipeline.shape import look
from openfang.pipeline.trail import Trail
from openfang.pipeline.verdicts import refused_or_asked, subject_of
from openfang.policy.context import check_bound
from openfang.safety.schemas import Validator, compile_schema
from openfang.safety.sizes import check_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.audit.broker import Broker
    from openfang.core.decisions import Verdict
    from openfang.core.ports import Clock, Observer, Tracer
    from openfang.core.tools import Tool
    from openfang.pipeline.catalog import Catalog
    from openfang.pipeline.flow import Flow
    from openfang.pipeline.guards import Guards
    from openfang.pipeline.papers import Archive
    from openfang.pipeline.runs import RunLabels
    from openfang.pipeline.shape import Shaped, Shaper
    from openfang.pipeline.stamp import Stamper
    from openfang.policy.approvals import Approvals
    from openfang.policy.engine import Engine
    from openfang.storage.units import Head, Line

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_OUTCOMES: dict[type[CallFailed], Outcome] = {
    CallTimedOut: Outcome.TIMEOUT,
    CallCancelled: Outcome.CANCELLED,
}


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """Everything a call meets on its way."""

    catalog: Catalog
    executor: Executor
    guards: Guards
    engine: Engine
    runs: RunLabels
    flow: Flow
    archive: Archive
    approvals: Approvals
    audit: Broker
    shaper: Shaper
    stamper: Stamper
    clock: Clock
    tool_seconds: float = 60.0
    observers: tuple[Observer, ...] = (LoggedCalls(),)
    tracer: Tracer | None = None
    _validators: dict[str, tuple[object, Validator]] = field(
        init=False, default_factory=dict[str, tuple[object, Validator]]
    )

    async def invoke(self, call: Call) -> Result:
        """Take one call through every step; the first refusal ends it."""
        trail = Trail(self._told(call), labels=call.labels)
        if self.tracer is not None:
            trail.began = self.tracer.began()
        CURRENT_TRACE.set(call.chain.trace_id)
        try:
            return await self._run(trail, await self._admitted_or_refused(trail))
        except AuditUnavailable as refusal:
            self._tell_refusal(trail, refusal)
            raise
        finally:
            self._leave(trail)

    async def _admitted_or_refused(self, trail: Trail) -> Admitted:
        try:
            return await self._admit(trail)
        except AuditUnavailable:
            raise  # what could not be recorded is not tried again: its caller has waited once
        except CallRefused as refusal:
            await self._record_refusal(trail, refusal)
            raise

    def _told(self, call: Call) -> Call:
        """What a caller says of its task goes into the log, and may hold anything."""
        task = call.context.task_id
        if task is None:
            return call
        clean = self.audit.redact(task[:_LONGEST_TASK])
        if clean == task:
            return call
        return replace(call, context=replace(call.context, task_id=clean))

    def _leave(self, trail: Trail) -> None:
        """Count the call out; one that never ran has proved nothing to its source's breaker."""
        if trail.tool is None or not trail.entered:
            return
        if not trail.ran:
            self.guards.abandoned(trail.tool, self.clock.monotonic())
        self.guards.leave(trail.call)

    async def _admit(self, trail: Trail) -> Admitted:
        """Resolve, guard, check, gate, follow the flow, ask: in this order."""
        call = trail.call
        tool = trail.tool = self.catalog.find(call.caller, call.tool)
        check_bound(call.context)
        trail.came = self.clock.monotonic()
        self.guards.enter(call, tool, trail.came)
        trail.entered = True
        trail.canonical = check_arguments(call.arguments)
        trail.loop_key, trail.warning = self.guards.repeat(call, tool, trail.canonical)
        self.validator(tool).check(call.arguments, size=len(trail.canonical))
        trail.held = await self.runs.held(call)
        if call.context.spec_hash or call.admin_token:
            call = trail.call = await self.shown(call, tool)
        trail.labels = self.flow.carried(call, tool, trail.canonical, trail.held)
        engine, labels = self.engine, trail.labels
        trail.decided = (
            await engine.decide_all(tool, call, labels)
            if engine.custom
            else engine.decide(tool, call, labels)
        )
        flow = self.flow.verdict(call, tool, labels)
        asked = refused_or_asked(trail.decided, flow)
        if asked:
            await self._ask(trail, tool, asked, (*trail.decided.verdicts, flow))
        self.flow.said(call, trail.labels, trail.canonical)
        return self._admitted(trail.tool, trail.call, trail.labels)

    async def _ask(
        self, trail: Trail, tool: Tool, asked: Sequence[Verdict], verdicts: Sequence[Verdict]
    ) -> None:
        """Find a person's yes to exactly this call, and look again: the wait may have been long.

        What has come up meanwhile is asked in turn, until nothing has.
        """
        call = trail.call = replace(trail.call, arguments=orjson.loads(trail.canonical))
        began, known = self.clock.monotonic(), {verdict.code: verdict for verdict in asked}
        while True:
            subject = subject_of(call, tool, trail.canonical, trail.labels)
            question = await self.approvals.answered(subject, (*known.values(),), verdicts)
            tool = self._found_again(trail, tool)
            trail.labels = await self.entered(call, tool, trail.canonical)
            call = trail.call = await self.shown(call, tool)
            trail.decided = await self.engine.decide_all(tool, call, trail.labels)
            flow = self.flow.verdict(call, tool, trail.labels)
            again = {one.code: one for one in refused_or_asked(trail.decided, flow)}
            if again.keys() <= known.keys():
                break
            known, verdicts = known | again, (*trail.decided.verdicts, flow)
        await self.approvals.spend(question, call)
        trail.asked = self.clock.monotonic() - began
        trail.call = replace(call, chain=call.chain.later(trail.asked))

    def _found_again(self, trail: Trail, tool: Tool) -> Tool:
        """Find the tool as it is now: it may be gone, held back, or take something else."""
        found = trail.tool = self.catalog.find(trail.call.caller, tool.id)
        self.validator(found).check(trail.call.arguments, size=len(trail.canonical))
        return found

    async def entered(self, call: Call, tool: Tool, canonical: bytes) -> Labels:
        """Join what the call carries, what its run holds, and what its arguments contain."""
        return self.flow.carried(call, tool, canonical, await self.runs.held(call))

    async def shown(self, call: Call, tool: Tool) -> Call:
        """Give a call its papers as they are now, if any gate would read them."""
        return await self.archive.shown(call) if self.engine.reads_papers(tool) else call

    def _admitted(self, tool: Tool, call: Call, labels: Labels) -> Admitted:
        return Admitted(
            call=call,
            tool=tool,
            stamp=self.stamper.make(call.id),
            timeout=self._timeout(tool, call),
            labels=labels,
            progress=self._passing(call),
        )

    def _passing(self, call: Call) -> Passing | None:
        if call.progress is None:
            return None
        return Passing(call.progress, self.audit.redact, self.clock)

    def _timeout(self, tool: Tool, call: Call) -> float:
        """The smallest of tool, limit and chain; agents and peers are bounded by the chain."""
        deadline = call.chain.deadline
        left = float("inf") if deadline is None else max(0.0, deadline - self.clock.monotonic())
        if tool.bounded_by_run:
            return left
        own = call.caller.bounds.tool_seconds
        if own is not None and not tool.hands_on and tool.kind is not Kind.CLIENT:
            left = min(left, own)
        return min(self.tool_seconds if tool.timeout is None else tool.timeout, left)

    async def _run(self, trail: Trail, admitted: Admitted) -> Result:
        """Record, execute, shape, record: an ending even when the caller has gone."""
        call = trail.call
        context = self._context(trail)
        begun = [
            records.decision(call, context, trail.decided),
            records.start(call, admitted.tool, context, self._arguments(trail), trail.labels),
        ]
        if call.peer and not admitted.tool.operation:
            begun.insert(1, records.taken(call, admitted.tool, context, self.audit.redact))
        began, first = self.clock.monotonic(), 0
        try:
            first = await self.audit.started(call.id, begun, call.beside)
            trail.ran = True
            trail.noted = self.clock.monotonic()
            answered = await self.executor.run(admitted)
            trail.answered = self.clock.monotonic()
            result, blobs = await self._shaped(trail, admitted, answered)
        except CallRefused:
            raise
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                stored = self.runs.absorb(call, trail.held, admitted.tool.labels)
                last = await self._finish(trail, began, None, error=error, stored=stored)
                if isinstance(error, CallFailed):
                    error.call_id, error.receipt = call.id, _receipt(first, last)
                    error.labels |= admitted.tool.labels | call.labels
            raise
        stored = (*blobs, *self.runs.absorb(call, trail.held, result.labels))
        last = await self._finish(trail, began, result, stored=stored)
        self.flow.answered(call, result, trail.weight)
        return Result(
            content=result.content,
            structured=result.structured,
            is_error=result.is_error,
            labels=result.labels,
            meta=result.meta,
            extra=result.extra,
            fault=result.fault,
            call_id=call.id,
            receipt=_receipt(first, last),
        )

    async def _shaped(self, trail: Trail, admitted: Admitted, result: Result) -> Shaped:
        """Cap, redact and label; what cannot be written as JSON is the tool's failure."""
        try:
            looked = look(result)
            trail.weight = looked.weight
            if trail.loop_key is not None:
                seen = await _aside(trail, digest, result)
                answered, result = result, self._warned(trail, trail.loop_key, result, seen)
                looked = looked if result is answered else look(result)
            return await _aside(trail, self.shaper.shape, admitted, result, looked)
        except (TypeError, ValueError) as error:
            raise broke(admitted.tool, error) from error

    def _arguments(self, trail: Trail) -> str:
        text = trail.canonical.decode()
        return text if len(text) < _SHORTEST_SECRET else self.audit.redact(text)

    def _warned(self, trail: Trail, key: bytes, result: Result, seen: bytes) -> Result:
        """Tell the loop guard what came back; its warning becomes part of the result."""
        verdict = self.guards.loops.after(trail.call.run_id, key, seen)
        warning = verdict.text if isinstance(verdict, Warn) else trail.warning
        if not warning:
            return result
        return replace(result, content=(*result.content, text_part(warning)))

    async def _finish(
        self,
        trail: Trail,
        began: float,
        result: Result | None,
        *,
        error: BaseException | None = None,
        stored: tuple[tuple[str, Sequence[Any]], ...] = (),
    ) -> Head:
        if error is not None and trail.loop_key is not None:
            self.guards.loops.after(trail.call.run_id, trail.loop_key, None)
        ended = self.clock.monotonic()
        ending = records.Ending(
            outcome=result.outcome if result else _outcome_of(error),
            duration_us=int((ended - began) * 1e6),
            labels=result.labels if result else Labels.NONE,
            reason=error.message if isinstance(error, CallFailed) else "",
            evidence=await self._evidence(trail, result),
            steps=trail.steps(began, ended),
            size=trail.weight if result else 0,
        )
        line = records.end(trail.call, trail.context, ending, self.audit.redact)
        last = await self.audit.finished(trail.call.id, line, stored)
        self._observe(trail, ending)
        return last

    async def _evidence(self, trail: Trail, result: Result | None) -> dict[str, Any] | None:
        if not trail.large:
            return evidence(trail.tool, trail.canonical, result)
        with anyio.CancelScope(shield=True):  # an ending even when the caller has gone
            return await to_thread.run_sync(evidence, trail.tool, trail.canonical, result)

    def _observe(self, trail: Trail, ending: records.Ending) -> None:
        if trail.tool is not None:
            for observer in self.observers:
                observer.ended(trail.call, trail.tool, ending.outcome, ending.duration_us / 1e6)
            if self.tracer is not None:
                verdicts = trail.decided.verdicts
                self.tracer.followed(trail.call, trail.tool, verdicts, trail.began, ending.outcome)

    async def _record_refusal(self, trail: Trail, refusal: CallRefused) -> None:
        """A refusal is on record before the caller hears of it."""
        refusal.message = self.shaper.redactor.text(refusal.message).text
        context = self._context(trail)
        written: list[Line] = []
        if trail.decided.verdicts:
            written.append(records.decision(trail.call, context, trail.decided, trail.labels))
        if not isinstance(refusal, Parked):
            written.append(self._refusal(trail, context, refusal))
        if written:
            await self.audit.refused(written)
        self._tell_refusal(trail, refusal)

    def _refusal(self, trail: Trail, context: str, refusal: CallRefused) -> Line:
        return records.refusal(trail.call, context, refusal, trail.given, self.audit.redact)

    def _tell_refusal(self, trail: Trail, refusal: CallRefused) -> None:
        for observer in self.observers:
            observer.refused(trail.call, trail.tool, refusal)
        if self.tracer is not None:
            verdicts = trail.decided.verdicts
            self.tracer.stopped(trail.call, trail.tool, verdicts, trail.began, refusal)

    def _context(self, trail: Trail) -> str:
        """One context for all records of a call; what a peer put into it is redacted."""
        if not trail.context:
            call = trail.call
            context = records.context_of(call, trail.tool, self.audit.process.id)
            text = orjson.dumps(context).decode()
            trail.context = text if trail.ours else self.audit.redact(text)
        return trail.context

    def validator(self, tool: Tool) -> Validator:
        """Compile a schema once; a new schema object is a new validator."""
        known, schema = self._validators.get(tool.id), tool.accepts or tool.input_schema
        if known is None or known[0] is not schema:
            known = self._validators[tool.id] = (schema, compile_schema(schema))
        return known[1]


_SHORTEST_SECRET = 12
_LONGEST_TASK = 200


async def _aside(trail: Trail, work: Callable[[Unpack[Ts]], T], *given: *Ts) -> T:
    """Do it; on what is large in a thread, or the loop would stand still meanwhile."""
    return await to_thread.run_sync(work, *given) if trail.large else work(*given)


def _receipt(first: int, last: Head) -> Receipt:
    return Receipt(start=first, end=last.seq, hash=last.hash.hex())


def _outcome_of(error: BaseException | None) -> Outcome:
    if isinstance(error, CallFailed):
        return _OUTCOMES.get(type(error), Outcome.FAILED)
    return Outcome.FAILED if isinstance(error, Exception) else Outcome.CANCELLED
