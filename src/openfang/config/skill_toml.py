"""`skill.toml`, the seed's form of a skill: who it is, what runs it, which tools it provides."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from openfang.config.fields import Section, Segment, Text, Variable, meaning

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
MOST_TOOLS = 100
OURS = frozenset({"read", "run"})
_KINDS = ("python", "node", "shell", "promptonly")
_NOT_RUN = frozenset({"wasm", "builtin"})


def _kind(word: object) -> object:
    if isinstance(word, str) and word in _NOT_RUN:
        raise PydanticCustomError("expected", "python, node, shell or promptonly (no other is run)")
    return word


def _free(name: str) -> str:
    if name in OURS:
        raise PydanticCustomError("expected", "a name other than read and run, which are ours")
    return name


def inside(path: str) -> str:
    """Hold a path to the folder of its skill."""
    if path.startswith("/") or "\0" in path or "\\" in path or ".." in path.split("/"):
        raise PydanticCustomError("expected", "a file inside the skill's folder")
    return path


Kind = Annotated[
    Literal["python", "node", "shell", "promptonly"],
    BeforeValidator(_kind),
    WithJsonSchema({"type": "string", "enum": list(_KINDS)}),
]
ToolName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
        max_length=LONGEST_NAME,
        json_schema_extra=meaning("a name of letters, digits, - and _"),
    ),
    AfterValidator(_free),
]
Entry = Annotated[str, AfterValidator(inside)]
Value = str | int | float | bool


class AboutSection(Section):
    """Who it is."""

    name: Segment = Field(description="Its name, and that of its folder.")
    version: Text = Field(default="0.1.0", description="Its version.")
    description: str = Field(
        default="", max_length=LONGEST_DESCRIPTION, description="What it is for."
    )
    author: str = Field(default="", description="Who wrote it.")
    license: str = Field(default="", description="What others may do with it.")
    tags: tuple[Text, ...] = Field(default=(), description="Words by which it is found.")


class RuntimeSection(Section):
    """What runs its tools."""

    type: Kind = Field(default="promptonly", description="The interpreter, or none.")
    entry: Entry = Field(default="", description="The file that it runs.")


class ToolSection(Section):
    """One tool."""

    name: ToolName = Field(description="Its name.")
    description: str = Field(default="", description="What it does.")
    input_schema: dict[str, Any] = Field(
        default={"type": "object"}, description="The JSON Schema of its arguments."
    )


class ToolsSection(Section):
    """The tools."""

    provided: tuple[ToolSection, ...] = Field(
        default=(), max_length=MOST_TOOLS, description="The tools that it provides."
    )


class RequirementsSection(Section):
    """What it cannot do without."""

    tools: tuple[Text, ...] = Field(default=(), description="Tools that its instructions name.")
    capabilities: tuple[Text, ...] = Field(default=(), description="What its programs reach.")


class VariableSection(Section):
    """One setting."""

    description: str = Field(default="", description="What it is for.")
    env: Variable | None = Field(default=None, description="The variable that may hold it.")
    default: Value | None = Field(default=None, description="What holds where nobody says it.")
    required: bool = Field(default=False, description="Whether nothing runs without it.")


class SkillToml(Section):
    """The whole file."""

    skill: AboutSection = Field(description="Who it is.")
    runtime: RuntimeSection = Field(default=RuntimeSection(), description="What runs its tools.")
    tools: ToolsSection = Field(default=ToolsSection(), description="Its tools.")
    requirements: RequirementsSection = Field(
        default=RequirementsSection(), description="What it cannot do without."
    )
    prompt_context: str = Field(default="", description="Its instructions.")
    source: Any = Field(default=None, description="Where it came from; not read.")
    config: dict[Variable, VariableSection] = Field(default={}, description="Its settings.")
