"""Whole tokens: whether a value stands in a text as itself, and not as a part of something else.

Addresses are compared as what they are: mail without regard to case, a URL by scheme, host and the
rest of it. All else must stand letter for letter between blanks, quotes, brackets or the marks that
end a sentence. What has under four characters stands only behind a word that says what it is
(`id 13`, `#13`, `"id": 13`): in "June 13" there is no 13. Only ASCII letters have a case here, and
nothing is normalized: what merely looks alike is something else.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHORT: Final = 4
_PUNCTUATION: Final = ".,;:!?…"
_MOST_PUNCTUATION: Final = 8
_AROUND: Final = frozenset("\"'`´“”‘’«»„‚‹›()[]{}<>|—–。，、；：！？「」")  # noqa: RUF001 - as written
_LABEL: Final = re.compile(r"(?:^|[\s\"'`(\[{<|,])[A-Za-z_][\w\-]{0,40}[:=]\Z")
_LONGEST_LABEL: Final = 48
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s\"'`<>]+")
_TOKEN: Final = re.compile(r"[^\s<>\"'`(),;:\[\]{}|]+")
_DOMAIN: Final = re.compile(r"(?:[A-Za-z0-9\-]+\.)+[A-Za-z0-9\-]+(?::\d+)?")
_MAIL: Final = r"[^\s<>\"'`(),;:\[\]{}|@]+@[^\s<>\"'`(),;:\[\]{}|@]+"
_MAILBOX: Final = re.compile(
    rf"(?:mailto:)?({_MAIL})|(?:\"?[^\W\d_](?:[^\W\d_]|[ .'\-])*\"?\s?)?<({_MAIL})>"
)
_REST: Final = r"[^\s\"'`<>]*"
_HOST: Final = r"(?:(?:[\w\-]+\.)+[A-Za-z]{2,24}|\d{1,3}(?:\.\d{1,3}){3})"
# A browser goes to `http:host` and `\\\\host` as well.
_BARE: Final = re.compile(
    rf"(?<![\w@./\-])(?:www\.{_REST}|(?://|\\\\)[^\s\"'`<>/]+\.{_REST}|https?:/?{_HOST}{_REST}"
    rf"|{_HOST}(?::\d{{1,5}})?(?:/{_REST}|[?#][\w%]{_REST}))"
)
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_MARKS: Final = ("id", "number", "no", "nr", "num")
_NO_MARKS: Final = frozenset({"to", "of", "in", "at", "on", "by", "for", "from", "the", "cc", "a"})
_SUMS: Final = frozenset({"amount", "price", "total", "sum", "cost", "fee", "payment", "budget"})
_CURRENCY: Final = (
    r"(?:USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|dollars?|euros?|pounds?|francs?"
    r"|yen|cents?)"
)
_BEFORE_SUM: Final = re.compile(rf"(?:[$€£¥₹]|(?<!\w){_CURRENCY})\s?\Z", re.IGNORECASE)
_AFTER_SUM: Final = re.compile(rf"\s?(?:[$€£¥₹]|{_CURRENCY}(?!\w))", re.IGNORECASE)
_CODE: Final = re.compile(r"[A-Z]{3}")
_NUMBER_BEFORE: Final = re.compile(r"\d\s?\Z")


def lower(text: str) -> str:
    """Write ASCII letters small, and leave all others: some of them would become ASCII."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


@dataclass(frozen=True, slots=True)
class Atom:
    """A value that is looked for, and the words of the argument that holds it."""

    value: str | float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """One text, and the addresses in it once somebody asks for them."""

    text: str
    _marks: dict[tuple[str, ...], re.Pattern[str]] = field(
        default_factory=dict[tuple[str, ...], "re.Pattern[str]"], repr=False
    )

    def holds(self, atom: Atom) -> bool:
        """Whether the atom stands here."""
        value = atom.value
        if not isinstance(value, str):
            return any(self._placed(spelled, atom.words) for spelled in _numbers(value))
        if is_url(value):
            return self._has_url(value)
        if "@" in value and (mails := _only_mails(value)):
            return all(mail in self._small and mail in self._mails for mail in mails)
        plain = value.removeprefix("./").rstrip("/") or value
        return self._placed(plain, atom.words) or self._is_host(plain)

    @cached_property
    def _urls(self) -> list[str]:
        return _urls_in(self.text)

    @cached_property
    def _mails(self) -> frozenset[str]:
        return frozenset(mails_in(self.text))

    @cached_property
    def _small(self) -> str:
        return lower(self.text)

    def _has_url(self, url: str) -> bool:
        plain = normalized(url)
        if any(plain in _spelled(one) for one in self._on(_host(plain))):
            return True
        host = _only_host(plain)
        found = _occurrences(self._small, host) if host else ()
        return any(_whole(self._small, start, host) for start in found)

    def _is_host(self, value: str) -> bool:
        host = lower(value)
        if not _DOMAIN.fullmatch(value):
            return False
        return any(_host(spelled) == host for one in self._on(host) for spelled in _spelled(one))

    def _on(self, host: str) -> Iterator[str]:
        """The URLs here that may be on a host."""
        if host in self._small:
            yield from (url for url in self._urls if host in lower(url))

    def _placed(self, value: str, words: tuple[str, ...]) -> bool:
        short = len(value) < _SHORT
        return any(
            _whole(self.text, start, value) and (not short or self._marked(start, value, words))
            for start in _occurrences(self.text, value)
        )

    def _marked(self, start: int, value: str, words: tuple[str, ...]) -> bool:
        """Whether something says what so short a value is."""
        before = self.text[max(0, start - _LONGEST_LABEL) : start]
        if before.endswith("#") or self._pattern(words).search(before):
            return True
        if not _SUMS.isdisjoint(words):
            after = self.text[start + len(value) : start + len(value) + _LONGEST_LABEL]
            return bool(_BEFORE_SUM.search(before) or _AFTER_SUM.match(after))
        is_code = "currency" in words and _CODE.fullmatch(value)
        return bool(is_code and _NUMBER_BEFORE.search(before))

    def _pattern(self, words: tuple[str, ...]) -> re.Pattern[str]:
        found = self._marks.get(words)
        if found is None:
            named = [re.escape(one) for one in words if len(one) > 1 and one not in _NO_MARKS]
            either = "|".join((*_MARKS, *named))
            found = self._marks[words] = re.compile(
                rf"(?<![A-Za-z0-9])(?:{either})[\"'`]?\s?(?:[:=]|is|no\.|\.)?\s?[#\"'`]?\Z",
                re.IGNORECASE,
            )
        return found


def _urls_in(text: str) -> list[str]:
    return _URL.findall(text) if "://" in text else []


def is_url(value: str) -> bool:
    """Whether it is one URL with a scheme."""
    return _URL.fullmatch(value) is not None


def addresses_in(text: str) -> Iterator[str]:
    """Find what a reader could be led to or write to: URLs, hosts with a path, mail."""
    for url in _urls_in(text):
        yield _trimmed(url)
    for bare in _BARE.findall(text):
        yield _trimmed(bare)
    yield from mails_in(_URL.sub(" ", text) if "://" in text else text)


def mails_in(text: str) -> list[str]:
    """Find mail addresses, written small."""
    if "@" not in text:
        return []
    found = (_trimmed(lower(one)) for one in _TOKEN.findall(text) if "@" in one)
    return [one for one in found if one[0] != "@"]


def _only_mails(value: str) -> list[str]:
    """Read a list of mail addresses, with names before them; none if it says anything else."""
    parts = re.split(r"[,;]" if "<" in value else r"[,;\s]", value)
    found = [_MAILBOX.fullmatch(part.strip()) for part in parts if part.strip()]
    return [_trimmed(lower(one[1] or one[2])) for one in found if one] if all(found) else []


def normalized(url: str) -> str:
    """Write a URL so that equal ones are equal: small scheme and host, no port that is implied."""
    if not _splits(url):
        return url
    parts = urlsplit(url)
    scheme, netloc = lower(parts.scheme), parts.netloc
    user, at, host = netloc.rpartition("@")
    host = lower(host)
    usual = _PORTS.get(scheme)
    if usual is not None:
        host = host.removesuffix(f":{usual}")
    rest = url[len(parts.scheme) + 3 + len(netloc) :]
    if not rest.startswith("/"):
        rest = f"/{rest}"
    return f"{scheme}://{user}{at}{host}{rest}"


def _splits(url: str) -> bool:
    try:
        return bool(urlsplit(url).netloc)
    except ValueError:
        return False


def _host(url: str) -> str:
    return urlsplit(url).netloc if _splits(url) else url


def _only_host(url: str) -> str:
    """The host of a URL that says nothing else."""
    for scheme in ("https://", "http://"):
        if url.startswith(scheme) and url.endswith("/"):
            host = url[len(scheme) : -1]
            return host if _DOMAIN.fullmatch(host) else ""
    return ""


def _spelled(url: str) -> tuple[str, ...]:
    """A URL in a text, with and without what may belong to the sentence around it."""
    shorter = url.rstrip(_PUNCTUATION)
    return normalized(url), normalized(shorter), normalized(_trimmed(url))


def _trimmed(address: str) -> str:
    return address.rstrip(f"{_PUNCTUATION})]}}*_")


def _numbers(value: float) -> Sequence[str]:
    whole = float(value).is_integer()
    plain = str(int(value)) if whole else repr(value)
    grouped = f"{int(value):,}" if whole else f"{value:,}"
    exact = (f"{value:.2f}", f"{value:,.2f}") if round(value, 2) == value else ()
    return tuple(dict.fromkeys((plain, grouped, *exact)))


def _occurrences(text: str, value: str) -> Iterator[int]:
    start = text.find(value)
    while start >= 0:
        yield start
        start = text.find(value, start + 1)


def _whole(text: str, start: int, value: str) -> bool:
    return _ends(text, start + len(value)) and _begins(text, start)


def _ends(text: str, at: int) -> bool:
    """Whether nothing goes on here but, at most, the end of a sentence."""
    if text[at : at + 1] == "/":
        at += 1
    for position in range(at, at + _MOST_PUNCTUATION):
        char = text[position : position + 1]
        if _is_edge(char):
            return True
        if char not in _PUNCTUATION:
            return False
    return False


def _begins(text: str, at: int) -> bool:
    if at == 0 or _is_edge(text[at - 1]):
        return True
    if text[at - 1] in "#@$€£":
        return at == 1 or _is_edge(text[at - 2])
    if text[at - 1] not in ":=":
        return False
    return bool(_LABEL.search(text[max(0, at - _LONGEST_LABEL) : at]))


def _is_edge(char: str) -> bool:
    return not char or char.isspace() or char in _AROUND
