"""How a request is put: as an order, a question or a statement, and where it begins in earnest."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cached_property
from typing import Final

from openfang.agents.planner.tokens import Kind, Sort, Token, tokens_of
from openfang.agents.planner.words import Action, bag, meanings, orders, straight, topic
from openfang.core.values import dataclass


class Form(Enum):
    """How it is put. An order may be a mere name of what is wanted: `weather in Oslo`."""

    ORDER = auto()
    QUESTION = auto()
    WHETHER = auto()
    STATEMENT = auto()
    UNWANTED = auto()


_GREETINGS: Final = bag("hi hello hey hallo greetings ok okay thanks thx")
_GREETED: Final = bag("there again all assistant everyone you morning evening day")
_LEADING: Final = bag("please kindly just now ok okay well so")
_ABLE: Final = bag("can could would will")
_SUBJECTS: Final = bag("i we he she they you it that there i'm i've i'd i'll we're it's that's")
_ASKING: Final = bag("what what's whats which who who's where where's when why how")
_WHETHER: Final = bag(
    "is are was were do does did has have had am should shall may might must will would can could "
    "isn't aren't doesn't don't can't"
)
_UNWANTED = re.compile(
    r"^stop\b|\b(?:do(?:n't| not)|never|must(?:n't| not)|should(?:n't| not)|avoid)\b"
    r"|\b(?:how (?:do|does|did|can|would|could|should|to)|what (?:would|will|does|might) happen"
    r"|what if)\b"
)


@dataclass(frozen=True)
class Reading:
    """A request that was looked at once: its pieces, and the first one after the courtesies."""

    text: str
    tokens: tuple[Token, ...]
    head: int
    asked: bool

    @cached_property
    def first(self) -> str:
        """The word that it begins with."""
        return self.word(self.head)

    @cached_property
    def form(self) -> Form:
        """How it is put."""
        if _UNWANTED.search(" ".join(token.word for token in self.tokens[self.head :])):
            return Form.UNWANTED
        if self.first in _SUBJECTS or (self.first, self.word(self.head + 1)) in _CRIES:
            return Form.STATEMENT
        if self.first in _ASKING:
            return Form.QUESTION
        return Form.WHETHER if self.first in _WHETHER else Form.ORDER

    @cached_property
    def doubtful(self) -> bool:
        """Whether something in it is a question, and it is not put as a favour."""
        marks = (token.text for token in self.tokens if token.sort is Sort.MARK)
        return "?" in marks and not self.asked

    @cached_property
    def ends_asking(self) -> bool:
        """Whether its last mark is a question mark."""
        return bool(self.tokens) and self.tokens[-1].text == "?"

    @cached_property
    def action(self) -> frozenset[Action]:
        """What it says is to be done, by its first word or its turn of phrase."""
        following = self.word(self.head + 1)
        if self.first == "file" and following in {"a", "an"}:
            return frozenset({Action.CREATE})
        if self.first in {"what", "which"} and following.endswith("s"):
            counted = self.word(self.head + 2) in {"are", "do", "does", "have"}
            return frozenset({Action.LIST}) if counted else frozenset()
        return orders(self.first) if self.form is Form.ORDER or self.first == "where" else _NONE

    @cached_property
    def stems(self) -> frozenset[str]:
        """What its words are about."""
        return frozenset(filter(None, self.topics))

    @cached_property
    def topics(self) -> list[str]:
        """What each piece is about; nothing for what is no word."""
        return [topic(one.word) if one.word else "" for one in self.tokens]

    @cached_property
    def meant(self) -> list[frozenset[Action]]:
        """The actions that each piece may name."""
        return [meanings(one.word) if one.word else _NONE for one in self.tokens]

    @cached_property
    def actions(self) -> frozenset[Action]:
        """Every action that one of its words may name."""
        return self.action.union(*self.meant)

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """Every type that something in it has."""
        return frozenset[Kind]().union(*(token.kinds for token in self.tokens))

    def word(self, number: int) -> str:
        """A word by its place; nothing where there is none."""
        return self.tokens[number].word if 0 <= number < len(self.tokens) else ""

    def capital(self, number: int) -> bool:
        """Whether there is a word that begins with a capital letter."""
        return bool(self.word(number)) and self.tokens[number].text[0].isupper()

    def words(self, start: int, end: int) -> list[str]:
        """The words from one place up to another."""
        return [self.word(number) for number in range(max(start, 0), min(end, len(self.tokens)))]

    def between(self, start: int, end: int) -> str:
        """The text from one piece up to another, as it was written."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]


_NONE: Final = frozenset[Action]()
_CRIES: Final = frozenset({("what", "a"), ("what", "an"), ("how", "are"), ("how", "nice")})


def read(request: str) -> Reading:
    """Look at a request."""
    tokens = tokens_of(request)
    head, asked = _past_courtesies(tokens, _past_greeting(tokens))
    return Reading(straight(request), tokens, head, asked)


def _past_greeting(tokens: tuple[Token, ...]) -> int:
    """Where a greeting that stands by itself has ended."""
    first, second = (*(token.word for token in tokens[:2]), "", "")[:2]
    at = 1 + (second in _GREETED)
    greets = first in _GREETINGS or (first, second) == ("thank", "you")
    greets = greets or (first == "good" and second in _GREETED)
    alone = at < len(tokens) and tokens[at].sort is Sort.MARK
    return at + 1 if greets and alone else 0


def _past_courtesies(tokens: tuple[Token, ...], at: int) -> tuple[int, bool]:
    """Where what is wanted begins, and whether it is asked for as a favour."""
    asked = False
    while at < len(tokens):
        word = tokens[at].word
        after = tokens[at + 1].word if at + 1 < len(tokens) else ""
        if word in _ABLE and after == "you" and not asked:
            at, asked = at + 2, True
        elif word in _LEADING or (tokens[at].sort is Sort.MARK and at > 0):
            at += 1
        else:
            break
    return at, asked
