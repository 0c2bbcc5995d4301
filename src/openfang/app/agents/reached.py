"""How a model is reached: by the configuration, somebody's choice and what names stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.providers import Choice, Endpoint, Provider, endpoint
from openfang.core.values import dataclass
from openfang.safety.environment import VariableRefused, expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.config.llm import DefaultModel, ModelProvider
    from openfang.config.manifest_parts import FallbackModel
    from openfang.config.manifest_parts import Model as ManifestModel
    from openfang.config.models import Config
    from openfang.host.secrets import SecretStore


@dataclass(frozen=True, slots=True)
class Variables(Mapping[str, str]):
    """What a name stands for: a variable of ours, else a secret, which is opened when asked for."""

    environ: Mapping[str, str]
    store: SecretStore

    def __getitem__(self, name: str) -> str:
        if name in self.environ:
            return self.environ[name]
        if name not in self.store.names():
            raise KeyError(name)
        return self.store.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter({*self.environ, *self.store.names()})

    def __len__(self) -> int:
        return len({*self.environ, *self.store.names()})


def chosen(model: DefaultModel | ManifestModel | FallbackModel) -> Choice:
    """Read what a file chooses."""
    return Choice(
        provider=model.provider,
        model=model.model,
        api_key_env=model.api_key_env or "",
        base_url=model.base_url or "",
    )


def said_of(config: Config, provider: str) -> ModelProvider:
    """What the configuration says of a provider."""
    from openfang.config.llm import ModelProvider  # noqa: PLC0415 - where it is needed

    return config.providers.get(provider) or ModelProvider()


def reached(choice: Choice, said: ModelProvider, variables: Mapping[str, str]) -> Endpoint:
    """Say how a model is reached, now; `ModelFailed` if it cannot be."""
    return endpoint(choice, {choice.provider: _provider(said, choice, variables)}, variables)


def _provider(said: ModelProvider, choice: Choice, variables: Mapping[str, str]) -> Provider:
    key = ""
    if said.api_key is not None:
        try:
            key = expand(said.api_key.get_secret_value(), variables)
        except VariableRefused as refused:
            raise ModelFailed(
                f"{choice.provider} needs a key: {refused.message}.",
                trouble=Trouble.NO_KEY,
                way_out="openfang secrets set, with that name",
            ) from refused
    return Provider(
        api=said.api,
        base_url=said.base_url or "",
        api_key_env=said.api_key_env or "",
        api_key=key,
        allow_private=said.allow_private,
    )
