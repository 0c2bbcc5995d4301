"""What an agent made on its way, as parts of its result: each part says to which it belongs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from openfang.core.results import text_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from openfang.core.agents import Artifact

KEY: Final = "openfang/artifact"
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


def artifact_parts(artifacts: Iterable[Artifact]) -> Iterator[Mapping[str, Any]]:
    """Write artifacts as parts that every client of ours understands."""
    for artifact in artifacts:
        for part in artifact.parts:
            plain = _plain(artifact.name, part)
            yield {**plain, "_meta": {**_meta(plain), KEY: artifact.name}}


def artifacts_of(content: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Find them again among the parts of a result."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in content:
        name = _meta(part).get(KEY)
        if isinstance(name, str):
            found.setdefault(name, []).append(_unmarked(part))
    return [{"name": name, "parts": parts} for name, parts in found.items()]


def _plain(name: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
    match part:
        case {"type": "file", "data": str(data)}:
            mime = str(part.get("mime_type") or _BYTES)
            return _resource(str(part.get("name") or name), mime, "blob", data)
        case {"type": "data", "data": data}:
            return _resource(name, _JSON, "text", json.dumps(data, ensure_ascii=False))
        case {"type": "text", "text": str(text), "mime_type": str(mime)}:
            return _resource(name, mime, "text", text)
        case {"type": str()}:
            return part
        case _:
            return text_part(json.dumps(dict(part), ensure_ascii=False))


def _resource(name: str, mime: str, kind: str, content: str) -> Mapping[str, Any]:
    uri = f"artifact:{quote(name)}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, kind: content}}


def _meta(part: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = part.get("_meta")
    return cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else {}


def _unmarked(part: Mapping[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in _meta(part).items() if key != KEY}
    plain = {key: value for key, value in part.items() if key != "_meta"}
    return {**plain, "_meta": meta} if meta else plain
