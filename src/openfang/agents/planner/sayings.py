"""What a person wants remembered, and what they ask for again: a name and what is said of it.

`Remember that my pin is 0042` is kept under `pin`, which is what `what is my pin?` looks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.agents.planner.tokens import Sort
from openfang.agents.planner.words import Action, bag
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.agents.planner.reading import Reading

HOW: Final = "I keep one thing under one name. Say it like: remember that my NAME is VALUE."
_VERBS: Final = bag("remember note store memorize memorise keep save")
_AFTER_VERB: Final = bag("that this in mind down")
_BEFORE_NAME: Final = bag("my our the a an")
_EQUALS: Final = frozenset({"is", "are", "=", "equals", "means", ":"})
_UNDER: Final = frozenset({"under", "as"})
_IT: Final = frozenset({"it", "that", "this"})
_LONGEST: Final = 6
_NO_NAME: Final = bag(
    "i i'm you he she we they it this that there me us him her them what who where when how why if "
    "whether to not no never and or but of in on at by for from with about under as is are was "
    "please everything nothing"
)
_OWN: Final = frozenset({"my", "our"})
_RECALLING: Final = (
    ("recall",),
    ("do", "you", "remember"),
    ("do", "you", "know"),
    ("what", "did", "i", "tell", "you", "about"),
    ("what", "do", "you", "know", "about"),
)
_SEARCHING: Final = (
    ("what", "do", "i", "know", "about"),
    ("what", "do", "we", "know", "about"),
    ("what", "do", "you", "remember", "about"),
    ("search", "memory", "for"),
    ("search", "your", "memory", "for"),
    ("search", "my", "memory", "for"),
    ("search", "my", "memories", "for"),
)
_BEING: Final = (
    *((asking, being) for asking in ("what", "who", "where") for being in ("is", "are", "was")),
    ("what's",),
    ("whats",),
    ("who's",),
    ("where's",),
    ("tell", "me"),
)


@dataclass(frozen=True, slots=True)
class Saying:
    """Something to keep or to look up. One that is `loose` may mean something else as well.

    What is asked for `by_words` need not have been kept under that name.
    """

    action: Action
    key: str
    value: str = ""
    loose: bool = False
    by_words: bool = False


def saying_of(reading: Reading) -> Saying | None:
    """Read a request as one of these, if it is one."""
    return _stored(reading) or _recalled(reading)


def _stored(reading: Reading) -> Saying | None:
    start, end = _statement(reading)
    if reading.doubtful or start >= end:
        return None
    return _kept_as_is(reading, start, end) or _kept_under(reading, start, end)


def _statement(reading: Reading) -> tuple[int, int]:
    """Where that stands which is to be kept: after the verb, or before `remember it`."""
    end = _last(reading)
    if reading.first in _VERBS:
        start = reading.head + 1
        while start < end and _only_leads(reading, start):
            start += 1
        return start, end
    if reading.word(end - 1) in _IT and reading.word(end - 2) in _VERBS:
        before = end - 2
        while before > reading.head and _parts(reading, before - 1):
            before -= 1
        return reading.head, before
    return 0, 0


def _last(reading: Reading) -> int:
    """Where the marks and the courtesy at the end begin."""
    end = len(reading.tokens)
    while end > reading.head and _parts(reading, end - 1):
        end -= 1
    return end


def _parts(reading: Reading, at: int) -> bool:
    token = reading.tokens[at]
    return token.sort is Sort.MARK or token.word in {"please", "and"}


def _only_leads(reading: Reading, at: int) -> bool:
    return reading.word(at) in _AFTER_VERB or reading.tokens[at].sort is Sort.MARK


def _kept_under(reading: Reading, start: int, end: int) -> Saying | None:
    """`VALUE under the key NAME`."""
    at = next((n for n in range(end - 1, start, -1) if reading.word(n) in _UNDER), end)
    name = at + 1
    while name < end and reading.word(name) in {*_BEFORE_NAME, "key", "name"}:
        name += 1
    key = _name(reading, name, end)
    return Saying(Action.STORE, key, _value(reading, start, at)) if key else None


def _kept_as_is(reading: Reading, start: int, end: int) -> Saying | None:
    """`NAME is VALUE`."""
    at = next((n for n in range(start + 1, end) if reading.tokens[n].text.lower() in _EQUALS), end)
    key = _name(reading, start, at)
    if not key or at + 1 >= end:
        return None
    return Saying(Action.STORE, key, _value(reading, at + 1, end))


def _value(reading: Reading, start: int, end: int) -> str:
    quoted = end - start == 1 and reading.tokens[start].sort in {Sort.QUOTE, Sort.CODE}
    return reading.tokens[start].text if quoted else reading.between(start, end)


def _name(reading: Reading, start: int, end: int) -> str:
    """A name in the one way it is kept; nothing if this is none."""
    while start < end and reading.word(start) in _BEFORE_NAME:
        start += 1
    if end - start == 1 and reading.tokens[start].sort is Sort.QUOTE:
        return reading.tokens[start].text
    words = reading.words(start, end)
    if not 0 < len(words) <= _LONGEST or not all(words) or not _NO_NAME.isdisjoint(words):
        return ""
    return " ".join(words)


def _recalled(reading: Reading) -> Saying | None:
    end = _last(reading)
    if reading.first == "remember" and reading.ends_asking:
        return _looked_up(reading, reading.head + 1, end, loose=False)
    for opening in _RECALLING:
        if start := _past(reading, opening):
            return _looked_up(reading, start, end, loose=False)
    for opening in _SEARCHING:
        if start := _past(reading, opening):
            key = _name(reading, start, end)
            return Saying(Action.RECALL, key, by_words=True) if key else None
    start = next((found for opening in _BEING if (found := _past(reading, opening))), 0)
    own = reading.word(start) in _OWN
    named = reading.word(start) == "the" or reading.first[:3] == "who" or reading.first == "where"
    if not start or not (own or (named and reading.first != "tell")):
        return None
    return _looked_up(reading, start, end, loose=not own)


def _past(reading: Reading, opening: tuple[str, ...]) -> int:
    """Where an opening has ended; nowhere if it is another."""
    end = reading.head + len(opening)
    return end if tuple(reading.words(reading.head, end)) == opening else 0


def _looked_up(reading: Reading, start: int, end: int, *, loose: bool) -> Saying | None:
    key = _name(reading, start, end)
    return Saying(Action.RECALL, key, loose=loose) if key else None
