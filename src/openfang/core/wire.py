"""The nouns of a node as JSON, and back: what the HTTP API writes and its client reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from openfang.core.agents import Message, Speaker, Wish
from openfang.core.calls import Grants, Mode, Role
from openfang.core.decisions import Explanation, Verdict
from openfang.core.events import AuditEvent
from openfang.core.ids import Kind
from openfang.core.keys import AdminToken, Answer, Key, Question, Scope, Spec, Way, opened
from openfang.core.labels import Labels
from openfang.core.log import Finding, Proof, Verification
from openfang.core.results import Receipt, Result
from openfang.core.sessions import SessionPage, SessionSummary, SessionTurn
from openfang.core.tools import Effect, Risk, Sink, Tool, Trust

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.memory import Memory

_SECOND = 1_000_000_000
_NEVER = 2**62


def moment(at: int | None) -> str | None:
    """A time as ISO 8601 in UTC; none for what never comes."""
    if at is None or at >= _NEVER:
        return None
    return datetime.fromtimestamp(at / _SECOND, UTC).isoformat(timespec="seconds")


def read_moment(text: str | None) -> int | None:
    """Read such a time back, in nanoseconds."""
    return None if text is None else int(datetime.fromisoformat(text).timestamp()) * _SECOND


def key_body(key: Key | AdminToken, now: int) -> dict[str, Any]:
    """A key or an admin token, never its secret."""
    own = _key_fields(key) if isinstance(key, Key) else {"tools": list(key.tools)}
    return {
        "id": key.id,
        "name": key.name,
        "kind": "key" if isinstance(key, Key) else "admin_token",
        "state": _key_state(key, now),
        **own,
        "created_at": moment(key.created_at),
        "expires_at": moment(key.expires_at),
        "revoked_at": moment(key.revoked_at),
    }


def _key_fields(key: Key) -> dict[str, Any]:
    grants = key.grants
    return {
        "role": key.role.value,
        "edges": list(key.edges),
        "toolsets": list(key.toolsets),
        "agents": list(key.agents),
        "tools": list(grants.tools),
        "network": list(grants.network),
        "shell": list(grants.shell),
        "memory_read": list(grants.memory_read),
        "memory_write": list(grants.memory_write),
        "mode": key.mode.value,
        "projects": list(key.projects),
        "spec": key.spec,
        "blacklist": sorted(key.blacklist),
        "cells_per_minute": key.cells_per_minute,
        "budget_usd_per_day": key.budget_usd_per_day,
    }


def _key_state(key: Key | AdminToken, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "in force"


def read_key(body: Mapping[str, Any]) -> Key | AdminToken:
    """Read a key or an admin token; what is not there is as a new one has it."""
    common: dict[str, Any] = {
        "id": body.get("id", ""),
        "name": body["name"],
        "created_at": read_moment(body.get("created_at")) or 0,
        "expires_at": read_moment(body.get("expires_at")),
        "revoked_at": read_moment(body.get("revoked_at")),
    }
    if body.get("kind") == "admin_token":
        return AdminToken(**common, tools=tuple(body.get("tools", ("*",))))
    toolsets, agents = opened(body.get("toolsets"), body.get("agents"))
    return Key(
        **common,
        role=Role(body.get("role", "user")),
        edges=tuple(body.get("edges", ("*",))),
        toolsets=toolsets,
        agents=agents,
        grants=_grants(body),
        mode=Mode(body.get("mode", "execution")),
        projects=tuple(body.get("projects", ("default",))),
        spec=body.get("spec"),
        blacklist=frozenset(body.get("blacklist", ())),
        cells_per_minute=body.get("cells_per_minute"),
        budget_usd_per_day=body.get("budget_usd_per_day"),
    )


def _grants(body: Mapping[str, Any]) -> Grants:
    """Grant what is written; an administrator is granted everything that is not."""
    rest = ("*",) if body.get("role") == "admin" else ()
    return Grants(
        tools=tuple(body.get("tools", ("*",))),
        network=tuple(body.get("network", rest)),
        shell=tuple(body.get("shell", rest)),
        memory_read=tuple(body.get("memory_read", rest)),
        memory_write=tuple(body.get("memory_write", rest)),
    )


def question_body(question: Question, now: int) -> dict[str, Any]:
    """What a person is asked, and what came of it."""
    return {
        "id": question.id,
        "state": _question_state(question, now),
        "scope": question.scope.value,
        "caller": question.caller,
        "tool": question.tool,
        "arguments": json.loads(question.arguments),
        "arguments_hash": question.arguments_hash,
        "run": question.run or None,
        "rule": question.rule,
        "reason": question.reason,
        "asked_at": moment(question.asked_at),
        "expires_at": moment(question.expires_at),
        "answered_at": moment(question.answered_at),
        "answered_by": question.answered_by,
        "via": question.via.value if question.via else None,
        "root": question.root or question.caller,
        "about": question.about,
    }


def _question_state(question: Question, now: int) -> str:
    overdue = question.state is Answer.PENDING and question.expires_at <= now
    return "expired" if overdue or question.via is Way.TIMEOUT else question.state.value


def read_question(body: Mapping[str, Any]) -> Question:
    """Read a question; one that expired was denied for that, or is yet to be."""
    state, via = body["state"], body["via"]
    overdue = Answer.PENDING if via is None else Answer.DENIED
    expires_at = read_moment(body["expires_at"])
    return Question(
        id=body["id"],
        caller=body["caller"],
        tool=body["tool"],
        arguments_hash=body["arguments_hash"],
        run=body["run"] or "",
        rule=body["rule"],
        reason=body["reason"],
        arguments=json.dumps(body["arguments"], ensure_ascii=False, separators=(",", ":")),
        state=overdue if state == "expired" else Answer(state),
        scope=Scope(body["scope"]),
        asked_at=read_moment(body["asked_at"]) or 0,
        expires_at=_NEVER if expires_at is None else expires_at,
        answered_at=read_moment(body["answered_at"]),
        answered_by=body["answered_by"],
        via=None if via is None else Way(via),
        root=body["root"],
        about=body["about"],
    )


def spec_body(spec: Spec) -> dict[str, Any]:
    """A frozen plan, without its content."""
    return {
        "hash": spec.hash,
        "project": spec.project,
        "name": spec.name,
        "frozen_by": spec.frozen_by,
        "frozen_at": moment(spec.frozen_at),
    }


def read_spec(body: Mapping[str, Any]) -> Spec:
    """Read a spec."""
    return Spec(
        hash=body["hash"],
        project=body["project"],
        name=body["name"],
        frozen_by=body["frozen_by"],
        frozen_at=read_moment(body["frozen_at"]) or 0,
    )


def session_body(session: SessionSummary) -> dict[str, Any]:
    """A session, without what was said in it."""
    return {
        "id": session.id,
        "agent": session.agent,
        "caller": session.caller,
        "name": session.name,
        "title": session.title,
        "messages": session.messages,
        "labels": session.labels.names,
        "created_at": moment(session.created_at),
        "updated_at": moment(session.updated_at),
    }


def read_session(body: Mapping[str, Any]) -> SessionSummary:
    """Read a session."""
    return SessionSummary(
        id=body["id"],
        agent=body["agent"],
        caller=body["caller"],
        name=body["name"],
        title=body["title"],
        messages=body["messages"],
        labels=Labels.of(body["labels"]),
        created_at=read_moment(body["created_at"]) or 0,
        updated_at=read_moment(body["updated_at"]) or 0,
    )


def read_sessions(body: Mapping[str, Any]) -> SessionPage:
    """Read a page of sessions."""
    found = [read_session(one) for one in body["sessions"]]
    return SessionPage(sessions=found, total=body["total"], after=body["after"])


def memory_body(memory: Memory) -> dict[str, Any]:
    """A memory; of a long one there is only a piece of its text (`snippet`)."""
    return {
        "key": memory.key,
        "snippet" if memory.shortened else "value": memory.value,
        "labels": memory.labels.names,
        "stored_at": moment(memory.stored_at),
        "stored_by": memory.origin.stored_by,
        "asked_by": memory.origin.asked_by,
        "trace": memory.origin.trace,
        "call_id": memory.origin.call,
    }


def turn_body(turn: SessionTurn) -> dict[str, Any]:
    """A turn of a session, whole."""
    message = turn.message
    return {
        "seq": turn.seq,
        "run": turn.run,
        "created_at": moment(turn.at),
        "speaker": message.speaker.value,
        "text": message.text,
        "wishes": [
            {"id": wish.id, "tool": wish.tool, "arguments": dict(wish.arguments)}
            for wish in message.wishes
        ],
        "answers": message.answers or None,
        "is_error": message.is_error,
    }


def read_turn(body: Mapping[str, Any]) -> SessionTurn:
    """Read a turn."""
    message = Message(
        speaker=Speaker(body["speaker"]),
        text=body["text"],
        wishes=tuple(Wish(**one) for one in body["wishes"]),
        answers=body["answers"] or "",
        is_error=body["is_error"],
    )
    at = read_moment(body["created_at"]) or 0
    return SessionTurn(seq=body["seq"], run=body["run"], at=at, message=message)


def verification_body(found: Verification) -> dict[str, Any]:
    """What `verify` found."""
    return {
        "intact": found.intact,
        "records": found.records,
        "checkpoints": found.checkpoints,
        "heads": dict(found.heads),
        "key": found.key,
        "findings": [
            {"kind": f.kind, "node": f.node, "record": f.seq, "text": f.text}
            for f in found.findings
        ],
    }


def read_verification(body: Mapping[str, Any]) -> Verification:
    """Read it back."""
    findings = tuple(
        Finding(one["kind"], one["node"], one["record"], one["text"]) for one in body["findings"]
    )
    return Verification(
        records=body["records"],
        checkpoints=body["checkpoints"],
        heads=body["heads"],
        key=body["key"],
        findings=findings,
    )


def proof_body(proof: Proof) -> dict[str, Any]:
    """Whether the log has what a receipt says."""
    return {"proven": proof.proven, "signed": proof.signed, "text": proof.text}


def read_proof(body: Mapping[str, Any]) -> Proof:
    """Read it back."""
    return Proof(proven=body["proven"], signed=body["signed"], text=body["text"])


def read_event(body: Mapping[str, Any]) -> AuditEvent:
    """Read an entry of the log."""
    return AuditEvent(**body)


def read_result(body: Mapping[str, Any]) -> Result:
    """Read what a call brought back."""
    return Result(
        content=tuple(body["content"]),
        structured=body["structured"],
        is_error=body["outcome"] != "ok",
        labels=Labels.of(body["labels"]),
        meta=body.get("_meta", {}),
        extra=body.get("extra", {}),
        call_id=body["call_id"],
        receipt=read_receipt(body["audit"]),
    )


def read_receipt(audit: Mapping[str, Any] | None) -> Receipt | None:
    """Read where a call stands in the audit."""
    return Receipt(start=audit["start"], end=audit["end"], hash=audit["hash"]) if audit else None


def read_tool(body: Mapping[str, Any]) -> Tool:
    """Read a tool, as far as lists show it."""
    return Tool(
        id=body["id"],
        kind=next(kind for kind in Kind if kind.source_type == body["source_type"]),
        source=body["source"],
        name=body["id"].rpartition(":")[2],
        description=body["description"],
        input_schema=body["input_schema"],
        output_schema=body["output_schema"],
        title=body["title"],
        wire_name=body["name"],
        aliases=tuple(body["aliases"]),
        risk=Risk.parse(body["risk"]),
        tags=frozenset(body["side_effects"]),
        sink=Sink(effect=Effect(body["effect"]), targets=tuple(body["targets"])),
        labels=Labels.of(body["labels"]),
        trust=Trust(body["trust"]),
        requires_admin_token=body["requires_admin_token"],
        enabled=body["enabled"],
        hold=body["held"],
    )


def read_explanation(body: Mapping[str, Any], tool: Tool) -> Explanation:
    """Read a decision on this tool."""
    return Explanation(
        tool=tool,
        outcome=body["outcome"],
        verdicts=tuple(read_verdict(one) for one in body["gates"]),
        labels=list(body["labels"]),
    )


def read_verdict(body: Mapping[str, Any]) -> Verdict:
    """Read one gate's word."""
    words: dict[str, Any] = {**body, "rules": tuple(body.get("rules", ()))}
    return Verdict(**words)
