"""How OpenAI, Anthropic and Gemini write an answer, whole and as a stream of events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agents.models.scripted import Asked, Says, Want

_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Speaks(Protocol):
    """One wire format."""

    def streams(self, asked: Asked) -> bool: ...
    def whole(self, says: Says, number: int) -> dict[str, Any]: ...
    def events(self, says: Says, number: int) -> Iterator[bytes]: ...
    def error(self, status: int, message: str, code: str) -> dict[str, Any]: ...


def speaker(asked: Asked) -> Speaks:
    """Choose the format by the path."""
    if asked.path.startswith("/v1/messages"):
        return Anthropic()
    return Gemini() if "enerateContent" in asked.path else OpenAi()


def _id(want: Want, number: int, place: int) -> str:
    return want.id or f"call_{number}_{place}"


def _arguments(want: Want) -> str:
    return want.arguments if isinstance(want.arguments, str) else json.dumps(dict(want.arguments))


def _data(body: object) -> bytes:
    return b"data: %s\n\n" % json.dumps(body).encode()


class OpenAi:
    """`POST /v1/chat/completions`."""

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}

    def whole(self, says: Says, number: int) -> dict[str, Any]:
        refused = says.stop == "refusal"
        message: dict[str, Any] = {"role": "assistant", "content": "".join(says.pieces) or None}
        if refused:
            message |= {"content": None, "refusal": "".join(says.pieces)}
        if says.wants:
            message["tool_calls"] = list(self._calls(says, number))
        choice = {"index": 0, "message": message, "finish_reason": self._stop(says)}
        return {**self._head(number, "chat.completion"), "choices": [choice], **self._usage(says)}

    def events(self, says: Says, number: int) -> Iterator[bytes]:
        if says.thinks:
            yield self._chunk(number, {"reasoning_content": says.thinks})
        refused = says.stop == "refusal"
        for piece in says.pieces:
            yield self._chunk(number, {"refusal": piece} if refused else {"content": piece})
        calls: list[dict[str, Any]] = [
            {**call, "index": at} for at, call in enumerate(self._calls(says, number))
        ]
        for call in calls:
            function = call["function"]
            begun = {**call, "function": {"name": function["name"], "arguments": ""}}
            yield self._chunk(number, {"tool_calls": [begun]})
            for piece in _halves(function["arguments"]):
                said = {"index": call["index"], "function": {"arguments": piece}}
                yield self._chunk(number, {"tool_calls": [said]})
        if says.dies or says.ends:
            return
        yield self._chunk(number, {}, self._stop(says))
        head = self._head(number, "chat.completion.chunk")
        yield _data({**head, "choices": [], **self._usage(says)})
        yield b"data: [DONE]\n\n"

    def _chunk(self, number: int, delta: dict[str, Any], stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": stop}
        return _data({**self._head(number, "chat.completion.chunk"), "choices": [choice]})

    def _head(self, number: int, kind: str) -> dict[str, Any]:
        return {"id": f"chat-{number}", "object": kind, "created": 1_700_000_000, "model": "script"}

    def _calls(self, says: Says, number: int) -> Iterator[dict[str, Any]]:
        for place, want in enumerate(says.wants):
            function = {"name": want.tool, "arguments": _arguments(want)}
            yield {"id": _id(want, number, place), "type": "function", "function": function}

    def _stop(self, says: Says) -> str:
        if says.wants and says.stop == "stop":
            return "tool_calls"
        return {"refusal": "stop", "filter": "content_filter"}.get(says.stop, says.stop)

    def _usage(self, says: Says) -> dict[str, Any]:
        read, said = says.tokens
        usage = {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}
        return {"usage": usage}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


class Anthropic:
    """`POST /v1/messages`."""

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        default = "invalid_request_error" if status < 500 else "api_error"
        kind = code or _KINDS.get(status, default)
        return {"type": "error", "error": {"type": kind, "message": message}}

    def whole(self, says: Says, number: int) -> dict[str, Any]:
        read, said = says.tokens
        return {
            **self._head(number),
            "content": [block | rest for block, _, rest in self._blocks(says, number)],
            "stop_reason": self._stop(says),
            "usage": {"input_tokens": read, "output_tokens": said},
        }

    def events(self, says: Says, number: int) -> Iterator[bytes]:
        read, said = says.tokens
        head = {**self._head(number), "usage": {"input_tokens": read, "output_tokens": 1}}
        yield self._event("message_start", message=head)
        for at, (block, deltas, _) in enumerate(self._blocks(says, number)):
            yield self._event("content_block_start", index=at, content_block=block)
            for delta in deltas:
                yield self._event("content_block_delta", index=at, delta=delta)
            if not says.dies:
                yield self._event("content_block_stop", index=at)
        if says.dies or says.ends:
            return
        delta = {"stop_reason": self._stop(says), "stop_sequence": None}
        yield self._event("message_delta", delta=delta, usage={"output_tokens": said})
        yield self._event("message_stop")

    def _blocks(
        self, says: Says, number: int
    ) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]]:
        if says.thinks:
            thought = {"type": "thinking_delta", "thinking": says.thinks}
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            yield begun, [thought], {"thinking": says.thinks}
        if any(says.pieces):
            deltas = [{"type": "text_delta", "text": piece} for piece in says.pieces]
            yield {"type": "text", "text": ""}, deltas, {"text": "".join(says.pieces)}
        for place, want in enumerate(says.wants):
            block = {"type": "tool_use", "id": _id(want, number, place), "name": want.tool}
            pieces = _halves(_arguments(want))
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in pieces]
            yield {**block, "input": {}}, deltas, {"input": want.arguments}

    def _event(self, kind: str, **body: object) -> bytes:
        return b"event: %s\n%s" % (kind.encode(), _data({"type": kind, **body}))

    def _head(self, number: int) -> dict[str, Any]:
        rest: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "script"}
        return head | rest

    def _stop(self, says: Says) -> str:
        if says.wants and says.stop == "stop":
            return "tool_use"
        stops = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal"}
        return stops.get(says.stop, says.stop)


class Gemini:
    """`POST /v1beta/models/NAME:generateContent`, and `:streamGenerateContent`."""

    def streams(self, asked: Asked) -> bool:
        return ":stream" in asked.path

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        named = code or _STATUS.get(status, "UNAVAILABLE" if status >= 500 else "FAILED")
        return {"error": {"code": status, "message": message, "status": named}}

    def whole(self, says: Says, number: int) -> dict[str, Any]:
        texts = [{"text": piece} for piece in says.pieces if piece]
        return self._chunk(says, number, [*texts, *self._calls(says, number)], last=True)

    def events(self, says: Says, number: int) -> Iterator[bytes]:
        if says.thinks:
            thought = {"text": says.thinks, "thought": True}
            yield _data(self._chunk(says, number, [thought]))
        for piece in says.pieces:
            yield _data(self._chunk(says, number, [{"text": piece}]))
        if not (says.dies or says.ends):
            yield _data(self._chunk(says, number, list(self._calls(says, number)), last=True))

    def _calls(self, says: Says, number: int) -> Iterator[dict[str, Any]]:
        for place, want in enumerate(says.wants):
            call = {"id": _id(want, number, place), "name": want.tool, "args": want.arguments}
            yield {"functionCall": call}

    def _chunk(
        self, says: Says, number: int, parts: list[dict[str, Any]], *, last: bool = False
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if last:
            stops = {"stop": "STOP", "length": "MAX_TOKENS"}
            candidate["finishReason"] = stops.get(says.stop, "SAFETY")
        read, said = says.tokens
        counted = {"promptTokenCount": read, "candidatesTokenCount": said}
        usage = {**counted, "totalTokenCount": read + said}
        head = {"responseId": f"gemini-{number}", "modelVersion": "script"}
        return {**head, "candidates": [candidate], "usageMetadata": usage}
