"""Who serves models, and how one is reached: by a table, the node's settings and a choice. Pure.

A key goes to the address that it belongs to. An address that a manifest names gets the key that the
same manifest names, and no other.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Api: TypeAlias = Literal["openai", "anthropic", "google", "library"]
PLANNER: Final = frozenset({"embedded", "planner"})
DEFAULT: Final = "default"
LOCAL: Final = "local"
"""A model file of the operator's, which the node serves itself."""
_OURS: Final = "OPENFANG_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model as somebody names it; what is empty is the provider's own."""

    provider: str = DEFAULT
    model: str = DEFAULT
    api_key_env: str = ""
    base_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What is known of a provider: how it speaks, where it is, and where its key usually is."""

    api: Api = "openai"
    base_url: str = ""
    keys: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What the node says of a provider; `api_key` is the key itself."""

    api: Api | None = None
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = field(default="", repr=False)
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model as it is reached. `key_name` is what a person sets to change the key.

    One that is known not to see is shown no pictures.
    """

    provider: str
    api: Api
    model: str
    base_url: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    allow_private: bool = False
    sees: bool = True


UNSET: Final = Provider()


def _hosted(base_url: str, *keys: str, api: Api = "openai") -> Preset:
    return Preset(api=api, base_url=base_url, keys=keys)


def _local(port: int) -> Preset:
    return Preset(base_url=f"http://127.0.0.1:{port}/v1", local=True)


_GOOGLE: Final = _hosted(
    "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "GOOGLE_API_KEY", api="google"
)
PRESETS: Final[Mapping[str, Preset]] = {
    "openai": _hosted("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": _hosted("https://api.anthropic.com", "ANTHROPIC_API_KEY", api="anthropic"),
    "google": _GOOGLE,
    "gemini": _GOOGLE,
    "alibaba": _hosted(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"
    ),
    "cerebras": _hosted("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": _hosted("https://api.cohere.ai/compatibility/v1", "CO_API_KEY", "COHERE_API_KEY"),
    "deepseek": _hosted("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "fireworks": _hosted("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "github": _hosted("https://models.github.ai/inference", "GITHUB_API_KEY"),
    "groq": _hosted("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "huggingface": _hosted("https://router.huggingface.co/v1", "HF_TOKEN"),
    "mistral": _hosted("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "moonshot": _hosted("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "MOONSHOTAI_API_KEY"),
    "nebius": _hosted("https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    "nvidia": _hosted("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    "openrouter": _hosted("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "perplexity": _hosted("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "sambanova": _hosted("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together": _hosted("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": _hosted("https://api.x.ai/v1", "XAI_API_KEY"),
    "zai": _hosted("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "ollama": _local(11434),
    "lmstudio": _local(1234),
    "llamacpp": _local(8080),
    "vllm": _local(8000),
    "litellm": _local(4000),
    "bedrock": Preset(api="library"),
}


def is_planner(choice: Choice, default: Choice | None) -> bool:
    """Whether the embedded planner is meant: by name, or because the node names nothing else."""
    provider = choice.provider
    if provider == DEFAULT and default is not None:
        provider = default.provider
    return provider in {*PLANNER, DEFAULT}


def settled(choice: Choice, default: Choice | None) -> Choice:
    """Put the node's own choice in the place of what is left to it."""
    if default is None or choice.provider not in {DEFAULT, default.provider}:
        return choice
    own = default if choice.provider == DEFAULT else choice
    model = default.model if choice.model == DEFAULT else choice.model
    return Choice(
        provider=default.provider,
        model=model,
        api_key_env=own.api_key_env,
        base_url=own.base_url,
    )


def is_file(choice: Choice, address: str | None) -> bool:
    """Whether a model file is meant. With an address, `local` is a provider like any other."""
    return choice.provider == LOCAL and not (choice.base_url or address)


def shown(choice: Choice) -> str:
    """Name a model to people; where a file lies is the operator's business."""
    local = choice.provider == LOCAL
    model = choice.model.rpartition("/")[2] if local else choice.model
    return f"{choice.provider}/{model}"


def known(provider: str, providers: Mapping[str, Provider]) -> bool:
    """Whether anybody has said how this provider is reached."""
    return provider in PRESETS or bool(providers.get(provider, UNSET).base_url)


def endpoint(
    choice: Choice, providers: Mapping[str, Provider], variables: Mapping[str, str]
) -> Endpoint:
    """Find out how a model is reached, and with which key."""
    name = choice.provider
    said, preset = providers.get(name, UNSET), PRESETS.get(name, Preset())
    base_url = choice.base_url or said.base_url or preset.base_url
    if not known(name, providers) and not base_url:
        raise ModelFailed(
            f"Nobody has said where the provider {name} is.",
            trouble=Trouble.ADDRESS,
            way_out=f"[providers.{name}] base_url in the configuration",
        )
    if choice.model == DEFAULT:
        raise ModelFailed(
            f"No model of {name} is named.", trouble=Trouble.NO_MODEL, way_out="[model] model"
        )
    key, key_name = _key(choice, said, preset, variables)
    own_place = preset.local and base_url == preset.base_url
    return Endpoint(
        provider=name,
        api=said.api or preset.api,
        model=choice.model,
        base_url=base_url,
        key=key,
        key_name=key_name,
        allow_private=said.allow_private or own_place,
    )


def _key(
    choice: Choice, said: Provider, preset: Preset, variables: Mapping[str, str]
) -> tuple[str, str]:
    """Give the key, and the name under which a person sets it."""
    if choice.api_key_env:
        return _named(choice, choice.api_key_env, variables), choice.api_key_env
    if choice.base_url and choice.base_url != (said.base_url or preset.base_url):
        return "", ""
    if said.api_key:
        return said.api_key, f"[providers.{choice.provider}] api_key"
    if said.api_key_env:
        return _named(choice, said.api_key_env, variables), said.api_key_env
    if said.base_url and said.base_url != preset.base_url:
        return "", ""
    found = next((name for name in preset.keys if variables.get(name)), None)
    if found is None and preset.keys:
        raise _no_key(choice.provider, preset.keys[0])
    return (variables[found], found) if found else ("", "")


def _named(choice: Choice, name: str, variables: Mapping[str, str]) -> str:
    if name.startswith(_OURS):
        raise ModelFailed(
            f"{name} is the node's own, and goes to no provider.",
            trouble=Trouble.NO_KEY,
            way_out="another api_key_env",
        )
    key = variables.get(name)
    if not key:
        raise _no_key(choice.provider, name)
    return key


def _no_key(provider: str, name: str) -> ModelFailed:
    return ModelFailed(
        f"{provider} needs a key, and {name} is not set.",
        trouble=Trouble.NO_KEY,
        way_out=f"set {name}, or openfang secrets set {name}",
    )
