"""`[default_model]` and `[providers.NAME]`: what agents think with, and how it is reached."""

from typing import Annotated, Literal

from pydantic import Field

from openfang.config.fields import SecretLine, Section, Text, Url, Variable

Retries = Annotated[int, Field(ge=0, le=10)]
Window = Annotated[int, Field(ge=256, le=10_000_000)]
Threads = Annotated[int, Field(ge=0, le=1024)]
PerMinute = Annotated[int, Field(ge=0, le=1_000_000)]


class DefaultModel(Section):
    """The model of agents whose manifest leaves it to the node."""

    provider: Text = Field(
        default="planner",
        description="Who serves the model; `planner` is the embedded one, which needs nothing.",
    )
    model: Text = Field(default="default", description="The model's name, as its provider says it.")
    api_key_env: Variable | None = Field(
        default=None, description="The variable or secret that holds the key; unset: the usual."
    )
    base_url: Url | None = Field(
        default=None, description="The provider's address; unset means its usual one."
    )


class ModelProvider(Section):
    """Who serves models, and how it is reached. What is unset is as usual for that name."""

    api: Literal["openai", "anthropic", "google"] | None = Field(
        default=None, description="Which format it speaks; unset: as its name says, else `openai`."
    )
    base_url: Url | None = Field(
        default=None, description="Its address; unset means the usual one of that name."
    )
    api_key_env: Variable | None = Field(
        default=None, description="The variable or secret that holds the key; unset: the usual."
    )
    api_key: SecretLine | None = Field(default=None, description="The key; `${NAME}` expands.")
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    retries: Retries = Field(
        default=3, description="Times that it is asked again after a failure that may pass."
    )
    requests_per_minute: PerMinute = Field(
        default=0, description="Requests in a minute, of all agents; more wait. 0 is no bound."
    )
    context_window: Window = Field(
        default=8192, description="Tokens that a model file can read at once; of `local` alone."
    )
    threads: Threads = Field(
        default=0, description="Cores for a model file, of `local` alone; 0: all but one."
    )
