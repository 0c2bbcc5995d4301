"""OpenStarry's `agent.json`: its own keys, strictly, and the manifest that says the same."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from openfang.config.fields import Count, Glob, Section, Text
from openfang.config.manifest_models import Manifest
from openfang.config.manifest_parts import (
    DEFAULT,
    MIB,
    AgentName,
    BoundPolicy,
    Bytes,
    Mcp,
    Milliseconds,
    PluginRef,
    Safety,
    Temperature,
    Whole,
)


class CamelSection(Section):
    """A section whose keys are written as that file writes them."""

    model_config = ConfigDict(alias_generator=to_camel)


class Identity(CamelSection):
    """Who the agent is."""

    id: AgentName = Field(description="The agent's name, and that of its folder.")
    name: Text | None = Field(
        default=None, description="How people call it; unset means by its id."
    )
    description: str = Field(default="", description="What the agent is for, as others read it.")
    version: Text = Field(default="0.1.0", description="The manifest's version.")


class Cognition(CamelSection):
    """What the agent thinks with."""

    provider: str = Field(
        default="", description="Who serves the model; empty is the node's own choice."
    )
    model: str = Field(default="", description="The model's name; empty is the node's own choice.")
    temperature: Temperature = Field(default=0.7, description="How freely words are chosen.")
    max_tokens: Count = Field(default=4096, description="Tokens of one answer.")
    max_tool_rounds: Count = Field(default=50, description="Times that the model is asked again.")


class StarryCapabilities(CamelSection):
    """What the agent may reach."""

    tools: tuple[Glob, ...] = Field(
        default=(), description="Tools by id or wire name; `*` stands for anything."
    )
    allowed_paths: tuple[Text, ...] = Field(
        default=(), description="Folders that it may reach beside its workspace."
    )


class StarryPolicy(BoundPolicy):
    """Limits of tools and model, and what the gates read of this agent."""

    model_config = ConfigDict(alias_generator=to_camel)

    max_concurrent_tools: Count | None = Field(
        default=None, description="Tool calls at the same time; unset means the node's bound."
    )
    tool_timeout: Milliseconds | None = Field(
        default=None, description="How long one tool call may take, in milliseconds."
    )
    llm_timeout: Milliseconds = Field(
        default=120_000, description="How long the model may think, in milliseconds."
    )
    path_restrictions: tuple[Text, ...] = Field(
        default=(), description="Paths that stay closed, whatever else is granted."
    )


class Memory(CamelSection):
    """What the model sees of a conversation."""

    sliding_window_size: Whole = Field(
        default=20, description="Messages of a conversation that the model sees."
    )


class StarrySafety(Safety):
    """When a run that goes wrong is warned, asked about and stopped."""

    model_config = ConfigDict(alias_generator=to_camel)


class Sandbox(CamelSection):
    """Bounds of the processes that run for the agent."""

    memory_limit_mb: Annotated[int, Field(gt=0, le=1 << 20)] = Field(
        default=256, description="Memory of all processes, in MiB."
    )
    rpc_timeout_ms: Milliseconds = Field(
        default=30_000, description="How long a plugin may take to answer, in milliseconds."
    )
    cpu_timeout_ms: Milliseconds = Field(
        default=30_000, description="Processor time of each process, in milliseconds."
    )


class StarryCommunication(CamelSection):
    """Messages between this agent and the others. Nothing, unless it is listed."""

    can_send_to: tuple[Glob, ...] = Field(default=(), description="Agents that it may call.")
    can_receive_from: tuple[Glob, ...] = Field(
        default=(), description="Agents whose messages it takes."
    )
    exposed_tools: tuple[Glob, ...] = Field(
        default=(), description="Tools that other agents of the node may call."
    )
    max_message_size: Bytes = Field(default=MIB, description="The largest message, in bytes.")
    event_subscriptions: tuple[Glob, ...] = Field(
        default=(), description="Events that are passed on to it."
    )
    timeout_ms: Milliseconds = Field(
        default=30_000, description="How long an answer is waited for, in milliseconds."
    )
    max_retries: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Times that a message is sent again."
    )
    grace_period_ms: Annotated[int, Field(ge=0, le=300_000)] = Field(
        default=30_000, description="Time to finish before it is ended, in milliseconds."
    )


class StarryFile(CamelSection):
    """The whole file."""

    identity: Identity = Field(description="Who the agent is.")
    cognition: Cognition = Field(default=Cognition(), description="What the agent thinks with.")
    capabilities: StarryCapabilities = Field(
        default=StarryCapabilities(), description="What the agent may reach."
    )
    policy: StarryPolicy = Field(
        default=StarryPolicy(), description="Limits, and what the gates read of this agent."
    )
    memory: Memory = Field(default=Memory(), description="What the model sees of a conversation.")
    plugins: tuple[PluginRef, ...] = Field(
        default=(), description="Plugins that bring the agent tools."
    )
    guide: Text | None = Field(
        default=None, description="The plugin's guide that adds to the system prompt."
    )
    safety: StarrySafety = Field(
        default=StarrySafety(), description="When a failing run is stopped."
    )
    sandbox: Sandbox = Field(default=Sandbox(), description="Bounds of its processes.")
    communication: StarryCommunication = Field(
        default=StarryCommunication(), description="Messages between agents."
    )
    mcp: Mcp = Field(default=Mcp(), description="What others see over MCP.")


def to_manifest(file: StarryFile) -> Manifest:
    """Say the same in our words."""
    identity, policy = file.identity, file.policy
    data: dict[str, Any] = {
        "name": identity.id,
        "title": identity.name,
        "description": identity.description,
        "version": identity.version,
        "max_history_messages": file.memory.sliding_window_size,
        "guide": file.guide,
        "model": _model(file.cognition),
        "capabilities": {
            "tools": file.capabilities.tools,
            "agent_message": file.communication.can_send_to,
            "paths": file.capabilities.allowed_paths,
            "deny_paths": policy.path_restrictions,
        },
        "policy": policy.model_dump(include={"mode", "project", "spec", "blacklist"}),
        "mcp": file.mcp,
        "limits": _limits(file),
        "resources": {
            "max_memory_bytes": file.sandbox.memory_limit_mb * MIB,
            "max_cpu_time_ms": file.sandbox.cpu_timeout_ms,
        },
        "safety": Safety(**file.safety.model_dump()),
        "communication": _communication(file.communication),
        "plugins": file.plugins,
    }
    return Manifest.model_validate(data)


def _model(cognition: Cognition) -> dict[str, Any]:
    return {
        "provider": cognition.provider or DEFAULT,
        "model": cognition.model or DEFAULT,
        "temperature": cognition.temperature,
        "max_tokens": cognition.max_tokens,
    }


def _limits(file: StarryFile) -> dict[str, Any]:
    tool = file.policy.tool_timeout
    return {
        "tool_rounds": file.cognition.max_tool_rounds,
        "tools_at_once": file.policy.max_concurrent_tools,
        "tool_timeout_secs": None if tool is None else tool / 1000,
        "model_timeout_secs": file.policy.llm_timeout / 1000,
        "plugin_timeout_secs": file.sandbox.rpc_timeout_ms / 1000,
    }


def _communication(section: StarryCommunication) -> dict[str, Any]:
    return {
        "receive_from": section.can_receive_from,
        "expose_tools": section.exposed_tools,
        "max_message_bytes": section.max_message_size,
        "events": section.event_subscriptions,
        "timeout_secs": section.timeout_ms / 1000,
        "max_retries": section.max_retries,
        "grace_secs": section.grace_period_ms / 1000,
    }
