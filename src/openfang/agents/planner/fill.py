"""Arguments from a request: typed fields from their type alone, free ones from quotes and cues.

Each piece of the request is used once. What is left over says whether the request was understood.
"""

from __future__ import annotations

import shlex
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from openfang.agents.planner.command import command_of
from openfang.agents.planner.left import means
from openfang.agents.planner.offer import Field, Offer, type_of
from openfang.agents.planner.tokens import Kind, Sort
from openfang.agents.planner.words import bag, topic
from openfang.core.values import dataclass
from openfang.safety.patterns import Pattern, compile_pattern, contained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from openfang.agents.planner.reading import Reading
    from openfang.agents.planner.tokens import Token

_CUES: Final[Mapping[str, frozenset[str]]] = {
    name: bag(words)
    for name, words in {
        "subject": "subject about titled re",
        "title": "titled title called named issue bug",
        "body": "saying body text says message",
        "content": "content contents text write save with containing saying says",
        "message": "message saying says that",
        "key": "key under as called",
        "query": "for find search grep",
    }.items()
}
_CALLED: Final = frozenset({"called", "named"})
_FILE: Final = frozenset({"file", "folder", "directory"})
_BEFORE_FOLDER: Final = frozenset({"in", "of", "folder", "directory", "ls"})
_NO_FOLDER: Final = bag("here it there files workspace file this them")
_PLACES: Final = bag("city place location town country")
_BEFORE_PLACE: Final = bag("in for of at from to")
_COUNTS: Final = bag("limit count max most top number")
_BEFORE_COUNT: Final = frozenset({"last", "first", "top"})
_SOUGHT: Final = frozenset({"for", "find", "grep"})
_VAGUE: Final = frozenset({"id", "name"})
_OPERATORS: Final = bag("| || & && ; > >> <")
_QUOTES: Final = frozenset({Sort.QUOTE, Sort.CODE})


@dataclass(slots=True)
class Filling:
    """The arguments of one tool, and what of the request they have used up."""

    offer: Offer
    reading: Reading
    used: set[int] = field(default_factory=set[int])
    taken: list[Token] = field(default_factory=list["Token"])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    _known: set[str] = field(default_factory=set[str])

    def fill(self) -> None:
        """Fill what can be filled: a command first, and last what is only told by a word."""
        free = [one for one in self.offer.fields if one.kind is Kind.FREE]
        needed = [one for one in free if one.required]
        typed = sorted(self.offer.fields, key=lambda one: one.kind not in _FIRST)
        self._each((one for one in typed if one.kind is Kind.COMMAND), self._command)
        self._each(free, self._cued)
        self._each(typed, self._typed)
        self._each(needed, lambda _: self._text(lambda token: token.sort in _QUOTES))
        self._each(needed, self._told)

    @property
    def missing(self) -> list[str]:
        """What is needed and was not said."""
        return [one.name for one in self.offer.required if one.name not in self.arguments]

    @property
    def left(self) -> list[Token]:
        """What of the request means nothing to the tool."""
        return [
            token
            for at, token in self._free()
            if token.sort is not Sort.MARK and not self._means(at, token)
        ]

    def _each(self, fields: Iterable[Field], way: Callable[[Field], Any]) -> None:
        for one in fields:
            if one.name not in self.arguments:
                value = way(one)
                if value is not None:
                    self.arguments[one.name] = value
                    self._known |= one.stems

    def _typed(self, one: Field) -> Any:  # noqa: ANN401 - any JSON
        ways: dict[Kind, Callable[[Field], Any]] = {
            Kind.PATH: self._path,
            Kind.NUMBER: self._number,
            Kind.CHOICE: self._choice,
            Kind.PATTERN: self._matching,
            Kind.LIST: self._list,
        }
        way = ways.get(one.kind)
        return way(one) if way else self._looks(one.kind)

    def _free(self) -> Iterator[tuple[int, Token]]:
        """The pieces that are not used yet."""
        for at in range(self.reading.head, len(self.reading.tokens)):
            if at not in self.used:
                yield at, self.reading.tokens[at]

    def _means(self, at: int, token: Token) -> bool:
        return bool(token.word) and means(self.offer, self.reading, at, self._known)

    def _use(self, at: int, *announced: int) -> str:
        """Use a piece, and the words that announce it."""
        self.used.update((at, *announced))
        self.taken.append(self.reading.tokens[at])
        return self.reading.tokens[at].text

    def _take(self, fits: Callable[[Token], bool]) -> Token | None:
        """Use the first piece that fits."""
        for at, token in self._free():
            if fits(token):
                self._use(at, *([at - 1] if self.reading.word(at - 1) in _CALLED else []))
                return token
        return None

    def _text(self, fits: Callable[[Token], bool]) -> str | None:
        taken = self._take(fits)
        return taken.text if taken else None

    def _looks(self, kind: Kind) -> str | None:
        plain = self._text(lambda token: kind in token.kinds and token.sort is Sort.THING)
        return plain or self._text(lambda token: kind in token.kinds)

    def _path(self, one: Field) -> str | None:
        return self._looks(one.kind) or self._quoted_file() or self._folder(one)

    def _quoted_file(self) -> str | None:
        """Words in quotes are a path where the request says so."""
        for at, token in self._free():
            if token.sort in _QUOTES and not _FILE.isdisjoint(self.reading.words(at - 2, at)):
                return self._use(at)
        return None

    def _folder(self, one: Field) -> str | None:
        """A plain word is a folder only at the end, and where the request says that it is one."""
        said = [at for at, token in self._free() if token.sort is not Sort.MARK]
        if one.required or self.offer.acts or not said:
            return None
        word, before = self.reading.word(said[-1]), self.reading.word(said[-1] - 1)
        if not word or word in _NO_FOLDER or before not in _BEFORE_FOLDER:
            return None
        return self._use(said[-1])

    def _number(self, one: Field) -> float | int | None:
        for at, token in self._free():
            typed = Kind.NUMBER in token.kinds and token.sort is Sort.THING
            if typed and (one.required or self._counts(one, at)):
                value = _within(token.text, one.schema)
                if value is not None:
                    self._use(at)
                return value
        return None

    def _counts(self, one: Field, at: int) -> bool:
        """Whether a number that is not needed has its name or its unit beside it."""
        before = self.reading.words(at - 2, at)
        after = [topic(word) for word in self.reading.words(at + 1, at + 3) if word]
        if not one.stems.isdisjoint([*map(topic, before), *after[:1]]):
            return True
        counted = not _BEFORE_COUNT.isdisjoint(before[-1:]) or not self.offer.named.isdisjoint(
            after
        )
        return counted and not _COUNTS.isdisjoint(one.stems)

    def _choice(self, one: Field) -> Any:  # noqa: ANN401 - any JSON
        choices = {str(choice).lower(): choice for choice in one.schema["enum"]}
        usual = str(one.schema.get("default")).lower()
        taken = self._take(lambda token: token.word in choices and token.word != usual)
        return choices[taken.word] if taken else None

    def _matching(self, one: Field) -> str | None:
        """What fits a pattern and is no plain word, or one in capitals: some patterns fit any."""
        pattern = _compiled(one.schema["pattern"])
        for at, token in self._free():
            shouted = token.text.isupper() and not self.offer.acts
            odd = token.sort is not Sort.MARK and (shouted or not is_plain(token))
            if odd and pattern and contained(pattern, token.text.encode()):
                return self._use(at)
        return None

    def _command(self, one: Field) -> Any:  # noqa: ANN401 - a text, or a list of them
        said = command_of(self.reading)
        if said is None:
            return None
        try:
            words = shlex.split(said[0])
        except ValueError:
            return None
        if type_of(one.schema) == "array" and not _OPERATORS.isdisjoint(words):
            return None
        self.used.update(said[1])
        self.taken.append(self.reading.tokens[said[1][-1]])
        return words if type_of(one.schema) == "array" else said[0]

    def _list(self, one: Field) -> list[str] | None:
        """The words after the name of the field, as many as are strung together."""
        words = self.reading.words(0, len(self.reading.tokens))
        if one.name not in words:
            return None
        start = at = words.index(one.name) + 1
        found: list[str] = []
        joined = True
        while at < len(words) and ((joined and words[at]) or self._joins(at)):
            joined = self._joins(at)
            found += [] if joined else [self.reading.tokens[at].text]
            at += 1
        self.used.update(range(start - 1, at))
        return found or None

    def _joins(self, at: int) -> bool:
        return self.reading.word(at) == "and" or self.reading.tokens[at].text in {",", ":"}

    def _cued(self, one: Field) -> str | None:
        """A quote that its field is named before."""
        cues = _CUES.get(one.name, frozenset({one.name}))
        for at, token in self._free():
            before = self._word_before(at) if token.sort in _QUOTES else -1
            if before >= 0 and self.reading.word(before) in cues:
                return self._use(at, *([before] if before != self.reading.head else []))
        return None

    def _word_before(self, at: int) -> int:
        at -= 1
        while at >= 0 and self.reading.tokens[at].sort is Sort.MARK:
            at -= 1
        return at

    def _told(self, one: Field) -> str | None:
        """A word that its field is named before, or the name of a place after a preposition."""
        if one.name in _PLACES:
            return self._place()
        cues = _SOUGHT if one.name == "query" else one.stems - _VAGUE
        for at, token in self._free():
            before = self.reading.word(at - 1) if at > self.reading.head else ""
            told = token.word and (before in cues or topic(before) in cues)
            if told and not self._means(at, token) and not (self.offer.acts and is_plain(token)):
                return self._use(at)
        return None

    def _place(self) -> str | None:
        """Words that begin with a capital, after a preposition."""
        for at, _ in self._free():
            end = at
            while self.reading.capital(end):
                end += 1
            if end > at and self.reading.word(at - 1) in _BEFORE_PLACE:
                self._use(at, *range(at, end))
                return self.reading.between(at, end)
        return None


# Whatever is plainest takes its pieces first: `acme/site` fits a pattern, and might be a path.
_FIRST: Final = frozenset({Kind.SQL, Kind.URL, Kind.EMAIL, Kind.ZONE, Kind.PATTERN})


def is_plain(token: Token) -> bool:
    """Whether it is a word like any other, and no name: `tomorrow`, unlike `old_users`."""
    return token.sort is Sort.WORD and token.text.isalpha()


def _within(text: str, schema: Mapping[str, Any]) -> float | int | None:
    """A number as its field takes it; none that is out of bounds."""
    value = float(text.replace(",", ""))
    if type_of(schema) == "integer" and not value.is_integer():
        return None
    low, high = _bound(schema, "minimum", value), _bound(schema, "maximum", value)
    if not low <= value <= high:
        return None
    return int(value) if value.is_integer() else value


def _bound(schema: Mapping[str, Any], name: str, value: float) -> float:
    bound = schema.get(name, schema.get(f"exclusive{name.capitalize()}"))
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else value


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Pattern | None:
    """Other people's patterns, in linear time; one that cannot be read is matched by nothing."""
    try:
        return compile_pattern(pattern)
    except Exception:  # noqa: BLE001 - the library raises its own, without a common kind
        return None
