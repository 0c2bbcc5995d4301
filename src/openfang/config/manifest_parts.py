"""The sections of a manifest: what an agent thinks with, may reach, spends and shows to others."""

from contextlib import suppress
from datetime import UTC
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from openfang.config.fields import (
    Count,
    Dollars,
    Glob,
    Seconds,
    Section,
    TagName,
    Text,
    Url,
    Variable,
    meaning,
)
from openfang.core.errors import Rejected

MIB = 1024 * 1024
DEFAULT = "default"

Bytes = Annotated[int, Field(ge=1, le=1 << 40)]
Milliseconds = Annotated[int, Field(gt=0, le=86_400_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Whole = Annotated[int, Field(ge=0, le=1_000_000_000)]
AgentName = Annotated[
    str,
    Field(
        # With `openfang_agent_` before it this fits a wire name, which an agent never changes.
        max_length=49,
        pattern=r"^[a-z0-9][a-z0-9_-]*$",
        json_schema_extra=meaning("a name of lower-case letters, digits, - and _"),
    ),
]
NameOrAll = Annotated[
    str,
    Field(
        pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9_-]*)$",
        json_schema_extra=meaning('a name of letters, digits, - and _, or "*"'),
    ),
]


InstallOrAll = Annotated[
    str,
    Field(
        pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._-]*)$",
        json_schema_extra=meaning('a name of letters, digits, ., - and _, or "*"'),
    ),
]


def _no_archive(requirement: str) -> str:
    if requirement.lower().endswith(_ARCHIVES):
        raise PydanticCustomError("expected", "a package by its name, and no file")
    return requirement


_ARCHIVES = (".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".egg")
_VERSION = r"(===?|~=|!=|<=|>=|<|>) *[A-Za-z0-9.*+!_-]+"
Requirement = Annotated[
    str,
    Field(
        # From where the operator's installer takes packages: an address or a folder would be code
        # of somebody else's choosing, and what starts with a dash an option of the installer.
        pattern=(
            r"^[A-Za-z0-9][A-Za-z0-9._-]*( *\[[A-Za-z0-9._, -]*\])?"
            rf"( *{_VERSION}( *, *{_VERSION})*)?"
            r"""( *; *[A-Za-z0-9_.,<>=!~'" ()-]+)?$"""
        ),
        json_schema_extra=meaning("a package, such as name==1.2"),
    ),
    AfterValidator(_no_archive),
]


def _inside(path: str) -> str:
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise PydanticCustomError("expected", "a path inside the agent's folder, without ..")
    return path


def _module(module: str) -> str:
    kind, _, path = module.partition(":")
    if kind == "python":
        _inside(path.partition(":")[0])
    return module


InnerPath = Annotated[Text, AfterValidator(_inside)]
Module = Annotated[
    str,
    Field(
        pattern=r"^(builtin:chat|python:[^:\x00]+\.py(:[A-Za-z_][A-Za-z0-9_]*)?)$",
        json_schema_extra=meaning("builtin:chat, python:FILE.py or python:FILE.py:FUNCTION"),
    ),
    AfterValidator(_module),
]


class Model(Section):
    """What the agent thinks with."""

    provider: Text = Field(
        default=DEFAULT, description="Who serves the model; `default` is the node's own choice."
    )
    model: Text = Field(
        default=DEFAULT, description="The model's name; `default` is the node's own choice."
    )
    max_tokens: Count = Field(default=4096, description="Tokens of one answer.")
    context_window: Count = Field(
        default=100_000, description="Tokens that it is given to read; older turns are shortened."
    )
    temperature: Temperature = Field(default=0.7, description="How freely words are chosen.")
    system_prompt: str = Field(default="", description="What the model is told first.")
    untrusted: Literal["shown", "handles"] = Field(
        default="shown",
        description="Results from outside: shown at once, or as handles until it asks for one.",
    )
    api_key_env: Variable | None = Field(
        default=None, description="The variable that holds the provider's key."
    )
    base_url: Url | None = Field(
        default=None, description="The provider's address; unset means its usual one."
    )


class FallbackModel(Section):
    """A model that is asked when the one before it cannot answer."""

    provider: Text = Field(description="Who serves the model.")
    model: Text = Field(description="The model's name.")
    api_key_env: Variable | None = Field(
        default=None, description="The variable that holds the provider's key."
    )
    base_url: Url | None = Field(
        default=None, description="The provider's address; unset means its usual one."
    )


class Resources(Section):
    """What the agent may use up; for money and tokens 0 means no bound of its own."""

    max_memory_bytes: Bytes = Field(
        default=256 * MIB, description="Memory of all processes that run for the agent."
    )
    max_cpu_time_ms: Milliseconds = Field(
        default=30_000, description="Processor time of each such process, in milliseconds."
    )
    max_tool_calls_per_minute: Count = Field(default=60, description="Tool calls in a minute.")
    max_llm_tokens_per_hour: Whole = Field(default=0, description="Tokens in an hour.")
    max_network_bytes_per_hour: Bytes = Field(
        default=100 * MIB, description="Bytes over the network in an hour."
    )
    max_cost_per_hour_usd: Dollars = Field(default=0, description="US dollars in an hour.")
    max_cost_per_day_usd: Dollars = Field(default=0, description="US dollars in a day.")
    max_cost_per_month_usd: Dollars = Field(default=0, description="US dollars in a month.")


class Capabilities(Section):
    """What the agent may reach. What is not granted stays closed; `"*"` must be written."""

    tools: tuple[Glob, ...] = Field(
        default=(), description="Tools by id or wire name; `*` stands for anything."
    )
    network: tuple[Glob, ...] = Field(
        default=(), description="Hosts, or `host:port`, that tools may reach for the agent."
    )
    memory_read: tuple[Glob, ...] = Field(default=(), description="Memory keys it may recall.")
    memory_write: tuple[Glob, ...] = Field(default=(), description="Memory keys it may store.")
    memory_shared: bool = Field(
        default=False, description="Whether it remembers for all callers alike, not for each apart."
    )
    agent_message: tuple[Glob, ...] = Field(default=(), description="Agents that it may call.")
    agent_spawn: bool = Field(default=False, description="Whether it may start other agents.")
    agent_kill: tuple[Glob, ...] = Field(default=(), description="Agents that it may end.")
    shell: tuple[Text, ...] = Field(
        default=(), description="Programs, or patterns of command lines, that it may run."
    )
    paths: tuple[Text, ...] = Field(
        default=(), description="Folders that it may reach beside its workspace."
    )
    deny_paths: tuple[Text, ...] = Field(
        default=(), description="Paths that stay closed, whatever else is granted."
    )


def _scheduling(text: str) -> str:
    from openfang.agents.when import EXAMPLES, read_when  # noqa: PLC0415 - few manifests have one

    try:
        read_when(text, UTC, 0)
    except Rejected:
        raise PydanticCustomError("expected", f"a schedule such as {EXAMPLES[0]}") from None
    return text


def _expression(text: str) -> str:
    from openfang.agents.when import Cron, read_when  # noqa: PLC0415 - few manifests have one

    with suppress(Rejected):
        if isinstance(read_when(text, UTC, 0), Cron):
            return text
    raise PydanticCustomError("expected", "a cron expression such as * 22-23,0-6 * * *")


Scheduling = Annotated[Text, AfterValidator(_scheduling)]
Expression = Annotated[Text, AfterValidator(_expression)]


class Autonomous(Section):
    """An agent that goes on by itself."""

    max_iterations: Count = Field(default=50, description="Rounds of one run.")
    max_restarts: Whole = Field(default=10, description="Restarts after a failure.")
    heartbeat_interval_secs: Seconds = Field(
        default=30, description="Seconds between signs of life."
    )
    heartbeat_channel: Text | None = Field(
        default=None, description="Where signs of life are sent."
    )
    quiet_hours: Expression | None = Field(
        default=None, description="When it does not start by the clock, as a cron expression."
    )


class Routing(Section):
    """Which model answers, by the length of what is asked."""

    simple_model: Text | None = Field(
        default=None, description="The model for what is short; unset means the agent's own."
    )
    medium_model: Text | None = Field(
        default=None, description="The model in between; unset means the agent's own."
    )
    complex_model: Text | None = Field(
        default=None, description="The model for what is long; unset means the agent's own."
    )
    simple_threshold: Count = Field(default=100, description="Tokens below which it is short.")
    complex_threshold: Count = Field(default=500, description="Tokens from which it is long.")


class Mcp(Section):
    """What of the agent's own others see over MCP. Nothing, unless it is listed."""

    expose_tools: tuple[Glob, ...] = Field(
        default=(), description="Tools that others may call, as `plugin:tool` or by id."
    )
    private_tools: tuple[Glob, ...] = Field(
        default=(), description="Tools that stay hidden, also where they are exposed."
    )
    expose_resources: tuple[Glob, ...] = Field(
        default=(), description="Resources that others may read, by address."
    )


class BoundPolicy(Section):
    """What the gates read of this agent; a call can choose among it or tighten it."""

    mode: Literal["execution", "planning"] = Field(
        default="execution", description="While planning, nothing with a side effect runs."
    )
    project: Text | None = Field(
        default=None, description="The project that its calls belong to; unset means none."
    )
    spec: Text | None = Field(
        default=None, description="The hash of the frozen spec that it works by."
    )
    blacklist: tuple[TagName, ...] = Field(
        default=(), description="Side-effect tags that gate 5 refuses for this agent."
    )


class RunLimits(Section):
    """What one run of the agent may take; what is unset is bounded by the node alone."""

    tool_rounds: Count = Field(default=50, description="Times that the model is asked again.")
    tool_calls: Count | None = Field(default=None, description="Calls to plain tools.")
    agent_calls: Count | None = Field(default=None, description="Calls to agents and peers.")
    tools_at_once: Count | None = Field(default=None, description="Tool calls at the same time.")
    tool_timeout_secs: Seconds | None = Field(
        default=None, description="How long one tool call may take, in seconds."
    )
    model_timeout_secs: Seconds = Field(
        default=120, description="How long the model may think, in seconds."
    )
    plugin_timeout_secs: Seconds = Field(
        default=30, description="How long a plugin may take to answer, in seconds."
    )
    deadline_secs: Seconds | None = Field(
        default=None, description="How long the whole run may take, in seconds."
    )
    runs_at_once: Count | None = Field(
        default=None,
        description="Tasks of the agent at the same time on all nodes, where they are on queues.",
    )


class Safety(Section):
    """When a run that goes wrong is warned, asked about and stopped."""

    max_loop_ticks: Count = Field(default=50, description="Steps after which a run is stopped.")
    max_token_usage: Count = Field(
        default=1_000_000, description="Tokens after which a run is stopped."
    )
    repetitive_fail_threshold: Count = Field(
        default=3, description="Identical failures that get a warning."
    )
    frustration_threshold: Count = Field(
        default=5, description="Failures in a row after which a person is asked."
    )
    error_window_size: Count = Field(default=10, description="Calls of which failures are counted.")
    error_rate_threshold: Share = Field(
        default=0.8, description="The share of failures among them that stops the run."
    )


class Communication(Section):
    """Messages between this agent and the others of the node."""

    receive_from: tuple[Glob, ...] | None = Field(
        default=None,
        description="Agents whose messages it takes; unset means all that may send to it.",
    )
    expose_tools: tuple[Glob, ...] = Field(
        default=(), description="Tools that other agents of the node may call."
    )
    max_message_bytes: Bytes = Field(default=MIB, description="The largest message.")
    events: tuple[Glob, ...] = Field(default=(), description="Events that are passed on to it.")
    timeout_secs: Seconds = Field(
        default=30, description="How long an answer is waited for, in seconds."
    )
    max_retries: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Times that a message is sent again."
    )
    grace_secs: Annotated[float, Field(ge=0, le=300)] = Field(
        default=30, description="Time to finish before it is ended, in seconds."
    )


class PluginRef(Section):
    """A plugin that brings the agent tools."""

    name: Text = Field(description="The plugin's name.")
    path: InnerPath | None = Field(
        default=None, description="Where it is, in the agent's folder; unset means installed."
    )
    config: dict[str, object] = Field(default={}, description="Settings of the plugin's own.")
