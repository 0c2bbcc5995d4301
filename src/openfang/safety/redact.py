"""Secrets out of text: only the secret itself is replaced, all else stays byte for byte.

Three kinds of evidence: the shape of well-known credentials, the exact values that the secret store
holds, and (in `json_text`, meant for the audit) the name of a JSON member. Results of tools go
through `text` alone: a member called `token` is often the next page, and must arrive.

Known limits. A secret without a known shape, name or value is not found, nor one that is base64
encoded, compressed, split over two parts or spelled with other letters. Known values under six
characters are ignored. By name, strings and numbers are replaced, lists and objects are not; in
JSON inside JSON a value is replaced up to its first inner quote.

All matching is done by RE2 on bytes, in linear time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import quote

from openfang.safety.patterns import WORD_START, Pattern, compile_pattern, contained, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_KEY_BYTES = range(16, 65)
_SHORTEST_VALUE = 6
_DIGEST_BYTES = 6

_WORD = r"[A-Za-z0-9_\-]"
_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_START = WORD_START
_GAP = r"(?:\s|\\+[fnrt])"
_IS = rf"\\*[\"']?{_GAP}*[=:]{_GAP}*\\*[\"']?"
# Escapes that JSON does not need: what they spell is seen only once they are read.
_NEEDLESS = r"\\(?:/|u(?:[^0]|0[^0]|00[^01]|00.[A-F]|000[89acd]))"
# The first group is the secret. The more specific shape stands first, and gives the kind.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("private_key", rf"({_PEM}[^\"]*?-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)"),
    ("private_key", rf"({_PEM}(?:{_GAP}*[A-Za-z0-9+/=]{{16,}})+)"),
    ("aws_key", rf"{_START}((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}})\b"),
    ("aws_secret", rf"(?i:aws_?secret_?(?:access_?)?key){_IS}([A-Za-z0-9/+=]{{40}})"),
    ("github_token", rf"{_START}(gh[pousr]_[A-Za-z0-9]{{36,}})"),
    ("github_token", rf"{_START}(github_pat_[A-Za-z0-9_]{{22,}})"),
    ("gitlab_token", rf"{_START}(gl(?:pat|dt|rt|ptt|ft|soat|cbt)-{_WORD}{{20,}})"),
    ("slack_token", rf"{_START}(xox[abceoprs]-[A-Za-z0-9\-]{{10,}})"),
    ("slack_token", rf"{_START}(xapp-[0-9]-[A-Za-z0-9\-]{{10,}})"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_\-]{20,})"),
    ("anthropic_key", rf"{_START}(sk-ant-{_WORD}{{16,}})"),
    ("openai_key", rf"{_START}(sk-(?:proj|svcacct|admin|or-v1)-{_WORD}{{20,}})"),
    ("openai_key", rf"{_START}(sk-[A-Za-z0-9]{{20,}})"),
    ("google_key", rf"{_START}(AIza{_WORD}{{35}})"),
    ("google_token", rf"{_START}(ya29\.{_WORD}{{20,}})"),
    ("google_secret", rf"{_START}(GOCSPX-{_WORD}{{20,}})"),
    ("stripe_key", rf"{_START}([sr]k_(?:live|test)_[A-Za-z0-9]{{10,}})"),
    ("stripe_secret", rf"{_START}(whsec_[A-Za-z0-9+/=]{{24,}})"),
    ("huggingface_token", rf"{_START}(hf_[A-Za-z0-9]{{30,}})"),
    ("npm_token", rf"{_START}(npm_[A-Za-z0-9]{{36}})"),
    ("pypi_token", rf"{_START}(pypi-{_WORD}{{50,}})"),
    ("sendgrid_key", rf"{_START}(SG\.{_WORD}{{16,32}}\.{_WORD}{{32,64}})"),
    ("digitalocean_token", rf"{_START}(do[opr]_v1_[a-f0-9]{{64}})"),
    ("telegram_token", rf"{_START}([0-9]{{8,10}}:AA{_WORD}{{33}})"),
    ("azure_key", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}=*)"),
    ("age_key", rf"{_START}(AGE-SECRET-KEY-1[0-9A-Z]{{58}})"),
    ("openfang_key", rf"{_START}(oft?_{_WORD}{{24,}})"),
    ("jwt", rf"{_START}(eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}\.{_WORD}{{8,}}(?:\.{_WORD}+){{0,2}})"),
    (
        "authorization",
        rf"(?i:authorization){_IS}(?i:bearer|basic|token|apikey){_GAP}+([A-Za-z0-9._~+/\-=:]{{4,}})",
    ),
    ("bearer_token", rf"{_START}(?i:bearer){_GAP}+([A-Za-z0-9._~+/\-]{{12,}}=*)"),
    ("url_password", r"\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@?#\"'<>\\]*:([^\s/@\"'<>\\]+)@"),
)
_NAME = (
    r"[A-Za-z0-9_.\-]*(?i:password|passwd|passphrase|pwd|secret|token|api[_\-]?key|access[_\-]?key"
    r"|private[_\-]?key|secret[_\-]?key|signing[_\-]?key|encryption[_\-]?key|authorization"
    r"|credentials?|cookie)"
)
_NAMED: tuple[tuple[str, str], ...] = (
    ("named_secret", rf'"{_NAME}"\s*:\s*"((?:[^"\\]|\\.)+)'),
    ("named_secret", rf'\\+"{_NAME}\\+"{_GAP}*:{_GAP}*\\+"((?:[^"\\]|\\+[^"\\])+)'),
    ("named_secret", rf"[?&]{_NAME}=([^&\s\"'#\\]+)"),
)
_NUMBERS = (("named_number", rf'\\*"{_NAME}\\*"{_GAP}*:{_GAP}*(-?[0-9][0-9.eE+\-]*)'),)


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret that was replaced; equal secrets have equal digests under one key."""

    kind: str
    digest: str

    @property
    def mark(self) -> str:
        """What stands in its place."""
        return f"[redacted:{self.kind}:{self.digest}]"


@dataclass(frozen=True, slots=True)
class Redacted:
    """Text without its secrets: the same object where there were none."""

    text: str
    found: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    rank: int
    end: int
    kind: str


_MARK = compile_pattern(r"\A\[redacted:[a-z_]+:[0-9a-f]{12}\]\z")


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

    __slots__ = ("_any", "_each", "_values")

    def __init__(self, table: Iterable[tuple[str, str]], values: Iterable[bytes] = ()) -> None:
        rows = tuple(table)
        self._values = tuple(values)
        self._each: tuple[tuple[str, Pattern], ...] = tuple(
            (kind, compile_pattern(pattern)) for kind, pattern in rows
        )
        self._any = compile_pattern(
            "|".join([pattern for _, pattern in rows] + [escape(value) for value in self._values]),
            groups=False,
        )

    def spans(self, text: bytes) -> list[_Span]:
        """Find all secrets, those that overlap too, in order."""
        if not contained(self._any, text):
            return []
        found = [*self._known(text), *self._shaped(text)]
        return sorted(span for span in found if not contained(_MARK, text[span.start : span.end]))

    def _shaped(self, text: bytes) -> Iterator[_Span]:
        for rank, (kind, pattern) in enumerate(self._each, 1):
            look_again = _LOOK_AGAIN.get(kind)
            for match in pattern.finditer(text):
                start, end = match.span(1)
                if look_again is None or look_again(text[start:end]):
                    yield _Span(start, rank, end, kind)

    def _known(self, text: bytes) -> Iterator[_Span]:
        for value in self._values:
            start = text.find(value)
            while start >= 0:
                yield _Span(start, 0, start + len(value), "known_value")
                start = text.find(value, start + 1)


class Redactor:
    """Replaces secrets by marks that hold a keyed digest, so that equal secrets can be told."""

    __slots__ = ("_json", "_key", "_plain", "_text")

    def __init__(self, key: bytes, values: Iterable[str] = ()) -> None:
        if len(key) not in _KEY_BYTES:
            raise ValueError(f"A redaction key has 16 to 64 bytes, not {len(key)}")
        self._key = key
        self._plain = {
            spelled: _encode(value)
            for value in values
            if len(value) >= _SHORTEST_VALUE
            for spelled in _spellings(value)
        }
        self._text = _Scan(_SHAPES, self._plain)
        self._json = _Scan((*_SHAPES, *_NAMED, *_NUMBERS), self._plain)

    def text(self, text: str) -> Redacted:
        """Replace secrets that are known by shape or value."""
        return self._replace(text, self._text)

    def json_text(self, text: str) -> Redacted:
        """Replace these, and what a JSON member's name calls a secret. JSON stays JSON."""
        return self._replace(text, self._json)

    def contains_secret(self, text: str) -> bool:
        """Whether `text` would change anything."""
        return bool(self._text.spans(_encode(text)))

    def _replace(self, text: str, scan: _Scan) -> Redacted:
        source = _encode(text)
        spans = scan.spans(source)
        if not spans:
            return Redacted(text)
        pieces: list[bytes] = []
        found: list[Finding] = []
        done = 0
        for span in _merged(spans):
            finding = self._finding(span, source[span.start : span.end])
            mark = finding.mark if span.kind != "named_number" else f'"{finding.mark}"'
            pieces += (source[done : span.start], mark.encode())
            found.append(finding)
            done = span.end
        return Redacted(_decode(b"".join((*pieces, source[done:]))), tuple(found))

    def _finding(self, span: _Span, secret: bytes) -> Finding:
        plain = self._plain.get(secret, secret)
        digest = blake2b(plain, key=self._key, digest_size=_DIGEST_BYTES)
        return Finding(span.kind, digest.hexdigest())


_ANYWHERE = _Scan(_SHAPES)


def looks_secret(text: str) -> bool:
    """Whether anything in the text has the shape of a credential."""
    return bool(_ANYWHERE.spans(_encode(text)))


def _merged(spans: list[_Span]) -> Iterator[_Span]:
    """Join what overlaps; the first keeps its kind."""
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
    in_url = quote(_encode(value), safe="")
    return {_encode(spelled) for spelled in (value, shown, escaped, in_url)}


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
