"""The whole configuration as one model: `Config()` is what an empty file means."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr
from pydantic_core import PydanticCustomError

from openfang.config.agents import Agents
from openfang.config.cluster import Cluster
from openfang.config.extensions import ExtensionId, ExtensionSettings
from openfang.config.fields import Name, Section, Segment, Text, Url, meaning
from openfang.config.llm import DefaultModel, ModelProvider
from openfang.config.node import (
    Approvals,
    Audit,
    Auth,
    Budget,
    Guard,
    Limits,
    Loops,
    Plugins,
    Policy,
    Secrets,
    Server,
    Storage,
)
from openfang.config.peers import A2a, Node
from openfang.config.rules import NO_RULES, Rules
from openfang.config.schedules import Schedules, Trigger
from openfang.config.servers import McpServer
from openfang.config.skills import SkillSettings
from openfang.config.telemetry import TelemetrySection
from openfang.config.tools import Classify, Definitions, Results, Tools, Toolset, ToolsetName
from openfang.core.values import dataclass

LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, as messages name it. Line 0 is something that has no lines."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def _port(listen: str) -> str:
    if int(listen.rpartition(":")[2]) > LAST_PORT:
        raise PydanticCustomError("expected", "a port of at most 65535")
    return listen


Listen = Annotated[
    str,
    Field(
        pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$",
        json_schema_extra=meaning("host:port"),
    ),
    AfterValidator(_port),
]


class Config(Section):
    """Every key that a configuration file may have."""

    api_key: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="A key named `config`, without admin; unset opens nothing.",
    )
    api_listen: Listen = Field(
        default="127.0.0.1:50051", description="Where the node listens, as `host:port`."
    )
    public_url: Url | None = Field(
        default=None, description="The address under which others reach the node."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is logged: this and what is graver."
    )
    include: tuple[Text, ...] = Field(
        default=(),
        description="More files: TOML like this one, or an AgentOS `mcp_servers.yaml`.",
    )
    mcp_servers: tuple[McpServer, ...] = Field(
        default=(), description="MCP servers whose tools are offered."
    )
    agents: Agents = Field(default=Agents(), description="What holds for all agents.")
    default_model: DefaultModel = Field(
        default=DefaultModel(), description="The model of agents that leave it to the node."
    )
    providers: dict[Name, ModelProvider] = Field(
        default={}, description="Who serves models, by name."
    )
    a2a: A2a = Field(default=A2a(), description="The agent-to-agent protocol.")
    nodes: tuple[Node, ...] = Field(
        default=(), description="Other nodes of ours, whose signatures are believed."
    )
    schedules: Schedules = Field(default=Schedules(), description="What agents do at its time.")
    triggers: tuple[Trigger, ...] = Field(
        default=(), description="Agents that are started by events."
    )
    limits: Limits = Field(default=Limits(), description="The rate of each key and each address.")
    budget: Budget = Field(
        default=Budget(), description="What all agents together may spend on models."
    )
    server: Server = Field(default=Server(), description="What a connection may take.")
    policy: Policy = Field(default=Policy(), description="How strictly the gates read.")
    plugins: Plugins = Field(default=Plugins(), description="The operator's own classes.")
    audit: Audit = Field(default=Audit(), description="The audit log.")
    telemetry: TelemetrySection = Field(
        default=TelemetrySection(), description="Where traces and metrics are sent."
    )
    approvals: Approvals = Field(default=Approvals(), description="Questions to a person.")
    auth: Auth = Field(default=Auth(), description="Who may come in.")
    storage: Storage = Field(default=Storage(), description="Where state is kept.")
    cluster: Cluster = Field(
        default=Cluster(), description="This node among others on one Postgres database."
    )
    secrets: Secrets = Field(
        default=Secrets(), description="How the key of the secret store is kept."
    )
    guard: Guard = Field(default=Guard(), description="What one chain of calls may take.")
    loops: Loops = Field(default=Loops(), description="When repeated calls count as a loop.")
    results: Results = Field(default=Results(), description="What becomes of large results.")
    tools: Tools = Field(default=Tools(), description="Limits of tools, and built-in ones.")
    definitions: Definitions = Field(
        default=Definitions(), description="What others say of their tools, prompts and agents."
    )
    extensions: dict[ExtensionId, ExtensionSettings] = Field(
        default={}, description="What the operator says of extensions, by id."
    )
    toolsets: dict[ToolsetName, Toolset] = Field(
        default={}, description="Named selections of tools."
    )
    skills: dict[Segment, SkillSettings] = Field(
        default={}, description="What the operator says of skills, by name."
    )
    classify: Classify = Field(
        default=Classify(), description="More words for the risk of foreign tools."
    )

    _rules: Rules = PrivateAttr(default=NO_RULES)
    _origins: Mapping[str, Place] = PrivateAttr(default_factory=dict[str, Place])

    @property
    def listen(self) -> tuple[str, int]:
        """Host and port of `api_listen`."""
        host, _, port = self.api_listen.rpartition(":")
        return host.strip("[]"), int(port)

    def origin(self, server: str) -> Place | None:
        """Where this MCP server was written down, if a file did so."""
        return self._origins.get(server)

    @property
    def rules(self) -> Rules:
        """What the policy file says."""
        return self._rules

    def with_rules(self, rules: Rules) -> Self:
        """Copy the configuration with these rules, which stand in a file of their own."""
        copy = self.model_copy()
        copy._rules = rules  # noqa: SLF001 - a copy of its own
        return copy

    def with_servers(self, servers: Mapping[str, tuple[McpServer, Place]]) -> Self:
        """Copy the configuration with these servers, which remember where they came from."""
        entries = servers.values()
        copy = self.model_copy(update={"mcp_servers": tuple(server for server, _ in entries)})
        origins = {server.name: place for server, place in entries}
        copy._origins = origins  # noqa: SLF001 - a copy of its own
        return copy
