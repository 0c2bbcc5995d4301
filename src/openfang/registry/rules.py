"""From words to risk and side effects: the tables, and how a name or a sentence is read by them."""

from __future__ import annotations

from dataclasses import field, replace
from functools import reduce
from typing import TYPE_CHECKING

from openfang.core.tools import EFFECT_TAGS, TAGS, Risk
from openfang.core.values import dataclass
from openfang.registry import tables
from openfang.registry.words import bases, clauses, grams, joined, singular, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

UNKNOWN = frozenset({"unknown"})
_NOTHING: frozenset[str] = frozenset()
_NETWORK = frozenset({"network.http", "network.socket"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What some words say. `because` names the word that decided; empty means no rule knew it."""

    risk: Risk = Risk.LOW
    tags: frozenset[str] = frozenset()
    sends: bool = False
    because: str = ""

    def join(self, other: Reading) -> Reading:
        """Both are said: the higher risk, and all tags."""
        higher = other if other.risk > self.risk else self
        return Reading(
            risk=higher.risk,
            tags=self.tags | other.tags,
            sends=self.sends or other.sends,
            because=higher.because or self.because or other.because,
        )


SILENT = Reading()
UNREAD = Reading(risk=Risk.MEDIUM, tags=UNKNOWN)


def check_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return the tags as a set. One that is not in the vocabulary is a ValueError naming it."""
    found = frozenset(tags)
    for tag in sorted(found - TAGS):
        raise ValueError(f"Unknown side-effect tag {tag!r}; the tags are {', '.join(sorted(TAGS))}")
    return found


def _grades() -> dict[str, Risk]:
    rows = (
        (tables.LOW, Risk.LOW),
        (tables.MEDIUM, Risk.MEDIUM),
        (tables.HIGH, Risk.HIGH),
        (tables.CRITICAL, Risk.CRITICAL),
    )
    return {word: risk for words, risk in rows for word in words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The tables in force. `marks` and `marked_tags` are the operator's, and count anywhere."""

    verbs: Mapping[str, Risk] = field(default_factory=_grades)
    acts: frozenset[str] = tables.ACTS
    marks: Mapping[str, Risk] = field(default_factory=dict[str, Risk])
    marked_tags: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def extended(
        self,
        *,
        critical: Iterable[str] = (),
        high: Iterable[str] = (),
        medium: Iterable[str] = (),
        low: Iterable[str] = (),
        tags: Mapping[str, Iterable[str]] | None = None,
    ) -> Rules:
        """Add words to the rows; a word moves to the row it is added to last."""
        rows = (
            (Risk.LOW, low),
            (Risk.MEDIUM, medium),
            (Risk.HIGH, high),
            (Risk.CRITICAL, critical),
        )
        added = {_phrase(word): risk for risk, words in rows for word in words}
        lowered = {word for word, risk in added.items() if risk is Risk.LOW}
        marks = {
            word: risk for word, risk in {**self.marks, **added}.items() if word not in lowered
        }
        marked = {_phrase(word): check_tags(found) for word, found in (tags or {}).items()}
        return replace(
            self,
            verbs={**self.verbs, **added},
            acts=self.acts - lowered,
            marks=marks,
            marked_tags={**self.marked_tags, **marked},
        )

    def read_name(self, name: str) -> Reading:
        """Read a tool's name: its verbs on its objects, else what it is about, else unknown."""
        words = joined(split(name), tables.COMPOUNDS)
        about = grams(words)
        said = [self._act(verb, words, about) for verb in self.verbs_of(words)]
        reading = reduce(Reading.join, said) if said else self._matter(words, about)
        return self._marked(reading, about)

    def read_text(self, text: str) -> Reading:
        """Read prose: the verbs that head its clauses. What it does not say is no comfort."""
        said: list[Reading] = []
        for clause in clauses(text):
            words = joined(clause, tables.COMPOUNDS)
            verb = self._head_verb(words)
            if verb is not None:
                said.append(self._act(verb, words, grams(words)))
            if self.marks or self.marked_tags:
                said.append(self._marked(SILENT, grams(words)))
        return reduce(Reading.join, said, SILENT)

    def verbs_of(self, words: Sequence[str]) -> list[str]:
        """Name the verbs that count, clause by clause."""
        found: list[str] = []
        for clause in _cut(words):
            found.extend(self._clause_verbs(clause))
        return found

    def polls(self, name: str) -> bool:
        """Whether to ask again is how the tool is meant to be used: it waits, and only reads."""
        words = joined(split(name), tables.COMPOUNDS)
        reads = all(self.verbs[verb] is Risk.LOW for verb in self.verbs_of(words))
        return reads and not tables.POLLS.isdisjoint(words)

    def _clause_verbs(self, words: Sequence[str]) -> Iterator[str]:
        place = next((i for i, word in enumerate(words) if word in self.verbs), None)
        if place is None:
            return
        lead, last = words[place], words[-1]
        soft = lead in tables.SOFT and last != lead and last in self.verbs
        if not (soft and self.verbs[last] is Risk.LOW):
            yield lead
        if soft:
            yield last
        if self.verbs[lead] is not Risk.LOW or singular(last) not in tables.ABOUT:
            yield from (word for word in words[place + 1 :] if word in self.acts)

    def _act(self, verb: str, words: Sequence[str], about: frozenset[str]) -> Reading:
        """One verb, on the objects around it."""
        if verb in tables.EXECUTES and about & tables.MILD and about & tables.DATA:
            verb = "query"
        pairs = [p for p in tables.PAIRS if verb in p.verbs and not p.objects.isdisjoint(about)]
        if singular(words[-1]) in tables.ABOUT and verb in tables.READS:
            pairs = [pair for pair in pairs if pair.floor < Risk.HIGH]
        grade = self.verbs[verb]
        risk = max(grade, *(pair.floor for pair in pairs)) if pairs else grade
        tags = frozenset(pair.tag for pair in pairs) or tables.ALONE.get(verb, _NOTHING)
        tags = tags or self.marked_tags.get(verb, _NOTHING)
        if not tags and risk > Risk.LOW:
            tags = UNKNOWN
        sends = verb not in tables.FETCHES and not tags.isdisjoint(_NETWORK)
        return Reading(risk=risk, tags=tags, sends=sends, because=verb)

    def _matter(self, words: Sequence[str], about: frozenset[str]) -> Reading:
        """Read a name without a verb by its nouns."""
        if words and singular(words[-1]) in tables.FACTS:
            return Reading(because=words[-1])
        known = [
            Reading(risk=risk, tags=tags, sends=True, because=noun)
            for noun, (risk, tags) in tables.NOUNS.items()
            if noun in about
        ]
        return reduce(Reading.join, known) if known else UNREAD

    def _marked(self, reading: Reading, about: frozenset[str]) -> Reading:
        said = [Reading(risk=risk, because=w) for w, risk in self.marks.items() if w in about]
        tags = [Reading(tags=tags, because=w) for w, tags in self.marked_tags.items() if w in about]
        known = replace(reading, tags=_NOTHING) if tags and reading is UNREAD else reading
        return reduce(Reading.join, (*said, *tags), known)

    def _head_verb(self, words: Sequence[str]) -> str | None:
        head = next((word for word in words if word not in tables.FILLERS), "")
        forms = (form for form in bases(head) if form != head or form not in tables.VAGUE)
        return next((form for form in forms if self._loud(form)), None)

    def _loud(self, verb: str) -> bool:
        """Whether prose that begins with this verb can raise anything."""
        network = not _NETWORK.isdisjoint(tables.ALONE.get(verb, _NOTHING))
        return verb in self.verbs and (self.verbs[verb] >= Risk.HIGH or network)


def outside(name: str) -> str:
    """Return the word that says that the results hold what others wrote, or nothing."""
    words = joined(split(name), tables.COMPOUNDS)
    return next((word for word in words if singular(word) in tables.OUTSIDE), "")


def effects_of(tags: frozenset[str]) -> frozenset[str]:
    """Return the tags that change something."""
    return tags & EFFECT_TAGS


def _cut(words: Sequence[str]) -> Iterator[list[str]]:
    clause: list[str] = []
    for word in words:
        if word in tables.CONJUNCTIONS:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause


def _phrase(text: str) -> str:
    words = joined(split(text), tables.COMPOUNDS)
    match words:
        case (word,):
            return word
        case (left, right):
            return f"{singular(left)} {singular(right)}"
        case _:
            raise ValueError(f"{text!r} is not one word or two, as a tool's name could hold them")


DEFAULT_RULES = Rules()
