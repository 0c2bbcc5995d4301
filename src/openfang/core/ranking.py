"""Which of many short texts fit some words best: BM25. Pure."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_K1: Final = 1.2
_B: Final = 0.5


class Ranking:
    """Texts, each as its words, prepared once."""

    __slots__ = ("_average", "_counts", "_holders", "_lengths")

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(text) for text in texts]
        self._lengths = [len(text) for text in texts]
        self._average = sum(self._lengths) / len(texts) if texts else 1.0
        self._holders: dict[str, list[int]] = {}
        for number, counts in enumerate(self._counts):
            for term in counts:
                self._holders.setdefault(term, []).append(number)

    def best(self, words: Iterable[str], most: int) -> list[int]:
        """Give the numbers of the texts that fit, best first; of two alike the first one first."""
        terms = set(words)
        found = {number for term in terms for number in self._holders.get(term, ())}
        scored = [(-self.score(number, terms), number) for number in found]
        return [number for _, number in sorted(scored)[:most]]

    def score(self, number: int, words: Iterable[str]) -> float:
        """Say how well one text fits; each word counts once."""
        counts = self._counts[number]
        length = self._lengths[number] / self._average if self._average else 0.0
        damp = _K1 * (1 - _B + _B * length)
        return sum(
            self._rarity(term) * count * (_K1 + 1) / (count + damp)
            for term in sorted(set(words))
            if (count := counts[term])
        )

    def _rarity(self, term: str) -> float:
        holders = len(self._holders[term])
        return math.log(1 + (len(self._counts) - holders + 0.5) / (holders + 0.5))
