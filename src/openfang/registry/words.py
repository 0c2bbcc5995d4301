"""Names and sentences cut into whole words: `prune` holds no `run`, and `profile` no `file`."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\W\d_]+")
_CLAUSE = re.compile(r"[.,;:!?()\[\]\n]+|\b(?:and|or|then|also|plus)\b", re.IGNORECASE)
_TOKEN = re.compile(r"\w[\w/.-]*")
_PLAIN = re.compile(r"[^\W\d_]+")
_LONGEST = 4_000
_SHORTEST = 3


def split(name: str) -> tuple[str, ...]:
    """Cut a name at camel humps, digits and punctuation: `getHTTPServer_2` is get, http, server."""
    humped = _HUMP.sub(" ", _visible(name))
    return tuple(word.lower() for word in _BETWEEN.split(humped) if word)


def clauses(text: str) -> tuple[tuple[str, ...], ...]:
    """Cut prose at punctuation and conjunctions. Identifiers (`delete_file`) are no words."""
    parts = _CLAUSE.split(_visible(text[:_LONGEST]))
    found = (_spoken(part) for part in parts)
    return tuple(words for words in found if words)


def singular(word: str) -> str:
    """`files` is file, `directories` directory, `access` and `dns` stay."""
    if word.endswith("ies") and len(word) > _SHORTEST + 1:
        return word[:-3] + "y"
    if word.endswith(("ss", "us", "is", "dns")) or not word.endswith("s"):
        return word
    return word[:-1] if len(word) >= _SHORTEST else word


def bases(word: str) -> tuple[str, ...]:
    """Name the verbs that a third person may stand for: `pushes` is push, `writes` is write."""
    forms = [word]
    if word.endswith("s"):
        forms.append(word[:-1])
    if word.endswith("es"):
        forms.append(word[:-2])
    if word.endswith("ies"):
        forms.append(word[:-3] + "y")
    return tuple(forms)


def joined(words: Sequence[str], compounds: Mapping[tuple[str, str], str]) -> tuple[str, ...]:
    """Put together what belongs together: `pull request` is no pulling, `shut down` is one verb."""
    found: list[str] = []
    for word in words:
        known = compounds.get((found[-1], word)) if found else None
        if known is None:
            found.append(word)
        else:
            found[-1] = known
    return tuple(found)


def grams(words: Sequence[str]) -> frozenset[str]:
    """All words and neighbouring pairs, in the singular as well."""
    single = [singular(word) for word in words]
    pairs = (f"{left} {right}" for left, right in pairwise(single))
    return frozenset((*words, *single, *pairs))


def _visible(text: str) -> str:
    """Fold look-alike widths and drop what cannot be seen: neither may hide a word."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text)
    return "".join(c for c in folded if unicodedata.category(c) != "Cf")


def _spoken(part: str) -> tuple[str, ...]:
    tokens = (token.strip("-/.") for token in _TOKEN.findall(part))
    return tuple(
        word.lower() for token in tokens if "_" not in token for word in _PLAIN.findall(token)
    )
