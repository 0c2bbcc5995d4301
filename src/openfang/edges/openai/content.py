"""The content of a message: its text, and what is attached to it. No I/O."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.edges.openai.faults import Unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.core.results import Part

_DATA: Final = re.compile(r"(?i)data:([a-z]+/[a-z0-9.+-]{1,100})((?:;[a-z0-9=-]{1,50}){0,5}),")
_BASE64: Final = ";base64"
_IMAGE: Final = "image/"
_LONGEST_NAME: Final = 200


def text_in(content: object) -> str:
    """Join what is text in it."""
    if isinstance(content, str):
        return content
    said = (part.get("text") or part.get("refusal") or "" for part in _parts(content))
    return "\n".join(filter(None, said))


def _parts(content: object) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", content) if isinstance(content, list) else []


def files_in(content: object, place: str) -> Sequence[Part]:
    """Find pictures and files in it."""
    return tuple(_files(_parts(content), place))


def _files(parts: Sequence[Mapping[str, Any]], place: str) -> Iterator[Part]:
    for number, part in enumerate(parts):
        where = f"{place}[{number}]"
        match part:
            case {"type": "text", "text": _} | {"type": "refusal", "refusal": _}:
                continue
            case {"type": "image_url", "image_url": {"url": url}}:
                yield _picture(url, f"{where}.image_url.url")
            case {"type": "file", "file": {"file_data": data, **rest}}:
                yield _file(data, rest.get("filename"), f"{where}.file.file_data")
            case _:
                raise Unfit(
                    f"{where} is a part of the type {part['type']} that cannot be read here.",
                    where,
                    rule="unsupported_content",
                    way_out="text, image_url with a data: URL, or file with file_data",
                )


def _picture(url: str, place: str) -> Part:
    mime, data = _read(url, place)
    if not mime.startswith(_IMAGE):
        raise Unfit(f"{place} is {mime}, and no image.", place, rule="invalid_image")
    return {"type": "file", "name": "image", "mime_type": mime, "data": data}


def _file(url: str, name: str | None, place: str) -> Part:
    mime, data = _read(url, place)
    return {
        "type": "file",
        "name": (name or "file")[:_LONGEST_NAME],
        "mime_type": mime,
        "data": data,
    }


def _read(url: str, place: str) -> tuple[str, str]:
    """Read a data URL. Nothing is ever fetched: who sends an address could choose any."""
    found = _DATA.match(url)
    if found is None or not found[2].lower().endswith(_BASE64):
        raise Unfit(
            f"{place} is no data: URL in base64, and nothing is fetched for a client.",
            place,
            rule="remote_file" if url[:4].lower() == "http" else "invalid_data_url",
            way_out="send it along: data:image/png;base64,...",
        )
    data = url[found.end() :]
    try:
        b64decode(data, validate=True)
    except ValueError:
        raise Unfit(f"{place} is no base64.", place, rule="invalid_base64") from None
    return found[1].lower(), data
