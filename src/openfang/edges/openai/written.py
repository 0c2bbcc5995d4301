"""Completions and their chunks, as OpenAI writes them; what is ours is in `openfang`. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.agents import Ending
from openfang.core.bodies import message_body
from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.results import Result

_FINISHED: Final = {
    Ending.ANSWERED.value: "stop",
    Ending.REJECTED.value: "stop",
    Ending.CALLS.value: "tool_calls",
}
_CUT: Final = "length"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an agent answered, as its result has it."""

    text: str
    finish: str
    refused: bool
    calls: Sequence[Mapping[str, Any]]
    usage: Mapping[str, int]
    ours: Mapping[str, Any]


def read_reply(result: Result) -> Reply:
    """Read the result of a call of an agent; one whose run failed is a failure."""
    body = message_body(result)
    ending: str = body["ending"] or Ending.ANSWERED.value
    if result.is_error and ending != Ending.REJECTED.value:
        failed = SourceFailed(body["response"] or "The agent's run failed.")
        failed.call_id, failed.receipt = result.call_id, result.receipt
        raise failed
    said = cast("dict[str, Any]", result.structured) if result.structured else {}
    calls: Sequence[Mapping[str, Any]] = said.get("calls", ())
    return Reply(
        text=body["response"],
        finish=_FINISHED.get(ending, _CUT),
        refused=ending == Ending.REJECTED.value,
        calls=[_call(one["id"], one["tool"], one["arguments"]) for one in calls],
        usage=_usage(body["usage"] or {}),
        ours=_ours(body, result),
    )


def _ours(body: Mapping[str, Any], result: Result) -> dict[str, Any]:
    usage: Mapping[str, Any] = body["usage"] or {}
    told: dict[str, Any] = {
        "session": body["session"],
        "ending": body["ending"],
        "call_id": body["call_id"],
        "audit": body["audit"],
        "labels": result.labels.names,
        "cost_usd": usage.get("cost_usd"),
        "artifacts": body["artifacts"],
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    read, written = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _call(number: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"id": number, "type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes one completion, whole or in chunks."""

    id: str
    model: str
    created: int
    usage: bool = False

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Write all of it at once."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.text or None if reply.calls else reply.text,
            "refusal": reply.text if reply.refused else None,
        }
        if reply.calls:
            message["tool_calls"] = list(reply.calls)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": reply.usage,
            "openfang": reply.ours,
        }

    def begun(self) -> bytes:
        """Say who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def said(self, text: str) -> bytes:
        """Write a piece of the answer."""
        return self._chunk({"content": text})

    def wanted(self, number: int, call: Mapping[str, Any]) -> bytes:
        """Ask for a call of a tool of the client's."""
        return self._chunk({"tool_calls": [{"index": number, **call}]})

    def noted(self, ours: Mapping[str, Any]) -> bytes:
        """Tell what happens on our side: it is nothing that a client should do."""
        return self._chunk({}, ours=ours)

    def ended(self, reply: Reply) -> bytes:
        """Say why there is no more of it, and what it took if that was asked for."""
        refusal = {"refusal": reply.text} if reply.refused else {}
        last = self._chunk(refusal, reply.finish, reply.ours)
        if self.usage:
            head = self._head("chat.completion.chunk")
            last += _event({**head, "choices": [], "usage": reply.usage})
        return last + DONE

    def broken(self, body: Mapping[str, Any]) -> bytes:
        """Say what went wrong when an answer was on its way already."""
        return _event(body) + DONE

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(
        self,
        delta: Mapping[str, Any],
        finish: str | None = None,
        ours: Mapping[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        body = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if self.usage:
            body["usage"] = None
        if ours is not None:
            body["openfang"] = ours
        return _event(body)


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(body)
