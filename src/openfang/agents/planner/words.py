"""What words mean to the planner: the actions they name, what they are about, what says nothing."""

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
    CONVERT = auto()
    WRITE = auto()
    CREATE = auto()
    STORE = auto()
    MOVE = auto()
    SEND = auto()
    RUN = auto()
    DELETE = auto()


def bag(words: str) -> frozenset[str]:
    """The words of a list that is written as a line."""
    return frozenset(words.split())


READING: Final = frozenset(
    {
        Action.READ,
        Action.LIST,
        Action.SEARCH,
        Action.RECALL,
        Action.TELL,
        Action.FETCH,
        Action.CONVERT,
    }
)
_ACTIONS: Final[dict[Action, str]] = {
    Action.READ: "read open show view print display cat content contents say says inspect see",
    Action.LIST: "list ls show enumerate last give",
    Action.SEARCH: "search find grep look locate mention mentioned where contains",
    Action.RECALL: "recall",
    Action.TELL: "time date day clock hour",
    Action.FETCH: "fetch get download open visit browse load page url website",
    Action.CONVERT: "convert exchange much",
    Action.WRITE: "write save put overwrite create make",
    Action.CREATE: "create open make new add report raise",
    Action.STORE: "remember store note memorize memorise keep save",
    Action.MOVE: "move rename mv",
    Action.SEND: "send mail email e-mail message write notify post ask",
    Action.RUN: "run execute exec start launch command shell",
    Action.DELETE: (
        "delete remove erase drop destroy purge wipe unlink rm trash uninstall kill forget"
    ),
}
_MEANINGS: Final[dict[str, frozenset[Action]]] = {
    word: frozenset(action for action, words in _ACTIONS.items() if word in words.split())
    for words in _ACTIONS.values()
    for word in words.split()
}
_TOPICS: Final = {
    "weather": "rain raining rainy snow warm cold hot temperature sunny forecast degrees windy",
    "issue": "bug ticket",
    "email": "mail e-mail",
    "file": "document ls cat rm mv",
    "folder": "directory dir",
}
_SAYS_NOTHING: Final = (
    "a about all an and any are as at be but by can could do does for from give has "
    "have how i if in into is it its just let like may me mine my of on or our please "
    "so some tell than that the their them then there these this those to under us "
    "want was we were what whats will with would you your "
)
_STOP: Final = bag(_SAYS_NOTHING)
# They bind the words of a request and change nothing in what is asked; `not`, `if`, `tomorrow` do.
FILLERS: Final = bag(
    "a about all an and any are as at by current currently do does for from has have how i in into "
    "is it its me my now of on our please right some that the this to today us we what whats "
    "what's which will with"
)
ARTICLES: Final = bag("a an the my our this")
SHOWING: Final = bag("show give tell print display see")
_WORD = re.compile(r"[a-z][a-z0-9'-]*|[^\W\d_]+", re.IGNORECASE)
_STRAIGHT: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_SHORTEST: Final = 3
_HISSING: Final = ("ses", "xes", "zes", "ches", "shes")


def straight(text: str) -> str:
    """Write every quotation mark as a keyboard does."""
    return text.translate(_STRAIGHT)


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Cut a word to what its forms share, roughly."""
    word = _singular(word.lower().removesuffix("'s"))
    for ending in ("ing", "ed", "e"):
        least = _SHORTEST + (ending == "e")
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word.removesuffix(ending)
    return word


def _singular(word: str) -> str:
    if len(word) <= _SHORTEST or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_HISSING) else word.removesuffix("s")


_TOPIC_OF: Final = {
    stem(word): stem(topic) for topic, words in _TOPICS.items() for word in words.split()
}
_STEMMED: Final = {stem(word): actions for word, actions in _MEANINGS.items()}


def topic(word: str) -> str:
    """The stem of a word; a word for a part of a topic counts as the topic."""
    cut = stem(word)
    return _TOPIC_OF.get(cut, cut)


def subject(word: str) -> str:
    """What a word is about besides itself, if anything: `ls` is about files."""
    return _TOPIC_OF.get(stem(word), "")


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, those that say nothing left out."""
    found = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return [word for word in found if word not in _STOP]


def stems_of(text: str) -> list[str]:
    """What its words are about."""
    return [topic(word) for word in words_of(text)]


def orders(word: str) -> frozenset[Action]:
    """The actions that a word orders: `delete` does, and `deleted` tells of one."""
    return _MEANINGS.get(word, frozenset())


def meanings(word: str) -> frozenset[Action]:
    """The actions that a word may name, in any of its forms."""
    return _MEANINGS.get(word) or _STEMMED.get(stem(word), frozenset())
