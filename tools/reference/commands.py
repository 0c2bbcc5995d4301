"""Every command with all its options, from the parser itself."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tools.reference.tables import table

from openfang.cli.app import _CHAPTERS, _COMMANDS, _GROUPS, _PLAIN, build_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cyclopts import App
    from cyclopts.argument import Argument

_ARGS = re.compile(r"^Args:\n.*", re.MULTILINE | re.DOTALL)
_OF_TYPE: Final = {"int": "N", "float": "SECONDS"}


def commands() -> str:
    """Chapter by chapter, as `openfang --help` lists them."""
    return "\n".join(
        f"## {chapter}\n\n" + "\n".join(text for name in names for text in _of(name))
        for chapter, names in _CHAPTERS.items()
    )


def _of(name: str) -> Iterator[str]:
    if name in _COMMANDS:
        yield _command(name)
        return
    said, inside = _GROUPS[name]
    yield f"### {name}\n\n{said}\n"
    for one in inside:
        yield _command(name, one)


def _command(*path: str) -> str:
    app = _parser()
    for name in path:
        app = app[name]
    found = [one for one in arguments(app) if one.show]
    usage = " ".join(["openfang", *path, *_shape(found)])
    parts = [f"{'#' * (2 + len(path))} openfang {' '.join(path)}", _said(app)]
    if found:
        parts.append(_options(found))
    parts.insert(1, f"`{usage}`")
    return "\n\n".join(part for part in parts if part) + "\n"


def _options(found: list[Argument]) -> str:
    """A table of them; where none has values to choose from, without a column for those."""
    rows = [(_names(one), one.parameter.help or "", _values(one)) for one in found]
    width = 3 if any(values for _, _, values in rows) else 2
    heads = ("option", "meaning", "values")[:width]
    return table(heads, [row[:width] for row in rows]).rstrip("\n")


@cache
def _parser() -> App:
    return build_app()


def arguments(app: App) -> list[Argument]:
    """Everything that a command takes."""
    return list(app.assemble_argument_collection(default_parameter=_PLAIN, parse_docstring=True))


def _said(app: App) -> str:
    """What a command says of itself, without its arguments, which the table has."""
    command: Any = app.default_command
    lines = (command.__doc__ or "").strip().splitlines()
    text = "\n".join(line.strip() for line in lines)
    return _ARGS.sub("", text).strip()


def _shape(found: list[Argument]) -> Iterator[str]:
    positional = [one for one in found if not one.names[0].startswith("-")]
    for one in positional:
        name = one.names[0] + ("..." if "VAR" in one.field_info.kind.name else "")
        yield name if one.required else f"[{name}]"
    if len(positional) < len(found):
        yield "[OPTIONS]"


def _names(one: Argument) -> str:
    value = _value(one)
    return ", ".join(f"`{name}{value}`" for name in one.names)


def _value(one: Argument) -> str:
    """A word for what follows an option; a switch has nothing."""
    if not one.names[0].startswith("-") or one.hint is bool:
        return ""
    plain = str(one.hint).replace(" | None", "")
    kind = next((word for name, word in _OF_TYPE.items() if name in plain), "")
    return f" {kind or one.names[0].strip('-').upper().replace('-', '_')}"


def _values(one: Argument) -> str:
    choices = one.get_choices() or ()
    default = one.field_info.default
    told = [", ".join(f"`{choice}`" for choice in choices)] if choices else []
    if one.required:
        told.append("required")
    elif isinstance(default, (str, int, float)) and not isinstance(default, bool) and default:
        told.append(f"else `{getattr(default, 'value', default)}`")
    return "; ".join(told)
