"""Where secrets stand: known values, well-known shapes, what a JSON member's name tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.values import dataclass
from openfang.safety.patterns import (
    Pattern,
    compile_pattern,
    contained,
    escape,
    shared_pattern,
)
from openfang.safety.shapes import NAME, NAMED, NEEDLESS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MEMBER = compile_pattern(rf"\A{NAME}\z")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """One place, in bytes; of two that begin there the lower rank comes first."""

    start: int
    rank: int
    end: int
    kind: str


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


class Scan:
    """Patterns that are tried one by one, behind a single one that says whether any can match."""

    __slots__ = ("_any", "_anything", "_rows", "_values", "names")

    def __init__(
        self,
        table: Iterable[tuple[str, str]],
        values: Iterable[bytes] = (),
        *,
        names: bool = False,
    ) -> None:
        self._rows = (*table, *NAMED, *NUMBERS) if names else tuple(table)
        self.names = names
        self._values = tuple(values)
        patterns = [*(pattern for _, pattern in self._rows), *map(escape, self._values), NEEDLESS]
        self._anything = "|".join(patterns)
        compiled = compile_pattern if self._values else shared_pattern
        self._any = compiled(self._anything, groups=False)

    def joined(self, pattern: str) -> Pattern:
        """Make the pattern that finds whatever `possible` or another one finds."""
        return compile_pattern(f"{self._anything}|{pattern}", groups=False)

    def possible(self, text: bytes) -> bool:
        """Whether there may be a secret, in text or in JSON."""
        return contained(self._any, text)

    def spans(self, text: bytes) -> list[Span]:
        """Find all secrets, those that overlap too, in order."""
        if not self.possible(text):
            return []
        found = [*self.known(text), *self._shaped(text)]
        return sorted(span for span in found if not _is_mark(text[span.start : span.end]))

    def member(self, name: bytes, text: bytes, kind: str) -> list[Span]:
        """Find the secrets in a member's value, which its name may give away."""
        before = name + b'":"' if name else b""
        cut = len(before)
        spans = [
            Span(max(span.start - cut, 0), span.rank, span.end - cut, span.kind)
            for span in self.spans(before + text)
            if span.end > cut
        ]
        if self.names and text and contained(_MEMBER, name) and not _is_mark(text):
            spans.append(Span(0, len(self._rows), len(text), kind))
        return sorted(spans)

    def known(self, text: bytes) -> Iterator[Span]:
        """Find the known values."""
        for value in self._values:
            start = text.find(value)
            while start >= 0:
                yield Span(start, 0, start + len(value), "known_value")
                start = text.find(value, start + 1)

    def _shaped(self, text: bytes) -> Iterator[Span]:
        for rank, (kind, pattern) in enumerate(self._rows, 1):
            look_again = _LOOK_AGAIN.get(kind)
            for match in shared_pattern(pattern).finditer(text):  # compiled by the first secret
                start, end = match.span(1)
                if look_again is None or look_again(text[start:end]):
                    yield Span(start, rank, end, kind)
