"""One request to the fixture server, and how to speak to whoever sent it while it is served.

A client of the older era is asked by requests of their own, a newer one by an `input_required`
result: then the call is made again with the answers, and starts from its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tests.conformance.served.world import Context, Json, World

LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)
# What a client must be able to do, and what it then answers with.
ASKED: Final[Mapping[str, tuple[str, type[types.Result]]]] = {
    "sampling/createMessage": ("sampling", types.CreateMessageResult),
    "elicitation/create": ("elicitation", types.ElicitResult),
    "roots/list": ("roots", types.ListRootsResult),
}


class InputRequired(Exception):  # noqa: N818 - a turn of the conversation, not an error
    """The call cannot go on without answers."""

    def __init__(self, questions: Json, state: str | None) -> None:
        super().__init__(sorted(questions))
        self.result: Json = {"resultType": "input_required", "inputRequests": questions}
        if state is not None:
            self.result["requestState"] = state


def elicitation(message: str, fields: Json, *, required: bool = True) -> Json:
    """Ask a person to fill in a form."""
    wanted: Json = {"type": "object", "properties": fields}
    if required:
        wanted["required"] = list(fields)
    params = {"mode": "form", "message": message, "requestedSchema": wanted}
    return {"method": "elicitation/create", "params": params}


def sampling(text: str, tokens: int = 100) -> Json:
    """Ask a model to go on."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    params = {"messages": [message], "maxTokens": tokens}
    return {"method": "sampling/createMessage", "params": params}


def roots() -> Json:
    """Ask which folders the client works in."""
    return {"method": "roots/list", "params": {}}


def filled(answer: Json) -> str:
    """Tell what a person did with a form."""
    return f"{answer['action']} {json.dumps(form(answer), sort_keys=True)}"


def form(answer: Json) -> Json:
    """Give what a person has written into it."""
    return answer.get("content") or {}


def written(answer: Json) -> str:
    """Tell what a model has written."""
    content: Json = answer["content"]
    return str(content.get("text", ""))


@dataclass(frozen=True, slots=True)
class Turn:
    """A request that is being served."""

    ctx: Context
    arguments: Json
    settled: Json = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, ctx: Context) -> Turn:
        """Begin, or go on from what the state says was answered before."""
        params = ctx.params or {}
        state = params.get("requestState")
        return cls(ctx, params.get("arguments") or {}, json.loads(state) if state else {})

    @property
    def world(self) -> World:
        return self.ctx.lifespan_context

    @property
    def modern(self) -> bool:
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    # Asking

    def can(self, question: Json) -> bool:
        """Whether the client has said that it answers such a thing."""
        name, _ = ASKED[question["method"]]
        return getattr(self.ctx.session.client_capabilities, name, None) is not None

    async def ask(self, questions: Json, *, sealed: bool = False) -> Json:
        """Ask, and give the answers by the keys of the questions.

        What is sealed has to be answered with the state that went out beside the questions.
        """
        self._require(questions)
        if self.modern:
            return self._answers(questions, sealed=sealed)
        return {key: await self._request(question) for key, question in questions.items()}

    def _require(self, questions: Json) -> None:
        lacking = {ASKED[one["method"]][0] for one in questions.values() if not self.can(one)}
        if not lacking:
            return
        code = types.MISSING_REQUIRED_CLIENT_CAPABILITY if self.modern else types.INVALID_REQUEST
        message = f"The client did not declare {', '.join(sorted(lacking))}"
        raise MCPError(code, message, {"requiredCapabilities": {name: {} for name in lacking}})

    def _answers(self, questions: Json, *, sealed: bool) -> Json:
        params = self.ctx.params or {}
        given: Json = params.get("inputResponses") or {}
        if sealed and given and params.get("requestState") is None:
            raise MCPError(types.INVALID_PARAMS, "The answers came without the state of their call")
        self.settled.update({key: given[key] for key in questions if key in given})
        missing = {key: one for key, one in questions.items() if key not in self.settled}
        if missing:
            raise InputRequired(missing, self._state(sealed=sealed))
        return {key: self.settled[key] for key in questions}

    def _state(self, *, sealed: bool) -> str | None:
        return json.dumps(self.settled) if self.settled or sealed else None

    async def _request(self, question: Json) -> Json:
        request = types.server_request_adapter.validate_python(question)
        _, expected = ASKED[question["method"]]
        about = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        answer = await self.ctx.session.send_request(request, expected, metadata=about)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    # Telling

    async def tell(self, progress: float, total: float) -> None:
        """Say how far it is, if that was wanted."""
        await self.ctx.session.report_progress(progress, total)

    async def log(self, level: types.LoggingLevel, text: str) -> None:
        """Say what happens, if that was wanted."""
        if level in self._levels():
            entry = types.LoggingMessageNotificationParams(level=level, logger="fixture", data=text)
            message = types.LoggingMessageNotification(params=entry)
            await self.ctx.session.send_notification(message, self.ctx.request_id)

    def _levels(self) -> Collection[types.LoggingLevel]:
        if self.modern:
            return allowed_log_levels(self.ctx.protocol_version, self.ctx.meta)
        return LEVELS[LEVELS.index(self.world.peer(self.ctx).level) :]
