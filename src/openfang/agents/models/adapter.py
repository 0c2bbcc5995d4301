"""The one file that knows pydantic-ai: prompts in its words, its answers in ours.

The library asks models and nothing else: our loop makes the calls, our pipeline judges them, and
what providers offer to run on their own side stays off. Importing this module takes seconds: it is
done in a thread, when an agent with a real model is first spoken to.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, Final

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
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.reasons import by_status, failed, refused_by_us
from openfang.agents.models.wire import Wire
from openfang.agents.models.wishes import Heard, wishes
from openfang.core.agents import Speaker, Spent, Stop, Usage, Wanted, Words
from openfang.core.errors import OpenFangError
from openfang.host.bridged import Bounds
from openfang.host.httpx2_bridge import bridged2

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from openfang.agents.models.providers import Endpoint
    from openfang.core.agents import Message, Prompt, Said
    from openfang.core.tools import Tool
    from openfang.host.http import HttpClient

# Which models take no temperature is known to the library, and leaving it out is what we want.
warnings.filterwarnings("ignore", message="Sampling parameters", category=UserWarning)
_SECONDS: Final = 600.0
_BYTES: Final = 4_000_000
_MOST_MODELS: Final = 64
_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_LOST: Final = Trouble.LOST, "could not be reached, or broke off"
_GARBAGE: Final = Trouble.GARBAGE, "answered with what nobody understands"
_HELD: Final = "held-by-the-node"
"""In the place of a key: the libraries want one, and the wire puts in the right one."""


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
            async with asked.opened() as stream:
                async for event in stream:
                    if text := _words(event):
                        told = True
                        yield Words(text)
        except Exception as error:  # noqa: BLE001 - of a library, and of whoever answers it
            failure = _failure(error, endpoint)
        if failure is None and stream is not None:
            rest = _rest(stream.get(), endpoint, prompt)
        elif told or failure is None or failure.trouble is not Trouble.GARBAGE:
            if stream is not None and stream.usage.output_tokens:
                yield Spent(_usage(stream.get(), endpoint))
            raise failure or failed(endpoint, *_LOST)
        else:  # perhaps it cannot answer piece by piece
            rest = await asked.whole()
        for said in rest:
            yield said

    async def _model(self, endpoint: Endpoint) -> Model:
        found = self._models.get(endpoint)
        if found is None:
            found = await to_thread.run_sync(_built, endpoint, self._http)
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

    async def whole(self) -> list[Said]:
        """Ask without a stream."""
        try:
            response = await self._model.request(*self._request)
        except Exception as error:
            raise _failure(error, self._endpoint) from error
        words = [Words(text)] if (text := _text(response)) else []
        return [*words, *_rest(response, self._endpoint, self._prompt)]


def _built(endpoint: Endpoint, http: HttpClient) -> Model:
    """Put a client together. Blocks: prices and types are read."""
    try:
        return _client(endpoint, Wire(http, endpoint))
    except ImportError as error:
        raise ModelFailed(
            f"The provider {endpoint.provider} needs a package that is not installed.",
            trouble=Trouble.MISSING,
            way_out=f'pip install "pydantic-ai-slim[{endpoint.provider}]"',
            detail=str(error),
        ) from error
    except UserError as error:
        raise failed(endpoint, Trouble.REJECTED, "cannot be asked", error) from error


def _client(endpoint: Endpoint, wire: Wire) -> Model:
    http = bridged2(wire.open, Bounds(seconds=_SECONDS, limit=_BYTES))
    match endpoint.api:
        case "anthropic":
            from anthropic import AsyncAnthropic  # noqa: PLC0415 - one of three
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            root = endpoint.base_url.rstrip("/").removesuffix("/v1")
            client = AsyncAnthropic(api_key=_HELD, base_url=root, http_client=http, max_retries=0)
            provider = AnthropicProvider(anthropic_client=client)
            return AnthropicModel(endpoint.model, provider=provider, profile=_plain())
        case "google":
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - one of three
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

            root = endpoint.base_url.rstrip("/")
            return GoogleModel(
                endpoint.model,
                provider=GoogleProvider(api_key=_HELD, base_url=root, http_client=http),
            )
        case "library":
            return infer_model(f"{endpoint.provider}:{endpoint.model}")
        case "openai":
            return _openai(endpoint, http)


def _openai(endpoint: Endpoint, http: Any) -> Model:  # noqa: ANN401 - of httpx2
    from openai import AsyncOpenAI  # noqa: PLC0415 - one of three
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    root = endpoint.base_url.rstrip("/")
    client = AsyncOpenAI(api_key=_HELD, base_url=root, http_client=http, max_retries=0)
    provider = (
        OpenAIProvider(openai_client=client)
        if endpoint.provider == "openai"
        else OpenAICompatibleProvider(endpoint.provider, openai_client=client)
    )
    return OpenAIChatModel(endpoint.model, provider=provider, profile=_plain(sees=endpoint.sees))


def _plain(*, sees: bool = True) -> OpenAIModelProfile:
    """Schemas go out as they are, and a stream without an end is no answer."""
    plain = OpenAIModelProfile(
        json_schema_transformer=None, openai_chat_streaming_requires_finish_reason=True
    )
    if not sees:
        plain["supports_image_input"] = False
    return plain


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
    refusal = str(details.get("refusal") or "")
    if refusal:
        yield Words(refusal)
    wanted = list(_wanted(response, endpoint, prompt))
    stop = _stop(response)
    if response.finish_reason is None and not details.get("finish_reason"):
        raise failed(endpoint, Trouble.LOST, "broke off in the middle of its answer")
    if stop is Stop.DONE and not wanted and not _text(response):
        raise failed(endpoint, Trouble.LOST, "answered with nothing")
    yield from wanted
    yield Spent(_usage(response, endpoint), stop)


def _text(response: ai.ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, ai.TextPart))


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


def _usage(response: ai.ModelResponse, endpoint: Endpoint) -> Usage:
    usage = response.usage
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
            way_out=f"[providers.{endpoint.provider}] allow_private, if that is meant",
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
