"""What a result looks like when it leaves: capped, redacted, labelled. Nothing is lost (C7.12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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
        probe = "\n".join((*_texts(result.content), structured.decode()))
        if self.redactor.contains_secret(probe):
            result = self._redacted(result)
        labels = self._labels(admitted, result, probe)
        if labels != result.labels:
            result = replace(result, labels=labels)
        if self._fits(result, len(structured)):
            return result, ()
        return self._stored(admitted, result)

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
        return replace(result, content=content, structured=self._redacted_json(result.structured))

    def _redacted_part(self, part: Part) -> Part:
        text = part.get("text")
        if not isinstance(text, str):
            return part
        clean = self.redactor.text(text).text
        return part if clean is text else {**part, "text": clean}

    def _redacted_json(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if value is None:
            return None
        text = orjson.dumps(value).decode()
        clean = self.redactor.text(text).text
        return value if clean is text else orjson.loads(clean)

    def _labels(self, admitted: Admitted, result: Result, probe: str) -> Labels:
        """Label by what the tool is and, unless it is public anyway, by what the text holds."""
        labels = admitted.tool.labels | result.labels | admitted.labels
        if labels & Labels.EXTERNAL_NETWORK or not is_personal(probe):
            return labels
        return labels | Labels.PII

    def _fits(self, result: Result, structured: int) -> bool:
        if _text_length(result.content) > self.max_chars or structured > self.max_chars:
            return False
        return not any(self._too_binary(part) for part in result.content)

    def _too_binary(self, part: Part) -> bool:
        data = part.get("data")
        return isinstance(data, str) and len(data) * _BASE64_RATIO > self.max_binary_bytes

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
            text = part.get("text")
            if self._too_binary(part):
                kept.append(
                    text_part(f"[truncated: {len(part['data'])} characters of data, {uri}]")
                )
            elif not isinstance(text, str):
                kept.append(part)
            elif left > 0:
                kept.append(part if len(text) <= left else {**part, "text": text[:left]})
                left -= len(text)
        if total > self.max_chars:
            marker = f"[truncated: {self.max_chars} of {total} characters, {uri}]"
            kept.append(text_part(marker))
        return tuple(kept)


def _texts(content: Sequence[Part]) -> list[str]:
    return [part["text"] for part in content if isinstance(part.get("text"), str)]


def _text_length(content: Sequence[Part]) -> int:
    return sum(map(len, _texts(content)))
