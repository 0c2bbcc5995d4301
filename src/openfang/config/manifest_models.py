"""An agent as one model, whichever file describes it; the keys are those of `agent.toml`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from openfang.config.agents import Sandbox
from openfang.config.builtins import canonical
from openfang.config.fields import Section, Text, meaning, resolved
from openfang.config.manifest_parts import (
    AgentName,
    Autonomous,
    BoundPolicy,
    Capabilities,
    Communication,
    FallbackModel,
    InstallOrAll,
    Mcp,
    Model,
    Module,
    NameOrAll,
    PluginRef,
    Requirement,
    Resources,
    Routing,
    RunLimits,
    Safety,
    Whole,
)
from openfang.config.manifest_schedules import Scheduled
from openfang.config.profiles import PROFILES, ProfileName
from openfang.core.calls import Grants
from openfang.core.ids import Kind, tool_id

_PRIORITIES = {word.capitalize(): word for word in ("low", "normal", "high", "critical")}


def _priority(word: object) -> object:
    return _PRIORITIES.get(word, word) if isinstance(word, str) else word


Priority = Annotated[
    Literal["low", "normal", "high", "critical"],
    BeforeValidator(_priority),
    WithJsonSchema({"type": "string", "enum": [*_PRIORITIES.values(), *_PRIORITIES]}),
]
Interpreter = Annotated[
    str,
    Field(
        pattern=r"^(3\.[0-9]{1,2}|/[^\x00]+)$",
        json_schema_extra=meaning("a version such as 3.12, or an absolute path"),
    ),
]
Workspace = Annotated[Text, AfterValidator(resolved)]


class Manifest(Section):
    """Who an agent is, what it thinks with, what it may reach and what it shows to others."""

    name: AgentName = Field(description="The agent's name, and that of its folder.")
    title: Text | None = Field(
        default=None, description="How people call it; unset means by its name."
    )
    version: Text = Field(default="0.1.0", description="The manifest's version.")
    description: str = Field(default="", description="What the agent is for, as others read it.")
    author: str = Field(default="", description="Who wrote the manifest.")
    module: Module = Field(
        default="builtin:chat",
        description="What runs: the loop of a model, or a program of the agent's folder.",
    )
    python: Interpreter | None = Field(
        default=None,
        description="The Python of such a program, by version or path; unset means ours.",
    )
    requirements: tuple[Requirement, ...] = Field(
        default=(), description="The packages of such a program, in an environment of its own."
    )
    sandbox: Sandbox | None = Field(
        default=None,
        description="How such a program is confined; unset means as `agents.sandbox` says.",
    )
    tags: tuple[Text, ...] = Field(default=(), description="Words by which the agent is found.")
    schedule: Scheduled = Field(
        default="reactive", description="When it runs: when it is asked, or by itself."
    )
    priority: Priority = Field(
        default="normal", description="Whose turn comes first where agents wait."
    )
    profile: ProfileName | None = Field(
        default=None,
        description="A set of grants; each key of `capabilities` that is written replaces its own.",
    )
    skills: tuple[InstallOrAll, ...] = Field(
        default=(), description="Skills and extensions, all of whose tools are granted."
    )
    mcp_servers: tuple[NameOrAll, ...] = Field(
        default=(), description="MCP servers, all of whose tools are granted."
    )
    workspace: Workspace | None = Field(
        default=None, description="Its folder; unset means one of its own under the home."
    )
    published: bool = Field(
        default=False, description="Whether its card can be read without a key."
    )
    allow_reentry: bool = Field(
        default=False, description="Whether it may be called while it waits in the same chain."
    )
    max_history_messages: Whole = Field(
        default=20, description="Messages of a conversation that the model sees."
    )
    guide: Text | None = Field(
        default=None, description="The plugin's guide that adds to the system prompt."
    )
    model: Model = Field(default=Model(), description="What the agent thinks with.")
    fallback_models: tuple[FallbackModel, ...] = Field(
        default=(), description="Models that are asked in turn when the first cannot answer."
    )
    capabilities: Capabilities = Field(
        default=Capabilities(), description="What the agent may reach."
    )
    policy: BoundPolicy = Field(
        default=BoundPolicy(), description="What the gates read of this agent."
    )
    mcp: Mcp = Field(default=Mcp(), description="What others see over MCP.")
    limits: RunLimits = Field(default=RunLimits(), description="What one run may take.")
    resources: Resources = Field(default=Resources(), description="What it may use up.")
    autonomous: Autonomous | None = Field(
        default=None, description="Going on without being asked; unset means not."
    )
    routing: Routing | None = Field(
        default=None, description="A choice of models; unset means always the same."
    )
    safety: Safety = Field(default=Safety(), description="When a failing run is stopped.")
    communication: Communication = Field(
        default=Communication(), description="Messages between agents."
    )
    plugins: tuple[PluginRef, ...] = Field(
        default=(), description="Plugins that bring the agent tools."
    )

    def granted(self) -> Capabilities:
        """Give what the profile grants, save where the manifest says it itself."""
        if self.profile is None:
            return self.capabilities
        own = self.capabilities
        written = {key: getattr(own, key) for key in own.model_fields_set}
        return PROFILES[self.profile].model_copy(update=written)

    def grants(self) -> Grants:
        """Say the same in the words of the pipeline; servers and skills are tools there."""
        granted = self.granted()
        return Grants(
            tools=(
                *map(canonical, granted.tools),
                *(tool_id(Kind.MCP, name, "*") for name in self.mcp_servers),
                *(tool_id(Kind.EXTENSION, name, "*") for name in self.skills),
            ),
            network=granted.network,
            shell=granted.shell,
            memory_read=granted.memory_read,
            memory_write=granted.memory_write,
            agents=granted.agent_message,
            agent_spawn=granted.agent_spawn,
            agent_kill=granted.agent_kill,
            closed=granted.deny_paths,
        )
