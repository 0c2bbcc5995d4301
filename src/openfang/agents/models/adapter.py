"""Prompts in the words of pydantic-ai, and its answers in ours: this and `opened` know it.

The library asks models and nothing else: our loop makes the calls, our pipeline judges them, and
what providers offer to run on their own side stays off. Importing this module takes seconds: it is
done in a thread, when an agent with a real model is first spoken to.
"""

from __future__ import annotations

import re
import warnings
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import orjson
from anyio import to_thread
from pydantic_ai import messages as ai
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from openfang.agents.compact import size
from openfang.agents.models.characters import MOST, Joined, sound
from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.opened import built
from openfang.agents.models.reasons import address_way_out, by_status, failed, refused_by_us
from openfang.agents.models.wishes import Heard, wishes
from openfang.core.agents import Speaker, Spent, Stop, Usage, Wanted, Words
from openfang.core.errors import OpenFangError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from openfang.agents.models.providers import Endpoint
    from openfang.core.agents import Message, Prompt, Said
    from openfang.core.tools import Tool
    from openfang.host.http import HttpClient

# Which models take no temperature is known to the library, and leaving it out is what we want; what
# it warns of besides are the provider's own words, which belong into no log as they are.
warnings.filterwarnings("ignore", module=r"pydantic(_ai)?\b")
_MOST_MODELS: Final = 64
_MOST_TOKENS: Final = 1_000_000_000
_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_LOST: Final = Trouble.LOST, "could not be reached, or broke off"
_GARBAGE: Final = Trouble.GARBAGE, "answered with what nobody understands"


class Library:
    """Speaks with providers by pydantic-ai; what it has opened it keeps for the next step."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self._models: dict[Endpoint, Model] = {}

    async def sees(self, endpoint: Endpoint) -> bool:
        """Whether a model can be shown pictures, as far as is known."""
        return _sees(await self._model(endpoint))

    async def answer(self, endpoint: Endpoint, prompt: Prompt) -> AsyncGenerator[Said]:
        """Ask one model once; `ModelFailed` if it does not answer."""
        asked = _Asked(await self._model(endpoint), endpoint, prompt)
        stream, failure, told = None, None, False
        try:
            async with asked.opened() as stream, aclosing(asked.heard(stream)) as pieces:
                async for text in pieces:
                    told = True
                    yield Words(text)
        except Exception as error:  # noqa: BLE001 - of a library, and of whoever answers it
            failure = _failure(error, endpoint)
        if failure is None and stream is not None:
            rest = _rest(stream.get(), endpoint, prompt)
        elif told or failure is None or failure.trouble is not Trouble.GARBAGE:
            if stream is not None and stream.usage.output_tokens:
                yield Spent(_usage(stream.get(), endpoint, prompt))
            raise failure or failed(endpoint, *_LOST)
        else:  # perhaps it cannot answer piece by piece
            rest = await asked.whole()
        for said in rest:
            yield said

    async def _model(self, endpoint: Endpoint) -> Model:
        found = self._models.get(endpoint)
        if found is None:
            found = await to_thread.run_sync(built, endpoint, self._http)
            if len(self._models) >= _MOST_MODELS:
                self._models.pop(next(iter(self._models)))
            self._models[endpoint] = found
        return found


class _Asked:
    """One request, in either of two ways: piece by piece, or as a whole."""

    def __init__(self, model: Model, endpoint: Endpoint, prompt: Prompt) -> None:
        self._model = model
        self._endpoint = endpoint
        self._prompt = prompt
        self._request = (
            list(_history(prompt, sees=_sees(model))),
            _settings(endpoint, prompt),
            _parameters(prompt),
        )

    def opened(self) -> AbstractAsyncContextManager[StreamedResponse]:
        return self._model.request_stream(*self._request)

    async def heard(self, stream: StreamedResponse) -> AsyncGenerator[str]:
        """Give the words, piece by piece; a model that does not end is ended."""
        joined = Joined()
        async for event in stream:
            if text := joined.feed(_words(event)):
                yield text
            if joined.length > MOST:
                words = f"does not come to an end: it said {MOST} characters"
                raise failed(self._endpoint, Trouble.GARBAGE, words)
        if half := joined.rest():
            yield half

    async def whole(self) -> list[Said]:
        """Ask without a stream."""
        try:
            response = await self._model.request(*self._request)
        except Exception as error:
            raise _failure(error, self._endpoint) from error
        words = [Words(text)] if (text := _text(response)) else []
        return [*words, *_rest(response, self._endpoint, self._prompt)]


def _settings(endpoint: Endpoint, prompt: Prompt) -> ModelSettings:
    hottest = 1.0 if endpoint.api == "anthropic" else 2.0
    return ModelSettings(max_tokens=prompt.max_tokens, temperature=min(prompt.temperature, hottest))


def _parameters(prompt: Prompt) -> ModelRequestParameters:
    system = [ai.InstructionPart(content=prompt.system)] if prompt.system else []
    return ModelRequestParameters(
        function_tools=[_tool(tool) for tool in prompt.tools], instruction_parts=system
    )


def _tool(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=_sendable(tool.wire_name),
        parameters_json_schema=dict(tool.input_schema),
        description=tool.description,
        strict=False,
    )


def _sendable(name: str) -> str:
    return _UNSENDABLE.sub("_", name)[:64] or "_"


def _history(prompt: Prompt, *, sees: bool) -> Iterator[ai.ModelMessage]:
    """Write the conversation; what comes in between two answers is one request."""
    names: dict[str, str] = {}
    asked: list[ai.ModelRequestPart] = []
    last = max((n for n, one in enumerate(prompt.messages) if _speaks(one)), default=-1)
    for number, message in enumerate(prompt.messages):
        match message.speaker:
            case Speaker.USER:
                asked.append(_said(message, shown=sees and number == last))
            case Speaker.TOOL:
                asked.append(_result(message, names))
            case Speaker.AGENT:
                if asked:
                    yield ai.ModelRequest(parts=asked)
                    asked = []
                names |= {wish.id: wish.tool for wish in message.wishes}
                if parts := list(_answered(message)):
                    yield ai.ModelResponse(parts=parts)
    if asked:
        yield ai.ModelRequest(parts=asked)


def _sees(model: Model) -> bool:
    return bool(model.profile.get("supports_image_input", True))


def _speaks(message: Message) -> bool:
    return message.speaker is Speaker.USER


def _said(message: Message, *, shown: bool) -> ai.UserPromptPart:
    """Write what a person said; pictures are shown once, with the newest message."""
    if not (shown and message.images):
        return ai.UserPromptPart(content=message.text or "(nothing)")
    pictures = [ai.BinaryContent(one.data, media_type=one.media_type) for one in message.images]
    return ai.UserPromptPart(content=[message.text, *pictures] if message.text else pictures)


def _result(message: Message, names: dict[str, str]) -> ai.ToolReturnPart:
    return ai.ToolReturnPart(
        tool_name=_sendable(names.get(message.answers, "")),
        content=message.text,
        tool_call_id=_sendable(message.answers),
        outcome="failed" if message.is_error else "success",
    )


def _answered(message: Message) -> Iterator[ai.ModelResponsePart]:
    if message.text.strip():
        yield ai.TextPart(content=message.text)
    for wish in message.wishes:
        yield ai.ToolCallPart(
            tool_name=_sendable(wish.tool),
            args=orjson.dumps(dict(wish.arguments), default=str).decode(),
            tool_call_id=_sendable(wish.id),
        )


def _words(event: object) -> str:
    match event:
        case ai.PartStartEvent(part=ai.TextPart(content=text)):
            return text
        case ai.PartDeltaEvent(delta=ai.TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _rest(response: ai.ModelResponse, endpoint: Endpoint, prompt: Prompt) -> Iterator[Said]:
    """Give what is known at the end only: a refusal, the calls that are wanted, and the cost."""
    details = response.provider_details or {}
    refusal = sound(str(details.get("refusal") or ""))
    if refusal:
        yield Words(refusal)
    wanted = list(_wanted(response, endpoint, prompt))
    stop = _stop(response)
    if response.finish_reason is None and not details.get("finish_reason"):
        raise failed(endpoint, Trouble.LOST, "broke off in the middle of its answer")
    if stop is Stop.DONE and not wanted and not _text(response):
        raise failed(endpoint, Trouble.LOST, "answered with nothing")
    yield from wanted
    yield Spent(_usage(response, endpoint, prompt), stop)


def _text(response: ai.ModelResponse) -> str:
    said = (part.content for part in response.parts if isinstance(part, ai.TextPart))
    return sound("".join(said))[:MOST]


def _wanted(response: ai.ModelResponse, endpoint: Endpoint, prompt: Prompt) -> Sequence[Wanted]:
    heard = [
        Heard(id=part.tool_call_id, tool=part.tool_name, arguments=part.args)
        for part in response.parts
        if isinstance(part, ai.ToolCallPart)
    ]
    try:
        return [Wanted(wish) for wish in wishes(heard, prompt)]
    except ValueError as error:
        raise failed(endpoint, Trouble.GARBAGE, str(error)) from error


def _stop(response: ai.ModelResponse) -> Stop:
    match response.finish_reason:
        case "length":
            return Stop.LENGTH
        case "content_filter":
            return Stop.REFUSED
        case _:
            return Stop.DONE


def _usage(response: ai.ModelResponse, endpoint: Endpoint, prompt: Prompt) -> Usage:
    """Count what was used: as the provider says, or by the length of what was said."""
    usage = response.usage
    if not usage.total_tokens:
        usage.input_tokens, usage.output_tokens = size(prompt.messages), len(_text(response)) // 4
    usage.input_tokens = min(usage.input_tokens, _MOST_TOKENS)
    usage.output_tokens = min(usage.output_tokens, _MOST_TOKENS)
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=_cost(response, endpoint),
    )


def _cost(response: ai.ModelResponse, endpoint: Endpoint) -> float:
    """Reckon by the list of prices that comes with the library; what is not in it costs nothing."""
    for name in dict.fromkeys((response.model_name, endpoint.model)):
        response.model_name = name
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError):
            continue
    return 0.0


def _failure(error: Exception, endpoint: Endpoint) -> ModelFailed:
    """Say what happened, in our words; what others said is for the log."""
    if isinstance(error, ModelFailed):
        return error
    if (refused := refused_by_us(error)) is not None:
        return ModelFailed(
            f"{endpoint.provider} may not be reached: {refused.message}.",
            trouble=Trouble.ADDRESS,
            way_out=address_way_out(endpoint, refused),
        )
    trouble, words = _trouble(error)
    return failed(endpoint, trouble, words, error)


def _trouble(error: Exception) -> tuple[Trouble, str]:  # noqa: PLR0911 - a table
    match error:
        case ModelAuthenticationError():
            return Trouble.WRONG_KEY, "refused the key"
        case ModelNotFoundError():
            return Trouble.NO_MODEL, "knows no such model"
        case ModelContextWindowExceededError():
            return Trouble.WINDOW, "cannot read so much at once"
        case ModelQuotaExceededError():
            return Trouble.QUOTA, "says that the account is used up"
        case ModelRateLimitError():
            return Trouble.RATE, "says that it was asked too often"
        case ModelServerError() | ModelUnavailableError():
            return Trouble.BUSY, "has an error of its own"
        case ModelHTTPError(status_code=status):
            return by_status(status, str(error))
        case ModelRequestRejectedError() | UserError():
            return Trouble.REJECTED, "did not take the request"
        case ModelAPIError() if not isinstance(error.__cause__, ValueError):
            return _LOST
        case _:
            return _LOST if isinstance(error.__cause__, OpenFangError) else _GARBAGE
