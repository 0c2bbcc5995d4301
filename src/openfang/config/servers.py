"""`[[mcp_servers]]`: the servers whose tools we call, and what the operator says about them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from openfang.config.fields import (
    Argument,
    Count,
    EffectName,
    FolderPath,
    Name,
    Program,
    RiskName,
    Scan,
    Scope,
    Seconds,
    SecretLine,
    SecretText,
    Section,
    TagName,
    Text,
    TrustName,
    Url,
    Variable,
    meaning,
)

MOST_MEMORY_MB, MOST_PROCESSES = 4096, 1024
_TYPE = "A child's standard input and output, or HTTP in either of its two forms."


class StdioTransport(Section):
    """A program of this machine that speaks over its standard input and output."""

    type: Literal["stdio"] = Field(description=_TYPE)
    command: Program = Field(description="The program to start; no `..` in it or its arguments.")
    args: tuple[Argument, ...] = Field(default=(), description="Its arguments, one entry each.")


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


DocumentUrl = Annotated[
    str,
    Field(
        pattern=r"^https://[^\s/]+/\S+$",
        json_schema_extra=meaning("an https:// address with a path"),
    ),
]
Port = Annotated[int, Field(ge=0, le=65_535)]


class OAuthSection(Section):
    """How to sign in to a server that wants it."""

    grant: Literal["authorization_code", "client_credentials"] = Field(
        default="authorization_code",
        description="By a person, with `openfang servers login`, or by the client's own right.",
    )
    client_id: Text | None = Field(
        default=None,
        description="A client that is registered already; unset means that one is registered.",
    )
    client_secret: SecretLine | None = Field(
        default=None, description="That client's secret; `${NAME}` expands."
    )
    private_key: SecretText | None = Field(
        default=None,
        description="What that client signs with: a key in PEM form, in which `${NAME}` expands, "
        "or the path of its file, from the home.",
    )
    client_metadata_url: DocumentUrl | None = Field(
        default=None, description="Where a document describes us, for servers that read such."
    )
    issuer: Url | None = Field(
        default=None,
        description="The only authorization server that is trusted; unset means the one that the "
        "server names first.",
    )
    scopes: tuple[Scope, ...] = Field(
        default=(), description="What to ask for; empty means what the server asks for."
    )
    redirect_port: Port = Field(
        default=0,
        description="The port of 127.0.0.1 that a sign-in comes back to; 0 means any that is free.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        proofs = [self.client_secret, self.private_key]
        given = sum(proof is not None for proof in proofs)
        by_itself = self.grant == "client_credentials"
        if (given or by_itself) and self.client_id is None:
            raise _wrong("client_id beside client_secret, private_key and client_credentials")
        if by_itself and given != 1:
            raise _wrong("either client_secret or private_key for client_credentials")
        if self.private_key is not None and not by_itself:
            raise _wrong('private_key only with grant = "client_credentials"')
        if self.client_metadata_url is not None and self.client_id is not None:
            raise _wrong("either client_id or client_metadata_url")
        return self


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{what}", {"what": what})


class HttpTransport(Section):
    """A server at an address; Streamable HTTP is tried first, then legacy SSE, then plain POST."""

    type: Literal["sse", "http"] = Field(description=_TYPE)
    url: Url = Field(description="The server's address.")
    headers: dict[HeaderName, SecretLine] = Field(
        default={}, description="Headers sent with every request; `${NAME}` expands in the values."
    )
    oauth: OAuthSection | None = Field(
        default=None,
        description="How to sign in; unset means by a person, as the server says, where it wants.",
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.oauth is not None and "authorization" in map(str.lower, self.headers):
            raise _wrong("either oauth or a header Authorization")
        return self


Transport = Annotated[StdioTransport | HttpTransport, Field(discriminator="type")]


def _env_form(env: object) -> str:
    return "values" if isinstance(env, Mapping) else "names"


Env = Annotated[
    Annotated[tuple[Variable, ...], Tag("names")]
    | Annotated[dict[Variable, SecretText], Tag("values")],
    Discriminator(_env_form),
]


class ToolOverride(Section):
    """What the operator says about one foreign tool; what is unset stays as classified."""

    risk: RiskName | None = Field(default=None, description="The tool's risk.")
    tags: tuple[TagName, ...] | None = Field(
        default=None, description="The tool's side-effect tags."
    )
    effect: EffectName | None = Field(
        default=None, description="What a call does to the world, for the flow rules."
    )
    targets: tuple[Text, ...] | None = Field(
        default=None, description="The arguments that choose who, where and what."
    )
    enabled: bool | None = Field(default=None, description="Whether the tool can be called at all.")
    polls: bool | None = Field(
        default=None, description="Whether identical calls are how the tool is meant to be used."
    )
    requires_admin_token: bool | None = Field(
        default=None, description="Whether each call needs an admin token."
    )
    timeout_secs: Seconds | None = Field(
        default=None, description="How long one call of the tool may take, in seconds."
    )


class McpServer(Section):
    """One MCP server."""

    name: Name = Field(description="The server's name, and the second part of its tools' ids.")
    transport: Transport = Field(description="How to reach the server.")
    timeout_secs: Seconds = Field(
        default=30, description="How long one request may take, in seconds."
    )
    env: Env = Field(
        default=(),
        description="The child's variables: names to pass on, or a table of values in which "
        "`${NAME}` expands.",
    )
    enabled: bool = Field(default=True, description="Whether the server is connected.")
    allow_tools: tuple[Text, ...] = Field(
        default=(), description="The tools that may be seen; empty means all."
    )
    deny_side_effect_tags: tuple[TagName, ...] = Field(
        default=(), description="Tools with one of these tags are refused by gate 5."
    )
    trust: TrustName | None = Field(
        default=None,
        description="How far the server is trusted; unset means low over the network and for "
        "unpinned packages, medium else.",
    )
    scan: Scan | None = Field(
        default=None,
        description="What becomes of a suspicious definition of the server's at first sight; unset "
        'means `definitions.scan`, and "warn" where the server\'s trust is high.',
    )
    risk: RiskName | None = Field(
        default=None, description="The risk of each of its tools, unless the tool has its own."
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    lazy: bool = Field(default=False, description="Connect at the first call instead of at start.")
    singleton: bool = Field(
        default=False,
        description="Whether it runs once in a cluster: on one node at a time, which the others "
        "reach it through. One node alone is one in any case.",
    )
    sandbox: Literal["auto", "required", "off"] = Field(
        default="auto", description="Whether the child runs sandboxed."
    )
    network: bool = Field(
        default=True, description="Whether the sandboxed child reaches the guarded egress."
    )
    fs_read: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that the sandboxed child may read."
    )
    fs_write: tuple[FolderPath, ...] = Field(
        default=(), description="More paths that the sandboxed child may write."
    )
    max_memory_mb: Count = Field(
        default=MOST_MEMORY_MB,
        description="MiB of memory that the child may take: with all it starts where cgroups can "
        "be written, else each of its processes.",
    )
    max_processes: Count = Field(
        default=MOST_PROCESSES,
        description="Processes and threads that the child may have; not held where it runs without "
        "a sandbox and without cgroups.",
    )
    max_concurrency: Count = Field(
        default=10, description="Calls at once; the others wait in turn."
    )
    comes_as: Text | None = Field(
        default=None,
        description="The name of the key that the server calls this node with, if it does.",
    )
    roots: bool = Field(
        default=False,
        description="Whether the server may ask clients which folders they work in.",
    )
    tools: dict[Text, ToolOverride] = Field(
        default={}, description="The operator's word on single tools, by the server's name for it."
    )
