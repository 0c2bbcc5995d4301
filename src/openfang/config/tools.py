"""`[tools]`, `[toolsets]`, `[results]` and `[classify]`: what tools may do."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from openfang.config.fields import (
    DAY,
    Count,
    FolderPath,
    Glob,
    Name,
    Scan,
    Seconds,
    SecretLine,
    Section,
    Segment,
    TagName,
    Text,
    Url,
    Variable,
    Word,
    meaning,
)

TEN_MB = 10_000_000
Sandbox = Literal["auto", "required", "off"]

# None of these starts another program: `env`, `sort`, `split`, `diff`, `find`, `sed`, `awk` and
# `xargs` can, so the operator has to name them.
SAFE_PROGRAMS = (
    "basename", "cat", "cmp", "comm", "cut", "date", "dirname", "echo", "false", "fold", "grep",
    "head", "join", "ls", "nl", "paste", "printf", "pwd", "seq", "sha256sum", "sleep", "stat",
    "tac", "tail", "tr", "true", "uniq", "wc",
)  # fmt: skip

Program = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        json_schema_extra=meaning("the name of a program, without a path"),
    ),
]


WireName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        json_schema_extra=meaning("a name of at most 64 letters, digits, - and _"),
    ),
]


class Definitions(Section):
    """What others say of their tools, prompts and agents."""

    scan: Scan = Field(
        default="hold",
        description="What becomes of a definition that speaks to the model, at first sight: it is "
        "held back until it is accepted, offered and noted, or not looked at.",
    )


class WebFetch(Section):
    """The built-in `web_fetch`."""

    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    timeout_secs: Seconds = Field(
        default=30, description="How long one fetch may take, in seconds."
    )
    max_bytes: Count = Field(default=TEN_MB, description="The largest body that is read.")


class WebSearch(Section):
    """The built-in `web_search`."""

    provider: Literal["searxng", "brave", "tavily", "duckduckgo"] | None = Field(
        default=None, description="The engine that is asked; unset means that nobody is."
    )
    base_url: Url | None = Field(
        default=None,
        description="Where the engine is; unset means its own address, which SearXNG has not.",
    )
    api_key: SecretLine | None = Field(
        default=None,
        description="The engine's key; `${NAME}` expands; unset means `${BRAVE_API_KEY}` or "
        "`${TAVILY_API_KEY}` for those.",
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    timeout_secs: Seconds = Field(
        default=15, description="How long one search may take, in seconds."
    )
    cache_secs: Annotated[int, Field(ge=0, le=DAY)] = Field(
        default=300, description="How long an answer is kept for the same question, in seconds."
    )

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.provider == "searxng" and self.base_url is None:
            raise _wrong('base_url beside provider = "searxng"')
        return self


class Image(Section):
    """The built-in `image_analyze`."""

    max_bytes: Count = Field(default=TEN_MB, description="The largest image that is read.")
    max_pixels: Count = Field(
        default=50_000_000, description="The most pixels that an image may have."
    )


class Location(Section):
    """The built-in `location_get`: where the node is, or who is asked."""

    latitude: Annotated[float, Field(ge=-90, le=90)] | None = Field(
        default=None, description="Where the node is, in degrees to the north."
    )
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = Field(
        default=None, description="Where the node is, in degrees to the east."
    )
    city: Text | None = Field(default=None, description="The city that the node is in.")
    region: Text | None = Field(default=None, description="The region that the node is in.")
    country: Text | None = Field(default=None, description="The country that the node is in.")
    timezone: Text | None = Field(
        default=None, description="The time zone of the node, such as Europe/Paris."
    )
    service: Url | None = Field(
        default=None,
        description="Who is asked instead: an address that answers in JSON as ip-api.com does.",
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    timeout_secs: Seconds = Field(
        default=10, description="How long the service may take, in seconds."
    )

    @property
    def place(self) -> dict[str, Any]:
        """What is said of the place, by key."""
        return self.model_dump(
            exclude_none=True, exclude={"service", "allow_private", "timeout_secs"}
        )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.latitude is None) != (self.longitude is None):
            raise _wrong("latitude and longitude together")
        if self.service and self.place:
            raise _wrong("either a service or a place")
        return self


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{what}", {"what": what})


class ShellExec(Section):
    """The built-in `shell_exec`."""

    allow_shell: bool = Field(
        default=False, description="Run the command line by a shell instead of word by word."
    )
    programs: tuple[Program, ...] = Field(
        default=SAFE_PROGRAMS, description="The programs that may be started."
    )
    timeout_secs: Seconds = Field(
        default=30, description="How long one command may run, in seconds."
    )
    env: tuple[Variable, ...] = Field(
        default=(), description="Names of variables that are passed on; `PATH` always is."
    )
    sandbox: Sandbox = Field(default="auto", description="Whether the program runs sandboxed.")
    network: bool = Field(
        default=False,
        description="Whether the sandboxed program reaches the guarded egress, and there what the "
        "caller's `network` grants name.",
    )
    fs_read: tuple[FolderPath, ...] = Field(
        default=(), description="Paths besides the workspace that the sandboxed program may read."
    )
    fs_write: tuple[FolderPath, ...] = Field(
        default=(), description="Paths besides the workspace that the sandboxed program may write."
    )


class Files(Section):
    """The built-ins that read and write files."""

    max_bytes: Count = Field(
        default=TEN_MB, description="The largest file that is read or written."
    )


class Tasks(Section):
    """The built-ins of the task board."""

    claim_secs: Seconds = Field(
        default=3600,
        description="How long a claimed task is its owner's; after that others may claim it.",
    )


class Tools(Section):
    """Limits of all tools, and settings of single built-ins."""

    timeout_secs: Seconds = Field(
        default=60, description="How long one call of any tool may take, in seconds."
    )
    disabled: tuple[Glob, ...] = Field(
        default=(), description="Ids of tools that gate 1 refuses; `*` stands for anything."
    )
    web_fetch: WebFetch = Field(default=WebFetch(), description="The built-in `web_fetch`.")
    shell_exec: ShellExec = Field(default=ShellExec(), description="The built-in `shell_exec`.")
    files: Files = Field(default=Files(), description="The built-ins that read and write files.")
    tasks: Tasks = Field(default=Tasks(), description="The built-ins of the task board.")
    web_search: WebSearch = Field(default=WebSearch(), description="The built-in `web_search`.")
    image: Image = Field(default=Image(), description="The built-in `image_analyze`.")
    location: Location = Field(default=Location(), description="The built-in `location_get`.")


class Results(Section):
    """What becomes of large results."""

    max_chars: Count = Field(
        default=50_000, description="Characters of all text parts together; the rest is cut."
    )
    max_binary_bytes: Count = Field(default=TEN_MB, description="Bytes of all binary parts.")
    keep_secs: Annotated[int, Field(ge=1, le=30 * DAY)] = Field(
        default=3600, description="How long the whole of a cut result stays readable, in seconds."
    )


class Toolset(Section):
    """A named selection of tools, served at `/mcp/{name}`."""

    servers: tuple[Name, ...] = Field(
        default=(),
        description="MCP servers whose tools, resources and prompts are in the set.",
    )
    tools: tuple[Glob, ...] = Field(
        default=(), description="Tools in the set, by id or wire name; `*` stands for anything."
    )
    agents: tuple[Glob, ...] = Field(
        default=(), description="Agents in the set, by name; `*` stands for anything."
    )
    prefix: bool = Field(
        default=True,
        description="Whether tools keep the prefix `mcp_{server}_`; without it, one server alone "
        "is offered as it is.",
    )
    rename: dict[Text, WireName] = Field(
        default={}, description="Tools, by id or wire name, and the names they get in this set."
    )
    descriptions: dict[Text, Text] = Field(
        default={},
        description="Tools, by id or wire name, and the descriptions they get in this set.",
    )
    mode: Literal["list", "search"] = Field(
        default="list", description="Offer the whole list, or `search_tools` and `call_tool`."
    )


def _free(name: str) -> str:
    if name == "agents":
        raise PydanticCustomError("expected", "another name: /mcp/agents is taken")
    return name


ToolsetName = Annotated[Segment, AfterValidator(_free)]


class Classify(Section):
    """More words for the tables by which the risk of foreign tools is inferred."""

    critical: tuple[Word, ...] = Field(default=(), description="Words that mean CRITICAL risk.")
    high: tuple[Word, ...] = Field(default=(), description="Words that mean HIGH risk.")
    medium: tuple[Word, ...] = Field(default=(), description="Words that mean MEDIUM risk.")
    low: tuple[Word, ...] = Field(default=(), description="Words that mean LOW risk.")
    tags: dict[Word, tuple[TagName, ...]] = Field(
        default={}, description="Words and the side-effect tags they imply."
    )
