"""What a result looks like when it leaves: capped, redacted, labelled. Nothing is lost (C7.12)."""

from __future__ import annotations

import re
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import orjson

from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.results import Part, Result, text_part
from openfang.core.values import dataclass
from openfang.safety.personal import is_personal
from openfang.storage.state import MOST_KEPT, Statement, drop_oldest_blobs, put_blob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.safety.redact import Redactor

Shaped: TypeAlias = tuple[Result, tuple[Statement, ...]]
URI_PREFIX = "openfang://results/"
_BASE64_RATIO = 3 / 4
_MOST_PARTS = 10_000
_SHARES = 16
_USUAL = frozenset({"type", "text", "data", "mimeType"})
_CUT_ONCE = re.compile(rf"\n?\[truncated: \d+ of \d+ characters, {URI_PREFIX}\w+\]\Z")
_LONGEST_MARK = 200
_SMALL = 300
_MOST_FIELDS = 32
_CARRIED_BY_PARTS = frozenset({"text", "data", "blob"})
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
    max_kept_bytes: int = MOST_KEPT
    _lately: dict[str, int] = field(init=False, default_factory=dict[str, int])

    def shape(self, admitted: Admitted, result: Result, looked: Looked) -> Shaped:
        """Return the result as the caller gets it, and what must be stored beside it."""
        texts, structured, beside, weight = looked
        probe = "\n".join((*texts, structured.decode(), beside))
        # A lone surrogate could not be written as JSON anywhere: it ends here.
        plain = self.redactor.is_plain(probe.encode())
        if not plain and self.redactor.contains_secret(probe):
            result = self._redacted(result)
        usual = Labels.NONE if result.vouched else admitted.tool.labels
        labels = usual | result.labels | (admitted.labels & _CARRIED)
        # What is public anyway needs no look for personal data.
        if not plain and not labels & Labels.EXTERNAL_NETWORK and is_personal(probe):
            labels |= Labels.PII
        if labels != result.labels:
            result = result.labelled(labels)
        # Where all of it together is not too much, none of it is.
        if weight <= self.max_chars and len(result.content) <= _MOST_PARTS:
            return result, ()
        large = max(sum(map(_length, texts)), len(structured)) > self.max_chars
        if large or self._crowded(result) or any(map(self._too_binary, result.content)):
            return self._stored(admitted, result)
        return result, ()

    def _crowded(self, result: Result) -> bool:
        """Whether there is too much of what nobody caps by itself."""
        beside = self._too_long(result.meta) or self._too_long(result.extra)
        return beside or len(result.content) > _MOST_PARTS

    def _too_long(self, fields: Mapping[str, Any]) -> bool:
        return bool(fields) and len(orjson.dumps(fields)) > self.max_chars

    def _stored(self, admitted: Admitted, result: Result) -> Shaped:
        blob = new_id("result")
        everything: dict[str, Any] = {"content": result.content, "structured": result.structured}
        if result.meta or result.extra:
            everything |= {"meta": result.meta, "extra": result.extra}
        whole = orjson.dumps(everything)
        caller = admitted.call.root  # who hears of it in the end is who may read it
        kept = put_blob(blob, caller, whole, result.labels, self.now() + self.keep_ns)
        return self._cut(result, URI_PREFIX + blob), (kept, *self.room(blob, caller, len(whole)))

    def room(self, blob: str, caller: str, size: int) -> tuple[Statement, ...]:
        """Make room now and then: to find out what a caller has takes a look at all of it."""
        share = self.max_kept_bytes // _SHARES
        stored = self._lately.get(caller, share) + size
        self._lately[caller] = stored if stored <= share else 0
        if stored <= share:
            return ()
        return (drop_oldest_blobs(blob, caller, self.max_kept_bytes - share),)

    def _redacted(self, result: Result) -> Result:
        return replace(
            result,
            content=tuple(self._redacted_part(part) for part in result.content),
            structured=self.redactor.tree(result.structured),
            meta=self.redactor.tree(result.meta),
            extra=self.redactor.tree(result.extra),
            fault=self.redactor.tree(result.fault),
        )

    def _redacted_part(self, part: Part) -> Part:
        text = _text_of(part)
        if text is not None:
            clean = self.redactor.text(text).text
            part = part if clean is text else _with_text(part, clean)
        if part.keys() <= _USUAL:
            return part
        around = _around(part)
        kept = self.redactor.tree(around)
        return part if kept is around else _merged(part, kept)

    def _too_binary(self, part: Part) -> bool:
        data = _data_of(part)
        if data is not None and len(data) * _BASE64_RATIO > self.max_binary_bytes:
            return True
        if part.keys() <= _USUAL:
            return False
        return len(orjson.dumps(part)) > self.max_binary_bytes / _BASE64_RATIO + self.max_chars

    def _cut(self, result: Result, uri: str) -> Result:
        structured = result.structured
        if structured is not None and len(orjson.dumps(structured)) > self.max_chars:
            structured = _small_fields(structured) | {
                "truncated": uri,
                "characters": len(orjson.dumps(structured)),
            }
        cut = {"truncated": uri}
        return replace(
            result,
            content=self._cut_content(result.content, uri),
            structured=structured,
            meta=cut if self._too_long(result.meta) else result.meta,
            extra=cut if self._too_long(result.extra) else result.extra,
        )

    def _cut_content(self, content: Sequence[Part], uri: str) -> tuple[Part, ...]:
        total, left = _text_length(content), self.max_chars
        kept: list[Part] = []
        for part in content[:_MOST_PARTS]:
            text = _text_of(part)
            if self._too_binary(part):
                size = len(_data_of(part) or orjson.dumps(part))
                kept.append(text_part(f"[truncated: {size} characters of data, {uri}]"))
            elif text is None:
                kept.append(part)
            elif left > 0:
                kept.append(part if _length(text) <= left else _with_text(part, text[:left]))
                left -= _length(text)
        if total > self.max_chars:
            marker = f"[truncated: {self.max_chars} of {total} characters, {uri}]"
            kept.append(text_part(marker))
        elif len(content) > _MOST_PARTS:
            kept.append(text_part(f"[truncated: {_MOST_PARTS} of {len(content)} parts, {uri}]"))
        return tuple(kept)


def _small_fields(structured: object) -> dict[str, Any]:
    """What says something in a few words of what was cut: numbers, names, short texts."""
    if not isinstance(structured, dict):
        return {}
    fields = cast("dict[str, Any]", structured)
    small = ((key, value) for key, value in fields.items() if len(orjson.dumps(value)) <= _SMALL)
    return dict(islice(small, _MOST_FIELDS))


class Looked(NamedTuple):
    """What there is to look through in a result: its texts, and the rest of it as JSON.

    `weight` is how many characters that is, and what has to be stored besides.
    """

    texts: Sequence[str]
    structured: bytes
    beside: str
    weight: int


def look(result: Result) -> Looked:
    """Write down once what several steps look at."""
    structured = b"" if result.structured is None else orjson.dumps(result.structured)
    texts, beside = _texts(result.content), _beside(result)
    binary = sum(len(_data_of(part) or "") for part in result.content)
    weight = sum(map(len, texts)) + binary + len(structured) + len(beside)
    return Looked(texts, structured, beside, weight)


def texts_of(result: Result) -> Sequence[str]:
    """The texts of a result."""
    return _texts(result.content)


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


def _beside(result: Result) -> str:
    """Everything that is neither text nor data, as JSON: secrets hide there, too."""
    around = [_around(part) for part in result.content if not part.keys() <= _USUAL]
    if not (around or result.meta or result.extra or result.fault):
        return ""
    return orjson.dumps([around, result.meta, result.extra, result.fault]).decode()


def _around(part: Part) -> dict[str, Any]:
    """All fields of a part but the text and the data that it carries."""
    around = {name: value for name, value in part.items() if name not in _CARRIED_BY_PARTS}
    if resource := _resource(part):
        around["resource"] = {k: v for k, v in resource.items() if k not in _CARRIED_BY_PARTS}
    return around


def _merged(part: Part, around: dict[str, Any]) -> Part:
    merged = {**part, **around}
    if resource := _resource(part):
        merged["resource"] = {**resource, **around["resource"]}
    return merged


def _texts(content: Sequence[Part]) -> list[str]:
    return [text for part in content if (text := _text_of(part)) is not None]


def _text_length(content: Sequence[Part]) -> int:
    return sum(map(_length, _texts(content)))


def _length(text: str) -> int:
    """Count a text without the mark at its end: what was cut once is handed on as it is."""
    marked = _CUT_ONCE.search(text[-_LONGEST_MARK:])
    return len(text) - len(marked[0]) if marked else len(text)
