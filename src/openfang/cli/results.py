"""`openfang results show`, and how any result is printed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson

from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, is_terminal, json_text, note
from openfang.cli.session import on_home
from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence


def show_result(uri: str, /, *, output: str | None = None, as_json: Json = False) -> None:
    """Print the whole of a result that was cut.

    Args:
        uri: What the cut result names: `openfang://results/...`.
        output: Write it to this file.
    """
    body = on_home(lambda session: session.whole_result(uri))
    if body is None:
        raise NotFound(
            f"{uri} is not kept, no longer kept, or another caller's.",
            way_out="make the call again",
        )
    result = orjson.loads(body)
    text = body.decode() if as_json else readable(result["content"], result["structured"])
    if output is None:
        print_text(text)
    else:
        _write(output, text)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text + "\n")
    except OSError as error:
        raise Usage(f"{file} cannot be written: {error.strerror}.", way_out="name a file") from None
    note(f"{len(text)} characters written to {file}")


def readable(content: Sequence[Mapping[str, Any]], structured: object) -> str:
    """The text of a result; where it has none, its data."""
    parts = [_part(part) for part in content]
    if not parts and structured is not None:
        return json_text(structured, orjson.OPT_INDENT_2)
    return "\n".join(parts)


def _part(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    if isinstance(text, str):
        return text
    if isinstance(resource := part.get("resource"), Mapping):
        return _resource(cast("Mapping[str, Any]", resource))
    if isinstance(uri := part.get("uri"), str):
        return f"{part['name']}: {uri}" if isinstance(part.get("name"), str) else uri
    kind = f"{part.get('type', 'part')} {part.get('mimeType', '')}".strip()
    data = part.get("data")
    size = f", {len(data)} characters of base64" if isinstance(data, str) else ""
    return f"[{kind}{size}]"


def _resource(resource: Mapping[str, Any]) -> str:
    """The text of a resource that came along; of one that is no text, where it is from."""
    text = resource.get("text")
    return text if isinstance(text, str) else f"[resource {resource.get('uri', '')}]"


def print_text(text: str) -> None:
    """Print what a tool said: byte for byte to a pipe, harmless to a terminal."""
    shown = clean(text) if is_terminal(sys.stdout) else text
    sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")
