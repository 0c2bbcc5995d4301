"""What words mean to the planner: which actions they name, and which say that none is wanted."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final


class Action(Enum):
    """What a tool does, as far as one word can tell."""

    READ = auto()
    LIST = auto()
    SEARCH = auto()
    RECALL = auto()
    TELL = auto()
    FETCH = auto()
    WRITE = auto()
    CREATE = auto()
    STORE = auto()
    MOVE = auto()
    SEND = auto()
    RUN = auto()
    CONVERT = auto()
    DELETE = auto()


_ACTIONS: Final[dict[Action, str]] = {
    Action.READ: "read open show view print display cat content contents say says inspect see",
    Action.LIST: "list ls files folder directory show enumerate last give",
    Action.SEARCH: "search find grep look locate mention mentioned where contains",
    Action.RECALL: "recall remember remembered forget",
    Action.TELL: "time date day now today clock hour",
    Action.FETCH: "fetch get download open visit browse load page url website",
    Action.WRITE: "write save put overwrite create make",
    Action.CREATE: "create open make new add report raise",
    Action.STORE: "remember store note memorize memorise keep save",
    Action.MOVE: "move rename mv",
    Action.SEND: "send mail email e-mail message write notify post",
    Action.RUN: "run execute exec start launch command shell",
    Action.CONVERT: "convert exchange much",
    Action.DELETE: "delete remove erase drop destroy purge wipe unlink rm trash uninstall kill",
}
_MEANINGS: Final[dict[str, frozenset[Action]]] = {
    word: frozenset(action for action, words in _ACTIONS.items() if word in words.split())
    for words in _ACTIONS.values()
    for word in words.split()
}
_SAYS_NOTHING: Final = (
    "a about all an and any are as at be but by can could do does for from give has "
    "have how i if in into is it its just let like may me mine my of on or our please "
    "so some tell than that the their them then there these this those to under us "
    "want was we were what whats will with would you your "
)
_STOP: Final = frozenset(_SAYS_NOTHING.split())
_TOPICS: Final = {
    word: topic
    for topic, words in {
        "weather": "rain raining rainy snow warm cold hot temperature sunny forecast degrees windy",
        "issue": "bug ticket",
        "email": "mail e-mail",
    }.items()
    for word in words.split()
}
_PHRASES: Final = (
    (
        re.compile(
            r"\bwhat(?:'s| is| are| was) my\b|\b(?:told|tell) you about\b|\bremember\b.*\?",
            re.IGNORECASE,
        ),
        Action.RECALL,
    ),
    (re.compile(r"\bfile an?\b", re.IGNORECASE), Action.CREATE),
    (re.compile(r"\bremember\b[^?]+\b(?:is|are|=)\b[^?]+$", re.IGNORECASE), Action.STORE),
)
_WORD = re.compile(r"[a-z][a-z0-9'-]*|[^\W\d_]+", re.IGNORECASE)
_ENDINGS: Final = ("ies", "ing", "ed", "es", "s")
_SHORTEST: Final = 3
_UNWANTED = re.compile(
    r"\b(?:do(?:n'?t| not)|never|must(?:n'?t| not)|should(?:n'?t| not)|stop)\b"
    r"|\b(?:how (?:do|can|would|could|should) (?:i|we|you|one)|how to)\b"
    r"|\bwhat (?:would|will|does|might) happen\b|\bwhat if\b"
    r"|^(?:i|we|he|she|they|you)\b(?:'ve| have| had)? \w+ed\b",
    re.IGNORECASE,
)


_STRAIGHT: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


def straight(text: str) -> str:
    """Write every quotation mark as a keyboard does."""
    return text.translate(_STRAIGHT)


def stem(word: str) -> str:
    """Cut a word to what its forms share, roughly."""
    word = word.lower().removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, those that say nothing left out."""
    found = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return [word for word in found if word not in _STOP]


def stems_of(text: str) -> list[str]:
    """Their stems; a word for a part of a topic counts as the topic."""
    return [stem(_TOPICS.get(word, word)) for word in words_of(text)]


def phrased(text: str) -> frozenset[Action]:
    """The actions that a turn of phrase names, whatever its words."""
    return frozenset(action for pattern, action in _PHRASES if pattern.search(text))


@lru_cache(maxsize=4096)
def meanings(word: str) -> frozenset[Action]:
    """The actions that a word may name, in any of its forms."""
    return _MEANINGS.get(word) or _STEMMED.get(stem(word), frozenset())


_STEMMED: Final = {stem(word): actions for word, actions in _MEANINGS.items()}


def is_unwanted(text: str) -> bool:
    """Whether a text forbids, asks about or tells of an action, and does not ask for one."""
    return _UNWANTED.search(text.strip()) is not None
