"""`[tools]`, `[toolsets]`, `[results]` and `[classify]`: what tools may do."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from openfang.config.fields import (
    DAY,
    Count,
    Glob,
    Name,
    Seconds,
    Section,
    Segment,
    TagName,
    Text,
    Variable,
    Word,
    meaning,
)

TEN_MB = 10_000_000

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


class WebFetch(Section):
    """The built-in `web_fetch`."""

    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    timeout_secs: Seconds = Field(
        default=30, description="How long one fetch may take, in seconds."
    )
    max_bytes: Count = Field(default=TEN_MB, description="The largest body that is read.")


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
