"""The clients of the three formats, put together: each sends by our one way, and holds no key.

Importing this module takes seconds, as that of the libraries does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.profiles.openai import OpenAIModelProfile

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.reasons import failed
from openfang.agents.models.wire import Wire
from openfang.host.bridged import Bounds
from openfang.host.httpx2_bridge import bridged2

if TYPE_CHECKING:
    from openfang.agents.models.providers import Endpoint
    from openfang.host.http import HttpClient

_SECONDS: Final = 600.0
_BYTES: Final = 4_000_000
_HELD: Final = "held-by-the-node"
"""In the place of a key: the libraries want one, and the wire puts in the right one."""


def built(endpoint: Endpoint, http: HttpClient) -> Model:
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
