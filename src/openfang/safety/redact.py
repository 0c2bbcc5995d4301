"""Secrets out of text: only the secret itself is replaced, all else stays byte for byte.

Three kinds of evidence: the shape of well-known credentials, the exact values that the secret store
holds, and (in `json_text`, meant for the audit) the name of a JSON member. Results of tools go
through `text` and `tree`: a member called `token` is often the next page, and must arrive.

JSON stays JSON. Each of its strings is read, redacted and written again. A number that holds a
secret becomes a string, and so does the smallest value around a known value that is itself JSON.

Known limits. A secret without a known shape, name or value is not found, nor one that is base64
encoded, compressed, split over two parts or spelled with other letters. Known values under six
characters are ignored. By name, strings and numbers are replaced, lists and objects are not; in
JSON inside JSON inside JSON a value is replaced up to its first inner quote.

All matching is done by RE2 on bytes, in linear time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import orjson

from openfang.safety.patterns import Pattern, compile_pattern, contained, escape
from openfang.safety.personal import PERSONAL
from openfang.safety.shapes import NAME, NAMED, NEEDLESS, NUMBERS, SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_KEY_BYTES = range(16, 65)
_SHORTEST_VALUE = 6
_DIGEST_BYTES = 6

_MEMBER = compile_pattern(rf"\A{NAME}\z")
_TOKEN = compile_pattern(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_QUOTE = ord('"')
_DIGITS = b"-0123456789"


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret that was replaced; equal secrets have equal digests under one key."""

    kind: str
    digest: str

    @property
    def mark(self) -> str:
        """What stands in its place."""
        return f"[redacted:{self.kind}:{self.digest}]"


class Redacted(NamedTuple):
    """Text without its secrets: the same object where there were none."""

    text: str
    found: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    rank: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: bytes
    found: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """A string, number, word, list or object in JSON text; a member has a name."""

    start: int
    end: int
    name: bytes = b""


_MARK = compile_pattern(r"\A\[redacted:[a-z_]+:[0-9a-f]{12}\]\z")


def _is_mark(text: bytes) -> bool:
    return contained(_MARK, text)


def _has_digit(secret: bytes) -> bool:
    return any(byte in b"0123456789" for byte in secret)


def _is_random(secret: bytes) -> bool:
    """Whether it is no name of a variable: those have neither digits nor capitals together."""
    return _has_digit(secret) or not secret.islower()


def _is_filled_in(secret: bytes) -> bool:
    """Whether it is no placeholder: `***`, `${PASSWORD}`, `{password}`, `%s`."""
    return bool(secret.strip(b"*")) and secret[:1] not in (b"$", b"{", b"%")


_LOOK_AGAIN: dict[str, Callable[[bytes], bool]] = {
    "bearer_token": _has_digit,
    "openai_key": _has_digit,
    "openfang_key": _is_random,
    "url_password": _is_filled_in,
}


class _Scan:
    """Patterns that are tried one by one, behind a single one that says whether any can match."""

    __slots__ = ("_any", "_anything", "_each", "_values", "names")

    def __init__(
        self,
        table: Iterable[tuple[str, str]],
        values: Iterable[bytes] = (),
        *,
        names: bool = False,
    ) -> None:
        rows = (*table, *NAMED, *NUMBERS) if names else tuple(table)
        self.names = names
        self._values = tuple(values)
        self._each: tuple[tuple[str, Pattern], ...] = tuple(
            (kind, compile_pattern(pattern)) for kind, pattern in rows
        )
        patterns = [*(pattern for _, pattern in rows), *map(escape, self._values), NEEDLESS]
        self._anything = "|".join(patterns)
        self._any = compile_pattern(self._anything, groups=False)

    def joined(self, pattern: str) -> Pattern:
        """Make the pattern that finds whatever `possible` or another one finds."""
        return compile_pattern(f"{self._anything}|{pattern}", groups=False)

    def possible(self, text: bytes) -> bool:
        """Whether there may be a secret, in text or in JSON."""
        return contained(self._any, text)

    def spans(self, text: bytes) -> list[_Span]:
        """Find all secrets, those that overlap too, in order."""
        if not self.possible(text):
            return []
        found = [*self.known(text), *self._shaped(text)]
        return sorted(span for span in found if not _is_mark(text[span.start : span.end]))

    def member(self, name: bytes, text: bytes, kind: str) -> list[_Span]:
        """Find the secrets in a member's value, which its name may give away."""
        before = name + b'":"' if name else b""
        cut = len(before)
        spans = [
            _Span(max(span.start - cut, 0), span.rank, span.end - cut, span.kind)
            for span in self.spans(before + text)
            if span.end > cut
        ]
        if self.names and text and contained(_MEMBER, name) and not _is_mark(text):
            spans.append(_Span(0, len(self._each), len(text), kind))
        return sorted(spans)

    def known(self, text: bytes) -> Iterator[_Span]:
        """Find the known values."""
        for value in self._values:
            start = text.find(value)
            while start >= 0:
                yield _Span(start, 0, start + len(value), "known_value")
                start = text.find(value, start + 1)

    def _shaped(self, text: bytes) -> Iterator[_Span]:
        for rank, (kind, pattern) in enumerate(self._each, 1):
            look_again = _LOOK_AGAIN.get(kind)
            for match in pattern.finditer(text):
                start, end = match.span(1)
                if look_again is None or look_again(text[start:end]):
                    yield _Span(start, rank, end, kind)


class _Pending:
    """Known values in JSON text for which the smallest value around them is still looked for."""

    __slots__ = ("_ahead", "_passed")

    def __init__(self, spans: Iterable[_Span]) -> None:
        self._ahead = [*_merged(sorted(spans))][::-1]
        self._passed: list[_Span] = []

    def take(self, start: int, end: int) -> _Span | None:
        """Take out what lies between, and return the first. The ends must not go back."""
        while self._ahead and self._ahead[-1].end <= end:
            self._passed.append(self._ahead.pop())
        taken = None
        while self._passed and self._passed[-1].start >= start:
            taken = self._passed.pop()
        return taken


class Redactor:
    """Replaces secrets by marks that hold a keyed digest, so that equal secrets can be told."""

    __slots__ = ("_either", "_key", "_named", "_plain", "_text")

    def __init__(self, key: bytes, values: Iterable[str] = ()) -> None:
        if len(key) not in _KEY_BYTES:
            raise ValueError(f"A redaction key has 16 to 64 bytes, not {len(key)}")
        self._key = key
        self._plain: dict[bytes, bytes] = {}
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """Know these values as well, from now on."""
        self._plain |= {
            spelled: _encode(value)
            for value in values
            if len(value) >= _SHORTEST_VALUE
            for spelled in _spellings(value)
        }
        self._text = _Scan(SHAPES, self._plain)
        self._named = _Scan(SHAPES, self._plain, names=True)
        self._either: Pattern | None = None

    def text(self, text: str) -> Redacted:
        """Replace secrets that are known by shape or value. A list or object in JSON stays JSON."""
        return self._redact(text, self._text, '{["')

    def json_text(self, text: str, *, names: bool = True) -> Redacted:
        """Replace these, and what a JSON member's name calls a secret. JSON stays JSON."""
        return self._redact(text, self._named if names else self._text, "")

    def tree(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Replace what `text` replaces in JSON that has been read: the same object if nothing."""
        text = orjson.dumps(value).decode()
        clean = self.json_text(text, names=False).text
        return value if clean is text else orjson.loads(clean)

    def contains_secret(self, text: str) -> bool:
        """Whether `text` would change anything."""
        return bool(self.text(text).found)

    def is_plain(self, source: bytes) -> bool:
        """Whether one look is enough to see that it holds neither secrets nor personal data."""
        if self._either is None:  # most commands look at no result
            self._either = self._text.joined(PERSONAL)
        return not contained(self._either, source)

    def _redact(self, text: str, scan: _Scan, opening: str) -> Redacted:
        source = _encode(text)
        if not scan.possible(source):
            return Redacted(text)
        if _is_json(text, opening):
            clean, found = _applied(source, self._edits(source, scan))
        else:
            clean, found = self._replaced(source, scan.spans(source))
        return Redacted(_decode(clean), found) if found else Redacted(text)

    def _edits(self, source: bytes, scan: _Scan) -> list[_Edit]:
        pending = _Pending(scan.known(source))
        edits: list[_Edit] = []
        for value in _values(source):
            if source[value.start] == _QUOTE:
                pending.take(value.start + 1, value.end - 1)
            span = pending.take(value.start, value.end)
            edit = self._whole(value, span, source) if span else self._leaf(value, source, scan)
            if edit:
                # What was found inside a list or object goes with it.
                while edits and edits[-1].start >= edit.start:
                    edits.pop()
                edits.append(edit)
        around = pending.take(0, len(source))
        return [self._whole(_Value(0, len(source)), around, source)] if around else edits

    def _leaf(self, value: _Value, source: bytes, scan: _Scan) -> _Edit | None:
        token = source[value.start : value.end]
        if token[0] == _QUOTE:
            text = _read(token)
            clean, found = self._replaced(text, scan.member(value.name, text, "named_secret"))
            return _Edit(value.start, value.end, _written(clean, token), found) if found else None
        spans = scan.member(value.name, token, "named_number") if token[0] in _DIGITS else []
        if not spans:
            return None
        return self._whole(value, _Span(value.start, 0, value.end, spans[0].kind), source)

    def _whole(self, value: _Value, span: _Span, source: bytes) -> _Edit:
        finding = self._finding(span, source[span.start : span.end])
        return _Edit(value.start, value.end, f'"{finding.mark}"'.encode(), (finding,))

    def _replaced(self, source: bytes, spans: list[_Span]) -> tuple[bytes, tuple[Finding, ...]]:
        edits: list[_Edit] = []
        for span in _merged(spans):
            finding = self._finding(span, source[span.start : span.end])
            mark = finding.mark if span.kind != "named_number" else f'"{finding.mark}"'
            edits.append(_Edit(span.start, span.end, mark.encode(), (finding,)))
        return _applied(source, edits)

    def _finding(self, span: _Span, secret: bytes) -> Finding:
        plain = self._plain.get(secret, secret)
        digest = blake2b(plain, key=self._key, digest_size=_DIGEST_BYTES)
        return Finding(span.kind, digest.hexdigest())


_ANYWHERE = _Scan(SHAPES)


def looks_secret(text: str) -> bool:
    """Whether anything in the text has the shape of a credential."""
    return bool(_ANYWHERE.spans(_encode(text)))


def _merged(spans: list[_Span]) -> Iterator[_Span]:
    """Join what overlaps; the first keeps its kind."""
    if not spans:
        return
    current = spans[0]
    for span in spans[1:]:
        if span.start < current.end:
            end = max(span.end, current.end)
            current = _Span(current.start, current.rank, end, current.kind)
        else:
            yield current
            current = span
    yield current


def _spellings(value: str) -> set[bytes]:
    """Write a value as text, as JSON with and without escapes, and as part of a URL."""
    shown = json.dumps(value, ensure_ascii=False)[1:-1]
    escaped = json.dumps(value)[1:-1]
    inside = json.dumps(shown, ensure_ascii=False)[1:-1]
    in_url = quote(_encode(value), safe="")
    spellings = (value, shown, escaped, inside, in_url, _compact(value))
    return {_encode(spelled) for spelled in spellings if len(spelled) >= _SHORTEST_VALUE}


def _compact(value: str) -> str:
    """Write a value that is JSON as it comes out when somebody has read it and written it again."""
    try:
        return orjson.dumps(orjson.loads(value)).decode()
    except ValueError:
        return value


def _is_json(text: str, opening: str) -> bool:
    if opening and text.lstrip()[:1] not in tuple(opening):
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _values(source: bytes) -> Iterator[_Value]:
    """Find the values in JSON text, the inner before the outer."""
    opened: list[int] = []
    name = last = b""
    for match in _TOKEN.finditer(source):
        start, end = match.span()
        match source[start : start + 1]:
            case b"{" | b"[":
                opened.append(start)
                name = b""
            case b"}" | b"]":
                yield _Value(opened.pop(), end)
            case b",":
                name = b""
            case b":":
                name = _read(last)
            case _:
                last = source[start:end]
                yield _Value(start, end, name)


def _read(token: bytes) -> bytes:
    if b"\\" not in token:
        return token[1:-1]
    return _encode(json.loads(_decode(token)))


def _written(text: bytes, like: bytes) -> bytes:
    return _encode(json.dumps(_decode(text), ensure_ascii=like.isascii()))


def _applied(source: bytes, edits: list[_Edit]) -> tuple[bytes, tuple[Finding, ...]]:
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        pieces += (source[done : edit.start], edit.text)
        done = edit.end
    found = tuple(finding for edit in edits for finding in edit.found)
    return b"".join((*pieces, source[done:])), found


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
