"""The `manifest.json` of an extension as one strict model; what cannot be served is refused."""

import re
from collections.abc import Mapping
from os.path import normpath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from openfang.config.extensions import ExtensionId
from openfang.config.fields import (
    Argument,
    EffectName,
    FolderPath,
    Folders,
    Glob,
    RiskName,
    Seconds,
    Section,
    TagName,
    Text,
    Variable,
    meaning,
)
from openfang.config.manifest_parts import InnerPath, Requirement
from openfang.config.tools import WireName
from openfang.safety.environment import is_ours
from openfang.safety.schemas import compile_schema

MIB = 1 << 20
_HASHES = re.compile(r"( +--hash=sha256:[0-9a-f]{64})+$")
_PINNED = re.compile(r"^[^=<>!~;]+==[^=*,;]+(;.*)?$")


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{what}", {"what": what})


def _pinned(requirement: str) -> str:
    plain = _HASHES.sub("", requirement)
    try:
        _REQUIREMENT.validate_python(plain)
    except ValidationError:
        raise _wrong("a package, such as name==1.2") from None
    if not _PINNED.match(plain.replace(" ", "")):
        raise _wrong("a package with its exact version, such as name==1.2")
    return requirement


def _schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if schema and schema.get("type") != "object":
        raise _wrong('a JSON Schema with "type": "object"')
    if broken := compile_schema(schema).broken:
        raise _wrong(f"a JSON Schema that can be used ({broken[:200]})")
    return schema


def _not_everything(path: str, info: ValidationInfo) -> str:
    user = str(info.context.user) if isinstance(info.context, Folders) else "~"
    if normpath(path).lstrip("/") in {"", "~", normpath(user).lstrip("/")}:
        raise _wrong("a folder or file, and not all there is")
    return path


_WHY = {
    "command": "no `command`: a capability is a tool, called by its name",
    "runner": "no `runner`: the extension's own process runs its tools",
    "args_schema": "`input_schema` in place of `args_schema`",
    "config": "no `config` of one capability: there is one for the whole extension",
    "permissions": "no `permissions` of one capability: there are some for the whole extension",
    "timeout_sec": "`timeout_secs` in place of `timeout_sec`",
    "external_bins": "an empty list: nothing is installed on the machine for an extension",
    "entrypoint": "null here, and the file in `entry`",
    "install": "no `install`: nothing of an extension runs while it is installed",
}


def _absent(value: object, info: ValidationInfo) -> None:
    """Say of a key that others have why we cannot do what it asks for."""
    if value not in (None, (), ""):
        raise _wrong(_WHY[info.field_name or ""])


Absent = Annotated[None, BeforeValidator(_absent), WithJsonSchema({"type": "null"})]
Version = Annotated[
    str,
    Field(
        pattern=r"^[0-9]+(\.[0-9]+){0,3}([.+-]?[A-Za-z0-9]+)*$",
        max_length=40,
        json_schema_extra=meaning("a version such as 1.2.0"),
    ),
]
CapabilityName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=64,
        json_schema_extra=meaning("a name of letters, digits, . _ and -"),
    ),
]
PythonVersion = Annotated[
    str, Field(pattern=r"^3\.[0-9]{1,2}$", json_schema_extra=meaning("a version such as 3.12"))
]
_REQUIREMENT: TypeAdapter[str] = TypeAdapter(Requirement)
Pinned = Annotated[str, AfterValidator(_pinned)]
ToolSchema = Annotated[dict[str, Any], AfterValidator(_schema)]
Place = Annotated[FolderPath, AfterValidator(_not_everything)]
RuntimeWord = Literal["python", "node", "mcp"]


class Limits(Section):
    """What its process may take."""

    memory_bytes: int = Field(
        default=512 * MIB, ge=16 * MIB, le=64 << 30, description="Memory of its processes."
    )
    cpu_seconds: float = Field(
        default=300.0, gt=0, le=86_400, description="Seconds of work of its process."
    )
    disk_bytes: int = Field(
        default=1024 * MIB, ge=MIB, le=1 << 40, description="What may lie in its workspace."
    )


class RuntimeSection(Section):
    """What runs it, in full."""

    kind: RuntimeWord = Field(description="Python, Node.js, or an MCP server on standard input.")
    entry: InnerPath | None = Field(
        default=None, description="The file that is run; unset means `main.py` or `main.js`."
    )
    command: tuple[Argument, ...] = Field(
        default=(), description="The program of an MCP server and its arguments, in the folder."
    )
    python: PythonVersion | None = Field(
        default=None, description="The version of Python; unset means the node's own."
    )
    requirements: tuple[Pinned, ...] = Field(
        default=(), description="Packages of Python, each with its version."
    )
    limits: Limits = Field(default=Limits(), description="What its process may take.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        mcp = self.kind == "mcp"
        if mcp and (not self.command or self.entry is not None):
            raise _wrong('`command` and no `entry` where kind is "mcp"')
        if not mcp and self.command:
            raise _wrong('`command` only where kind is "mcp"')
        if self.kind != "python" and (self.python or self.requirements):
            raise _wrong('`python` and `requirements` only where kind is "python"')
        return self


def _runtime_form(runtime: object) -> str:
    return "word" if isinstance(runtime, str) else "table"


RuntimeOf = Annotated[
    Annotated[RuntimeWord, Tag("word")] | Annotated[RuntimeSection, Tag("table")],
    Discriminator(_runtime_form),
]


class PythonSection(Section):
    """The Python of an extension, as AgentOS writes it."""

    version: PythonVersion | None = Field(default=None, description="As `runtime.python`.")
    dependencies: tuple[Pinned, ...] = Field(default=(), description="As `runtime.requirements`.")


class CapabilitySection(Section):
    """One tool."""

    type: Literal["tool"] = Field(
        default="tool", description="Only tools: no commands, agents or workflows."
    )
    name: CapabilityName = Field(description="The last part of the tool's id.")
    title: str = Field(default="", description="What people are shown.")
    description: str = Field(default="", description="What a model reads of the tool.")
    input_schema: ToolSchema = Field(
        default={}, description="JSON Schema of its arguments; every call is checked against it."
    )
    output_schema: ToolSchema | None = Field(
        default=None, description="JSON Schema of the structured part of its results."
    )
    risk: RiskName | None = Field(
        default=None, description="Its risk; unset means by its name and description."
    )
    side_effect_tags: tuple[TagName, ...] | None = Field(
        default=None, description="What it does; unset means by its name and description."
    )
    effect: EffectName | None = Field(
        default=None, description="What a call does to the world, for the flow rules."
    )
    targets: tuple[Text, ...] = Field(
        default=(), description="The arguments that choose who, where and what; with `effect`."
    )
    annotations: dict[str, Any] = Field(default={}, description="Annotations of MCP.")
    timeout_secs: Seconds | None = Field(
        default=None, description="How long one call may take; unset means as the operator says."
    )
    tool_name: WireName | None = Field(
        default=None,
        description="What models see; unset means its name, or `ext_{id}_{name}` if that is taken.",
    )
    command: Absent = Field(default=None, description="Refused: it is called by its name.")
    runner: Absent = Field(default=None, description="Refused: its own process runs its tools.")
    args_schema: Absent = Field(default=None, description="Refused: it is called `input_schema`.")
    timeout_sec: Absent = Field(default=None, description="Refused: it is called `timeout_secs`.")
    config: Absent = Field(default=None, description="Refused: the whole extension has one.")
    permissions: Absent = Field(default=None, description="Refused: the whole extension has some.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.targets and self.effect is None:
            raise _wrong("`effect` beside `targets`")
        return self


PermissionWord = Literal[
    "read_status", "fs_read", "fs_write", "network_http", "builtin.exec", "exec_shell"
]


def _grantable(word: str) -> str:
    if word == "exec_shell":
        raise _wrong(
            "no exec_shell: no extension gets a shell of the machine; it may call "
            'builtin:shell_exec, by "tools" in a table of permissions'
        )
    return word


def _theirs(name: str) -> str:
    if is_ours(name):
        raise _wrong(f"a variable that may be asked for, and not {name}")
    return name


class PermissionsSection(Section):
    """What it may reach; nothing, unless it is written here."""

    tools: tuple[Glob, ...] = Field(
        default=(), description="Tools that it may call, by id or pattern, with its caller's leave."
    )
    memory_read: tuple[Glob, ...] = Field(default=(), description="Memory that it may read.")
    memory_write: tuple[Glob, ...] = Field(default=(), description="Memory that it may write.")
    network: bool = Field(
        default=False, description="Whether it reaches the network, by the guarded egress."
    )
    fs_read: tuple[Place, ...] = Field(
        default=(), description="Paths beside its own folder that it may read."
    )
    fs_write: tuple[Place, ...] = Field(
        default=(), description="Paths beside its own workspace that it may write."
    )
    env: tuple[Annotated[Variable, AfterValidator(_theirs)], ...] = Field(
        default=(), description="Variables of the node's that it gets; none of the node itself."
    )


def _permissions_form(permissions: object) -> str:
    return "table" if isinstance(permissions, Mapping) else "words"


PermissionsOf = Annotated[
    Annotated[tuple[Annotated[PermissionWord, AfterValidator(_grantable)], ...], Tag("words")]
    | Annotated[PermissionsSection, Tag("table")],
    Discriminator(_permissions_form),
]


class ConfigSection(Section):
    """One value that the operator may set in `[extensions.ID.config]`."""

    description: str = Field(default="", description="What it is for.")
    default: str | bool | int | float | None = Field(
        default=None, description="What it is where the operator says nothing."
    )
    required: bool = Field(default=False, description="Whether it cannot do without.")
    secret: bool = Field(default=False, description="Whether it must not be seen.")


class Docs(Section):
    """Where people read on."""

    usage: str = Field(default="", description="A file of the folder.")


class ExtensionManifest(Section):
    """Everything that `manifest.json` may say."""

    id: ExtensionId = Field(
        description="What it is called: in ids, commands and its folder's name."
    )
    name: str = Field(default="", description="What people are shown.")
    version: Version = Field(description="Its version.")
    description: str = Field(default="", description="What it is for.")
    author: str = Field(default="", description="Who wrote it.")
    license: str = Field(default="", description="Under which terms.")
    homepage: str = Field(default="", description="Where to read more.")
    runtime: RuntimeOf = Field(description="What runs it: a word, or a table.")
    entry: InnerPath | None = Field(default=None, description="As `runtime.entry`.")
    python: PythonSection = Field(
        default=PythonSection(), description="Its Python, as AgentOS writes it."
    )
    capabilities: Annotated[tuple[CapabilitySection, ...], Field(max_length=500)] = Field(
        default=(), description="Its tools; of an MCP server these alone are offered."
    )
    permissions: PermissionsOf = Field(
        default=PermissionsSection(), description="What it may reach: a table, or AgentOS's words."
    )
    permissions_required: PermissionsOf = Field(
        default=(), description="The same, as AgentOS calls it."
    )
    config: dict[Variable, ConfigSection] = Field(
        default={}, description="What the operator may set, by name."
    )
    platforms: tuple[Literal["linux", "darwin", "win32", "all"], ...] = Field(
        default=("all",), description="Where it runs; `linux` or `all` must be there."
    )
    icon: str | None = Field(default=None, description="A picture of its folder.")
    docs: Docs = Field(default=Docs(), description="Where people read on.")
    external_bins: Absent = Field(
        default=None, description="Must be empty: nothing is installed on the machine."
    )
    entrypoint: Absent = Field(
        default=None, description="Must be null: the file stands in `entry`."
    )
    install: Absent = Field(
        default=None, description="Refused: nothing of it runs while it is installed."
    )
