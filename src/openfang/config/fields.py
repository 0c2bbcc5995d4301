"""The base of every section, and the types that several sections share."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from openfang.core.tools import TAGS, Effect, Risk, Trust
from openfang.core.values import dataclass
from openfang.safety.paths import has_parent_reference

DAY = 86_400
RISKS = ("LOW", "MEDIUM", "MED", "HIGH", "CRITICAL")


class Section(BaseModel):
    """Unknown keys are errors, nothing is coerced, nothing changes once it is read."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def _known_tag(tag: str) -> str:
    if tag not in TAGS:
        raise PydanticCustomError("enum", "a known side-effect tag")
    return tag


def _risk(word: object) -> Risk:
    if isinstance(word, Risk):
        return word
    if word not in RISKS:
        raise PydanticCustomError("enum", "a risk")
    return Risk.parse(str(word))


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """What relative paths count from, handed to the models while they read files."""

    home: Path
    user: Path

    def resolve(self, path: str) -> Path:
        """Make a path absolute: `~/` is the user's home, the rest counts from our own."""
        return self.user / path[2:] if path.startswith("~/") else self.home / path


def resolved(path: str, info: ValidationInfo) -> str:
    """Make a path absolute where it is known from where."""
    return str(info.context.resolve(path)) if isinstance(info.context, Folders) else path


def _whole(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("expected", "a string without null characters")
    return text


def _no_parent(text: str) -> str:
    if has_parent_reference(text):
        raise PydanticCustomError("expected", "a path without `..`")
    return text


def _secret_whole(secret: SecretStr) -> SecretStr:
    _whole(secret.get_secret_value())
    return secret


def _secret_line(secret: SecretStr) -> SecretStr:
    if any(mark in secret.get_secret_value() for mark in "\0\r\n"):
        raise PydanticCustomError("expected", "a string of one line")
    return secret


def _absolute(path: str) -> str:
    if not path.startswith(("/", "~/")):
        raise PydanticCustomError("expected", "an absolute path, or one that starts with ~/")
    return path


MEANING = "x-expected"


def meaning(words: str) -> dict[str, JsonValue]:
    """Say a pattern in words, for messages."""
    return {MEANING: words}


Text = Annotated[str, Field(min_length=1), AfterValidator(_whole)]
Program = Annotated[str, Field(min_length=1), AfterValidator(_whole), AfterValidator(_no_parent)]
Argument = Annotated[str, AfterValidator(_whole), AfterValidator(_no_parent)]
SecretText = Annotated[SecretStr, AfterValidator(_secret_whole)]
SecretLine = Annotated[SecretStr, AfterValidator(_secret_line)]
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
        max_length=128,
        json_schema_extra=meaning("a name of letters, digits, - and _"),
    ),
]
Segment = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
Variable = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        json_schema_extra=meaning("the name of a variable"),
    ),
]
Url = Annotated[
    str,
    Field(
        pattern=r"^https?://[^\s/]\S*$",
        json_schema_extra=meaning("an http:// or https:// address"),
    ),
]
Glob = Annotated[
    str, Field(pattern=r"^\S+$", json_schema_extra=meaning("an id or a pattern without blanks"))
]
Scope = Annotated[
    str,
    Field(
        pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$",
        json_schema_extra=meaning("a scope without blanks and quotes"),
    ),
]
Word = Annotated[
    str, Field(pattern=r"^[a-z0-9]+$", json_schema_extra=meaning("a word in lower case"))
]
FolderPath = Annotated[str, AfterValidator(_absolute), AfterValidator(resolved)]
HomePath = Annotated[str, Field(min_length=1), AfterValidator(resolved)]

Seconds = Annotated[float, Field(gt=0, le=DAY)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]

TagName = Annotated[
    str,
    AfterValidator(_known_tag),
    WithJsonSchema({"type": "string", "enum": sorted(TAGS)}),
]
RiskName = Annotated[
    Risk,
    BeforeValidator(_risk),
    PlainSerializer(lambda risk: risk.name),
    WithJsonSchema({"type": "string", "enum": list(RISKS)}),
]
Scan = Literal["hold", "warn", "off"]
TrustName = Annotated[Trust, Field(strict=False)]
EffectName = Annotated[Effect, Field(strict=False)]
