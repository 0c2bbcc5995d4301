"""Secrets out of text: only the secret itself is replaced, all else stays byte for byte.

Three kinds of evidence: the shape of well-known credentials, the exact values that the secret store
holds, and (in `json_text`, meant for the audit) the name of a JSON member. Results of tools go
through `text` and `tree`: a member called `token` is often the next page, and must arrive.

JSON stays JSON. Each of its strings is read, redacted and written again. A number that holds a
secret becomes a string, and so does the smallest value around a known value that is itself JSON.

A known value is replaced in base64 and hexadecimal, too. What is about to leave is looked through
more closely (`leaks`): everything in percent, base64 or hexadecimal is read, and what stands there
is looked at like the rest.

Known limits. A secret without a known shape, name or value is not found, nor one that is
compressed, encrypted, encoded in any other way or more than once (percent up to three times), split
over two parts or by blanks, or spelled with other letters. Of base64, the letters at either end may
belong to its surroundings, too: those stay. Known values under six characters are ignored. By name,
strings and numbers are replaced, lists and objects are not; in JSON inside JSON inside JSON a value
is replaced up to its first inner quote.

All matching is done by RE2 on bytes, in linear time.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from openfang.core.values import dataclass
from openfang.safety.known import Known, encoded
from openfang.safety.patterns import Pattern, compile_pattern, contained
from openfang.safety.personal import PERSONAL
from openfang.safety.scan import Scan, Span
from openfang.safety.shapes import SHAPES
from openfang.safety.unwrap import unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEY_BYTES = range(16, 65)
_DIGEST_BYTES = 6

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


class _Pending:
    """Known values in JSON text for which the smallest value around them is still looked for."""

    __slots__ = ("_ahead", "_passed")

    def __init__(self, spans: Iterable[Span]) -> None:
        self._ahead = [*_merged(sorted(spans))][::-1]
        self._passed: list[Span] = []

    def take(self, start: int, end: int) -> Span | None:
        """Take out what lies between, and return the first. The ends must not go back."""
        while self._ahead and self._ahead[-1].end <= end:
            self._passed.append(self._ahead.pop())
        taken = None
        while self._passed and self._passed[-1].start >= start:
            taken = self._passed.pop()
        return taken


class _Book:
    """What is looked for while nothing more is learnt, and how each known value is spelled."""

    __slots__ = ("_either", "named", "plain", "text")

    def __init__(self, known: Known) -> None:
        self.plain = known.spelled()
        self.text = Scan(SHAPES, self.plain)
        self.named = Scan(SHAPES, self.plain, names=True)
        self._either: Pattern | None = None

    @property
    def either(self) -> Pattern:
        """Secrets and personal data in one; most commands look at no result."""
        if self._either is None:
            self._either = self.text.joined(PERSONAL)
        return self._either


class Redactor:
    """Replaces secrets by marks that hold a keyed digest, so that equal secrets can be told."""

    __slots__ = ("_book", "_key", "_known", "_learning")

    def __init__(self, key: bytes, values: Iterable[str] = ()) -> None:
        if len(key) not in _KEY_BYTES:
            raise ValueError(f"A redaction key has 16 to 64 bytes, not {len(key)}")
        self._key = key
        self._learning = Lock()
        self._known = Known().learnt(values)
        self._book = _Book(self._known)

    def learn(self, values: Iterable[str], owner: str = "") -> None:
        """Know these values as well, from now on; of an owner's, those of the last two times.

        It takes a while: use it in a thread where others wait.
        """
        with self._learning:
            known = self._known.learnt(values, owner)
            if known.values != self._known.values:
                book = _Book(known)
                _ = book.either
                self._book = book
            self._known = known

    def text(self, text: str) -> Redacted:
        """Replace secrets that are known by shape or value. A list or object in JSON stays JSON."""
        return self._redact(text, self._book.text, '{["')

    def json_text(self, text: str, *, names: bool = True) -> Redacted:
        """Replace these, and what a JSON member's name calls a secret. JSON stays JSON."""
        return self._redact(text, self._book.named if names else self._book.text, "")

    def tree(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Replace what `text` replaces in JSON that has been read: the same object if nothing."""
        text = orjson.dumps(value).decode()
        clean = self.json_text(text, names=False).text
        return value if clean is text else orjson.loads(clean)

    def contains_secret(self, text: str) -> bool:
        """Whether `text` would change anything."""
        return bool(self.text(text).found)

    def leaks(self, source: bytes) -> bool:
        """Whether a secret would leave with this, also in one of the usual encodings."""
        if self.contains_secret(_decode(source)):
            return True
        scan = self._book.text
        return any(scan.spans(inner) for inner in unwrapped(source))

    def is_plain(self, source: bytes) -> bool:
        """Whether one look is enough to see that it holds neither secrets nor personal data."""
        return not contained(self._book.either, source)

    def _redact(self, text: str, scan: Scan, opening: str) -> Redacted:
        source = encoded(text)
        if not scan.possible(source):
            return Redacted(text)
        if _is_json(text, opening):
            clean, found = _applied(source, self._edits(source, scan))
        else:
            clean, found = self._replaced(source, scan.spans(source))
        return Redacted(_decode(clean), found) if found else Redacted(text)

    def _edits(self, source: bytes, scan: Scan) -> list[_Edit]:
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

    def _leaf(self, value: _Value, source: bytes, scan: Scan) -> _Edit | None:
        token = source[value.start : value.end]
        if token[0] == _QUOTE:
            text = _read(token)
            clean, found = self._replaced(text, scan.member(value.name, text, "named_secret"))
            return _Edit(value.start, value.end, _written(clean, token), found) if found else None
        spans = scan.member(value.name, token, "named_number") if token[0] in _DIGITS else []
        if not spans:
            return None
        return self._whole(value, Span(value.start, 0, value.end, spans[0].kind), source)

    def _whole(self, value: _Value, span: Span, source: bytes) -> _Edit:
        finding = self._finding(span, source[span.start : span.end])
        return _Edit(value.start, value.end, f'"{finding.mark}"'.encode(), (finding,))

    def _replaced(self, source: bytes, spans: list[Span]) -> tuple[bytes, tuple[Finding, ...]]:
        edits: list[_Edit] = []
        for span in _merged(spans):
            finding = self._finding(span, source[span.start : span.end])
            mark = finding.mark if span.kind != "named_number" else f'"{finding.mark}"'
            edits.append(_Edit(span.start, span.end, mark.encode(), (finding,)))
        return _applied(source, edits)

    def _finding(self, span: Span, secret: bytes) -> Finding:
        plain = self._book.plain.get(secret, secret)
        digest = blake2b(plain, key=self._key, digest_size=_DIGEST_BYTES)
        return Finding(span.kind, digest.hexdigest())


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Join what overlaps; the first keeps its kind."""
    if not spans:
        return
    current = spans[0]
    for span in spans[1:]:
        if span.start < current.end:
            end = max(span.end, current.end)
            current = Span(current.start, current.rank, end, current.kind)
        else:
            yield current
            current = span
    yield current


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
    return encoded(json.loads(_decode(token)))


def _written(text: bytes, like: bytes) -> bytes:
    return encoded(json.dumps(_decode(text), ensure_ascii=like.isascii()))


def _applied(source: bytes, edits: list[_Edit]) -> tuple[bytes, tuple[Finding, ...]]:
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        pieces += (source[done : edit.start], edit.text)
        done = edit.end
    found = tuple(finding for edit in edits for finding in edit.found)
    return b"".join((*pieces, source[done:])), found


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
