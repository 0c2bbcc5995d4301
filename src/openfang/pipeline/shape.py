"""What a result looks like when it leaves: capped, redacted, labelled. Nothing is lost (C7.12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import orjson

from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.results import Part, Result, text_part
from openfang.safety.personal import is_personal
from openfang.storage.state import put_blob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted
    from openfang.safety.redact import Redactor

URI_PREFIX = "openfang://results/"
_BASE64_RATIO = 3 / 4
_CARRIED = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT | Labels.SECRET
"""What went in comes out: a result is no more trusted than its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaper:
    """Applies the caps. `now` is the wall clock in nanoseconds."""

    redactor: Redactor
    now: Callable[[], int]
    max_chars: int = 50_000
    max_binary_bytes: int = 10_000_000
    keep_ns: int = 3_600_000_000_000

    def shape(
        self, admitted: Admitted, result: Result
    ) -> tuple[Result, tuple[tuple[str, Sequence[Any]], ...]]:
        """Return the result as the caller gets it, and what must be stored beside it."""
        structured = b"" if result.structured is None else orjson.dumps(result.structured)
        texts = _texts(result.content)
        probe = "\n".join((*texts, structured.decode()))
        # A lone surrogate could not be written as JSON anywhere: it ends here.
        plain = self.redactor.is_plain(probe.encode())
        if not plain and self.redactor.contains_secret(probe):
            result = self._redacted(result)
        labels = admitted.tool.labels | result.labels | (admitted.labels & _CARRIED)
        # What is public anyway needs no look for personal data.
        if not plain and not labels & Labels.EXTERNAL_NETWORK and is_personal(probe):
            labels |= Labels.PII
        if labels != result.labels:
            result = replace(result, labels=labels)
        large = max(sum(map(len, texts)), len(structured)) > self.max_chars
        if large or any(map(self._too_binary, result.content)):
            return self._stored(admitted, result)
        return result, ()

    def _stored(
        self, admitted: Admitted, result: Result
    ) -> tuple[Result, tuple[tuple[str, Sequence[Any]], ...]]:
        blob = new_id("result")
        whole = orjson.dumps({"content": result.content, "structured": result.structured})
        caller = admitted.call.caller.id
        statement = put_blob(blob, caller, whole, result.labels, self.now() + self.keep_ns)
        return self._cut(result, URI_PREFIX + blob), (statement,)

    def _redacted(self, result: Result) -> Result:
        content = tuple(self._redacted_part(part) for part in result.content)
        return replace(result, content=content, structured=self.redactor.tree(result.structured))

    def _redacted_part(self, part: Part) -> Part:
        text = _text_of(part)
        if text is None:
            return part
        clean = self.redactor.text(text).text
        return part if clean is text else _with_text(part, clean)

    def _too_binary(self, part: Part) -> bool:
        data = _data_of(part)
        return data is not None and len(data) * _BASE64_RATIO > self.max_binary_bytes

    def _cut(self, result: Result, uri: str) -> Result:
        content = self._cut_content(result.content, uri)
        structured = result.structured
        if structured is not None and len(orjson.dumps(structured)) > self.max_chars:
            structured = {"truncated": uri, "characters": len(orjson.dumps(structured))}
        return replace(result, content=content, structured=structured)

    def _cut_content(self, content: Sequence[Part], uri: str) -> tuple[Part, ...]:
        total, left = _text_length(content), self.max_chars
        kept: list[Part] = []
        for part in content:
            text, data = _text_of(part), _data_of(part)
            if data is not None and self._too_binary(part):
                kept.append(text_part(f"[truncated: {len(data)} characters of data, {uri}]"))
            elif text is None:
                kept.append(part)
            elif left > 0:
                kept.append(part if len(text) <= left else _with_text(part, text[:left]))
                left -= len(text)
        if total > self.max_chars:
            marker = f"[truncated: {self.max_chars} of {total} characters, {uri}]"
            kept.append(text_part(marker))
        return tuple(kept)


def _text_of(part: Part) -> str | None:
    """The text of a part, also of a resource that is embedded in it."""
    text = part.get("text")
    if text is None:
        text = _resource(part).get("text")
    return text if isinstance(text, str) else None


def _with_text(part: Part, text: str) -> Part:
    if isinstance(part.get("text"), str):
        return {**part, "text": text}
    return {**part, "resource": {**_resource(part), "text": text}}


def _data_of(part: Part) -> str | None:
    data = part.get("data")
    if data is None:
        data = _resource(part).get("blob")
    return data if isinstance(data, str) else None


def _resource(part: Part) -> dict[str, Any]:
    resource = part.get("resource")
    return cast("dict[str, Any]", resource) if isinstance(resource, dict) else {}


def _texts(content: Sequence[Part]) -> list[str]:
    return [text for part in content if (text := _text_of(part)) is not None]


def _text_length(content: Sequence[Part]) -> int:
    return sum(map(len, _texts(content)))
