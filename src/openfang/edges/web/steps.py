"""The twelve steps of a call, as its records tell how far it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.edges.web.drawing import parts_of
from openfang.edges.web.words import number, took

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.core.events import AuditEvent
    from openfang.core.watching import CallStory

SIX: Final = ("disabled", "mode", "spec_frozen", "project", "policy", "admin_token")
_PLACES: Final = {
    "identify": 1,
    "trace": 2,
    "resolve": 3,
    "admit": 3,
    "guard": 4,
    "arguments": 5,
    "gate": 6,
    "flow": 7,
    "approval": 8,
    "record": 9,
    "execute": 10,
    "shape": 11,
}
_NAMES: Final = (
    "Identify",
    "Trace",
    "Resolve",
    "Guards",
    "Arguments",
    "Gates",
    "Taint",
    "Approval",
    "Record",
    "Execute",
    "Shape",
    "Record",
)
_OF_FLOW: Final = frozenset({"untrusted_act", "untrusted_effect"})
_WORDS: Final = {"allow": "Passed", "deny": "Denied", "ask": "Asked", "not_reached": "Not reached"}
_KINDS: Final = {"allow": "allow", "deny": "deny", "ask": "ask"}


class Told:
    """What the records of a call say, by kind."""

    def __init__(self, records: Sequence[AuditEvent]) -> None:
        by = {one.event_type: one for one in records}
        self.decision = by.get("policy_decision")
        self.violation = by.get("policy_violation")
        self.start = by.get("tool_invocation_start")
        self.end = by.get("tool_invocation_end")
        self.asked = by.get("approval_requested")
        self.answered = by.get("approval_answered") or by.get("approval_spent")

    @property
    def gates(self) -> list[Mapping[str, Any]]:
        """Every gate's word."""
        found: Any = self.decision.payload.get("gates") if self.decision else None
        return [one for one in found or () if isinstance(one, dict)]

    @property
    def steps(self) -> list[int]:
        """How long the steps took, as its end tells."""
        found: Any = self.end.payload.get("steps_us") if self.end else None
        return [one for one in found or () if isinstance(one, int)]

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What was passed, without what is secret."""
        for record in (self.start, self.violation):
            if record is not None and isinstance(found := record.payload.get("arguments"), dict):
                return found  # pyright: ignore[reportUnknownVariableType]
        return {}

    def of(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        """Find what any record says of it."""
        for record in (self.end, self.start, self.violation, self.decision, self.asked):
            if record is not None and record.context.get(name) is not None:
                return record.context[name]
        return None


def steps_of(story: CallStory, told: Told) -> list[dict[str, Any]]:
    """Tell each step, with the gates below theirs."""
    refused, times = _refused_at(told), _times(story, told)
    shown = list[dict[str, Any]]()
    for place, name in enumerate(_NAMES, 1):
        step = _step(place, told, refused)
        us = took(times.get(place)) if times.get(place) else ""
        shown.append({"n": place, "name": name, "sub": False, "us": us, **step})
        if place == _PLACES["gate"]:
            shown += _gates(told)
    return shown


def _times(story: CallStory, told: Told) -> dict[int, int]:
    """How long each step took. Those up to the flow are told as one, at the gates."""
    parts = [us for _, us in parts_of(told.steps, story.call.us)]
    names = ("gate", "approval", "record", "execute", "shape")
    if not parts:
        return {_PLACES["execute"]: story.call.us or 0}
    return {_PLACES[name]: us for name, us in zip(names, parts, strict=True)}


def _refused_at(told: Told) -> int:
    """The step that refused, or the first that is yet to come."""
    if told.violation is not None:
        step = str(told.violation.payload.get("step", ""))
        if step in _PLACES:
            return _PLACES[step]
        return _PLACES["gate"] if told.gates else _PLACES["guard"]
    return len(_NAMES) + 1


def _step(place: int, told: Told, refused: int) -> dict[str, Any]:
    if place == refused and told.violation is not None:
        return _said(
            "deny", "Denied", str(told.violation.payload.get("reason", "")), decided="deny"
        )
    if place > refused:
        return _said("none", "Not reached")
    if place < _PLACES["flow"]:
        return _said("allow", "Passed", _why(place, told))
    return _later(place, told)


def _why(place: int, told: Told) -> str:
    match place:
        case 1:
            return str(told.of("caller") or "")
        case 2:
            return f"depth {told.of('depth') or 1}"
        case 3:
            return str(told.of("tool") or "")
        case 5:
            return "match the schema"
        case 6:
            asked = [one for one in told.gates if one.get("verdict") == "ask"]
            return f"{asked[0].get('gate')} asks" if asked else "none refused"
        case _:
            return "not too deep, too often or too much"


def _later(place: int, told: Told) -> dict[str, Any]:
    match place:
        case 7:
            return _flow(told)
        case 8:
            return _approval(told)
        case 9:
            return _written(told.start)
        case 12:
            return _written(told.end)
        case _:
            return _run(place, told)


def _flow(told: Told) -> dict[str, Any]:
    found = next((one for one in told.gates if one.get("gate") == "flow"), None)
    if found is None and told.asked is not None and _OF_FLOW & _rules(told.asked):
        return _said("ask", "Asked", str(told.asked.payload.get("reason", "")), decided="ask")
    if found is None:
        return _said("allow", "Passed")
    kind = str(found.get("verdict", "allow"))
    decided = kind if kind in {"ask", "deny"} else ""
    word = _WORDS.get(kind, kind)
    return _said(_KINDS.get(kind, "none"), word, str(found.get("reason", "")), decided=decided)


def _rules(asked: AuditEvent) -> set[str]:
    return set(str(asked.payload.get("rule", "")).split("+"))


def _approval(told: Told) -> dict[str, Any]:
    if told.answered is not None:
        state = str(told.answered.payload.get("state", ""))
        by = str(told.answered.payload.get("answered_by") or "nobody in time")
        kind, word = ("deny", "Denied") if state == "denied" else ("allow", "Allowed")
        return _said(kind, word, f"by {by}", decided=kind if kind == "deny" else "")
    if told.asked is not None and told.start is None:
        return _said("ask", "Waiting", str(told.asked.payload.get("reason", "")), decided="ask")
    return _said("allow", "Passed", "nobody had to be asked")


def _written(record: AuditEvent | None) -> dict[str, Any]:
    if record is None:
        return _said("none", "Not reached")
    return _said("allow", "Written", f"#{number(record.audit_id)} {record.event_type}")


def _run(place: int, told: Told) -> dict[str, Any]:
    if told.start is None:
        return _said("none", "Not reached", "did not run" if place == _PLACES["execute"] else "")
    if told.end is None:
        return _said("run", "Running") if place == _PLACES["execute"] else _said("none", "Not yet")
    if place == _PLACES["shape"]:
        return _said("allow", "Done", "labels put on")
    outcome = str(told.end.payload.get("outcome", ""))
    good = outcome == "ok"
    reason = str(told.end.payload.get("reason", "")) or ("ran once" if good else outcome)
    kind, word = ("allow", "Done") if good else ("failed", "Failed")
    decided = "" if good else "failed"
    return _said(kind, word, reason, decided=decided)


def _gates(told: Told) -> Iterator[dict[str, Any]]:
    known = {str(one.get("gate")): one for one in told.gates}
    for name in [*SIX, *(one for one in known if one not in SIX and one != "flow")]:
        found = known.get(name, {"verdict": "not_reached"})
        kind = str(found.get("verdict"))
        decided = kind if kind in {"ask", "deny"} else ""
        said = _said(
            _KINDS.get(kind, "none"), _WORDS.get(kind, kind), _reason(found), decided=decided
        )
        yield {"n": "", "name": name.replace("_", " "), "sub": True, "us": "", **said}


def _reason(gate: Mapping[str, Any]) -> str:
    rules = gate.get("rules")
    told = f" ({', '.join(map(str, rules))})" if isinstance(rules, list) and rules else ""  # pyright: ignore[reportUnknownArgumentType]
    return f"{gate.get('reason', '')}{told}"


def _said(kind: str, word: str, why: str = "", *, decided: str = "") -> dict[str, Any]:
    return {"kind": kind, "word": word, "why": why, "decided": decided}
