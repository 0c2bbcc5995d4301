"""The configuration in force, as a dict or as TOML, without what is secret."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import SecretStr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from openfang.config.fields import Section
    from openfang.config.models import Config

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain]"

HIDDEN = "***"
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@]+@")
_QUERY = re.compile(
    r"([?&][^=&\s#]*(?:key|token|secret|password|signature)[^=&\s#]*=)[^&\s#]+", re.IGNORECASE
)
_NAMED = re.compile(r"\A(-{0,2}[\w.-]+)(\s*=\s*|:(?!//)\s*)(.+)\Z", re.DOTALL)
_SECRET_NAME = re.compile(
    r"(?:\A|[_.-])(?:key|apikey|token|secret|pass|passwd|password|passphrase|pwd|pat|jwt|dsn|auth|"
    r"authorization|bearer|cookie|credentials?|signature|connection_string|database_url)\Z",
    re.IGNORECASE,
)
_BARE = re.compile(r"\A[A-Za-z0-9_-]+\Z")


def without_credentials(text: str) -> str:
    """Hide the user part and secret parameters of every address in a text."""
    return _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))


def without_secrets(words: Iterable[str]) -> list[str]:
    """Hide these in the words of a command, and what its options and variables call secret."""
    shown: list[str] = []
    awaited = False
    for word in words:
        option = word.startswith("-")
        shown.append(HIDDEN if awaited and not option else _without_secret(word))
        awaited = option and _names_secret(word)
    return shown


def _without_secret(word: str) -> str:
    """Read `--name=value`, `NAME=value`, `Name: value`, and a line that a shell would read."""
    before, rest = "", without_credentials(word)
    while named := _NAMED.match(rest):
        name, mark, rest = named.groups()
        before += name + mark
        if _names_secret(name):
            return before + HIDDEN
    return before + (" ".join(without_secrets(rest.split(" "))) if " " in rest else rest)


def _names_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_")))


def as_dict(config: Section) -> dict[str, Plain]:
    """Give every key that has a value; secrets are `***`."""
    return cast("dict[str, Plain]", _plain(config.model_dump()))


def as_toml(config: Config) -> str:
    """Write the configuration as a file that, but for its secrets, would load to the same."""
    return toml_text(as_dict(config))


def toml_text(table: Mapping[str, Plain]) -> str:
    """Write a table as TOML: values first, then the tables below it."""
    return "\n".join(_table(table, ())).lstrip("\n") + "\n"


def toml_table(path: Iterable[str], table: Mapping[str, Plain]) -> str:
    """Write one table under a header of its own; those inside of it stand in braces."""
    pairs = (f"{_key(key)} = {_value(value)}" for key, value in table.items())
    return "".join(f"{line}\n" for line in (f"[{'.'.join(map(_key, path))}]", *pairs))


def _plain(value: object) -> Plain:
    match value:
        case dict():
            table = cast("dict[str, object]", value)
            return {key: _member(key, inner) for key, inner in table.items() if inner is not None}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[object]", value)]
        case _:
            return _scalar(value)


def _member(key: str, value: object) -> Plain:
    if key == "args" and isinstance(value, tuple):
        return [*without_secrets(map(str, cast("tuple[object, ...]", value)))]
    return _plain(value)


def _scalar(value: object) -> Plain:
    match value:
        case SecretStr():
            return HIDDEN
        case Enum():
            return str(value.value)
        case str():
            return without_credentials(value)
        case float() if value.is_integer():
            return int(value)
        case bool() | int() | float():
            return value
        case _:
            raise TypeError(f"no plain form of {type(value).__name__}")


def _table(table: Mapping[str, Plain], path: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        if not _is_section(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if _is_section(value):
            yield from _section(value, (*path, key))


def _section(value: Plain, path: tuple[str, ...]) -> Iterator[str]:
    name = ".".join(map(_key, path))
    if isinstance(value, dict):
        yield from ("", f"[{name}]")
        yield from _table(value, path)
        return
    for entry in cast("list[dict[str, Plain]]", value):
        yield from ("", f"[[{name}]]")
        yield from _table(entry, path)


def _is_section(value: Plain) -> bool:
    match value:
        case dict():
            return True
        case list():
            return bool(value) and all(isinstance(entry, dict) for entry in value)
        case _:
            return False


def _value(value: Any) -> str:  # noqa: ANN401 - any plain value
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case dict():
            table = cast("dict[str, Any]", value)
            pairs = (f"{_key(key)} = {_value(inner)}" for key, inner in table.items())
            return f"{{ {', '.join(pairs)} }}" if table else "{}"
        case _:
            return str(value)


def _key(key: str) -> str:
    return key if _BARE.match(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's too, but JSON leaves the delete character as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
