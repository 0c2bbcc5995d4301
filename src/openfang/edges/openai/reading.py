"""A request for a chat completion, read: what is said to which agent, and what was said before.

No I/O.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.values import dataclass
from openfang.edges.openai.content import files_in, text_in
from openfang.edges.openai.faults import Unfit
from openfang.edges.openai.refused import check_parameters
from openfang.edges.openai.schemas import MESSAGES, REQUEST
from openfang.safety.schemas import Validator, compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.core.results import Part

_SYSTEM: Final = ("system", "developer")
_PREFIXES: Final = ("openfang:", "agent:")
_ROLES: Final = {"user": "user", "assistant": "agent", "tool": "tool"}
_LONGEST_SESSION: Final = 200
_DIGEST: Final = 32
_BOUNDS: Final = ("max_tokens", "max_completion_tokens")


@dataclass(slots=True, kw_only=True)
class Spoken:
    """One message that is part of the conversation, as an agent is told it."""

    role: str
    text: str
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answers: str = ""
    parts: Sequence[Part] = ()

    def body(self) -> dict[str, Any]:
        """Write it for a history."""
        fields = {"calls": self.calls, "answers": self.answers, "parts": list(self.parts)}
        told = {name: value for name, value in fields.items() if value}
        return {"role": self.role, "text": self.text, **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client wants."""

    agent: str
    spoken: Sequence[Spoken]
    wanted: Mapping[str, Any]
    session: str
    named: bool
    stream: bool
    usage: bool

    @property
    def theirs(self) -> frozenset[str]:
        """The names of the client's own tools."""
        return frozenset(tool["name"] for tool in self.wanted.get("tools", ()))

    def arguments(self) -> dict[str, Any]:
        """Write it as the arguments of a call of the agent.

        A session that was named goes on by itself, if all that came is something new.
        """
        *before, last = self.spoken
        if last.role != "user":
            before, last = list(self.spoken), Spoken(role="user", text="")
        goes_on = self.named and all(one.role == "user" for one in before)
        said = [*([one.text for one in before] if goes_on else []), last.text]
        parts = [part for one in ([*before, last] if goes_on else [last]) for part in one.parts]
        return {
            "message": "\n\n".join(said),
            "session": self.session,
            **({} if goes_on else {"history": [one.body() for one in before]}),
            **({"parts": parts} if parts else {}),
            **self.wanted,
        }


def agent_named(model: str) -> str:
    """The agent that a client means by a model."""
    for prefix in _PREFIXES:
        model = model.removeprefix(prefix)
    return model


def read_request(body: object, session: str) -> Asked:
    """Read a request; `session` is the one that its headers name, if they do."""
    if not isinstance(body, dict):
        raise Unfit("The body is no JSON object.", None, way_out="send one JSON object")
    return _read(cast("dict[str, Any]", body), session)


def _read(body: dict[str, Any], session: str) -> Asked:
    _check(_checks()[""], body, "")
    check_parameters(body)
    spoken = list(_all_spoken(body["messages"]))
    _check_order(spoken)
    options: Mapping[str, Any] = body.get("stream_options") or {}
    name = _session_in(body, session)
    return Asked(
        agent=agent_named(body["model"]),
        spoken=spoken,
        wanted=dict(_wanted(body)),
        session=name or _of_conversation(spoken, body.get("user") or ""),
        named=bool(name),
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
    )


def _all_spoken(messages: Sequence[Mapping[str, Any]]) -> Iterator[Spoken]:
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        _check(_checks()[message["role"]], message, place)
        if message["role"] not in _SYSTEM:
            yield _spoken(message, place)


@cache
def _checks() -> Mapping[str, Validator]:
    """What checks messages by their role, and requests; made for the first that comes."""
    return {role: compile_schema(one) for role, one in {**MESSAGES, "": REQUEST}.items()}


def _check(check: Validator, value: object, place: str) -> None:
    if check.compiled is None or check.compiled.is_valid(value):
        return
    where, _, what = check.first_error(value).partition(": ")
    param = f"{place}{where.removeprefix('$')}".removeprefix(".")
    raise Unfit(f"{param or 'The body'} is not as it must be: {what}.", param or None)


def _session_in(body: Mapping[str, Any], named: str) -> str:
    metadata: Mapping[str, str] = body.get("metadata") or {}
    name = named or metadata.get("session", "")
    if len(name) > _LONGEST_SESSION:
        raise Unfit(
            f"The name of the session has {len(name)} characters; it may have {_LONGEST_SESSION}.",
            "metadata.session",
        )
    return name


def _wanted(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is told besides: only what the client has said."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    system = [text_in(one["content"]) for one in messages if one["role"] in _SYSTEM]
    if said := "\n\n".join(filter(None, system)):
        yield "instructions", said
    if body.get("temperature") is not None:
        yield "temperature", body["temperature"]
    if bounds := [body[name] for name in _BOUNDS if body.get(name)]:
        yield "max_tokens", min(bounds)
    if body.get("metadata"):
        yield "metadata", body["metadata"]
    if body.get("tools") and body.get("tool_choice") != "none":
        yield "tools", _tools([one["function"] for one in body["tools"]])


def _tools(functions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write the client's tools; of two with one name nobody could say which is wanted."""
    names: set[str] = set()
    for number, one in enumerate(functions):
        if one["name"] in names:
            place = f"tools[{number}].function.name"
            raise Unfit(f"{place} is that of another tool: {one['name']}.", place)
        names.add(one["name"])
    return [_tool(one) for one in functions]


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function.get("description") or "",
        "input_schema": function.get("parameters") or {"type": "object"},
    }


def _spoken(message: Mapping[str, Any], place: str) -> Spoken:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    content = message.get("content")
    return Spoken(
        role=_ROLES[message["role"]],
        text=text_in(content) or (message.get("refusal") or ""),
        calls=[_call(one, f"{place}.tool_calls[{n}]") for n, one in enumerate(calls)],
        answers=message.get("tool_call_id", ""),
        parts=files_in(content, f"{place}.content"),
    )


def _call(call: Mapping[str, Any], place: str) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = orjson.loads(function["arguments"] or "{}")
    except orjson.JSONDecodeError:
        arguments = None
    if not isinstance(arguments, dict):
        raise Unfit(f"{place}.function.arguments is no JSON object.", f"{place}.function.arguments")
    return {"id": call["id"], "tool": function["name"], "arguments": cast("Any", arguments)}


def _check_order(spoken: Sequence[Spoken]) -> None:
    """Demand that every call has its result right behind it, and that there is something to say."""
    open_calls: set[str] = set()
    for one in spoken:
        if one.role == "tool":
            if one.answers not in open_calls:
                raise _unordered(f"{one.answers[:100]!r} answers no tool call before it")
            open_calls.discard(one.answers)
            continue
        if open_calls:
            raise _unordered(f"the tool call {min(open_calls)[:100]!r} has no answer behind it")
        open_calls = {call["id"] for call in one.calls}
        if len(open_calls) < len(one.calls):
            raise _unordered("two tool calls of one message have the same id")
    if open_calls or not spoken or spoken[-1].role == "agent":
        raise _unordered("the last message is neither the user's nor the results of tool calls")


def _unordered(what: str) -> Unfit:
    return Unfit(
        f"messages makes no conversation: {what}.", "messages", way_out="end with a user message"
    )


def _of_conversation(spoken: Sequence[Spoken], user: str) -> str:
    """Name a session after how it began: what goes on from there is the same conversation."""
    first = next((one.text for one in spoken if one.role == "user"), "")
    return f"chat-{sha256(orjson.dumps([user, first])).hexdigest()[:_DIGEST]}"
