"""A text as a model reads it: without what is not seen, and with the letters that are meant."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from openfang.safety.unseen import without_unseen

# Letters of other scripts that look like ours. Those that stand for units (mu, ohm) are not here.
_TWINS: Final = dict(
    zip(
        "авеікмнорстухсԁјѕһԛԝցոսіѡӏғꞵαβεικνορτυχγηοϲϳАВЕІКМНОРСТУХЅЈԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "abeikmhopctyxcdjshqwgnuiwlfbabeikvoptuxynocjabeikmhopctyxsjgqwabezhikmnoptyx",
        strict=True,
    )
)
_LIKE: Final = str.maketrans(
    {"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s"}
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_SPACES: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r"\s*\n\s*")
_SPELLED: Final = re.compile(r"(?<!\w)(?:\w[ .\-_]{1,3}){5,}\w(?!\w)")
_BETWEEN: Final = re.compile(r"[ .\-_]+")
_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"'})


def folded(text: str) -> str:
    """Write a text in one way: lower case, plain letters, one space between words."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_unseen(text)).translate(_APOSTROPHES)
        text = _plain(_WORD.sub(lambda found: _own_letters(found[0]), text))
    text = _SPELLED.sub(_joined, text.lower())
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def mixed(word: str) -> bool:
    """Whether letters that look alike come from more than one script."""
    letters = [one for one in word if one.isalpha()]
    return any(one.isascii() for one in letters) and any(one in _TWINS for one in letters)


def skeleton(name: str) -> str:
    """Reduce a name to what the eye sees: names with one skeleton are taken for each other."""
    plain = _plain("".join(_TWINS.get(one, one) for one in unicodedata.normalize("NFKC", name)))
    return re.sub(r"[\W_]+", "", without_unseen(plain).lower()).translate(_LIKE).replace("rn", "m")


def _own_letters(word: str) -> str:
    return "".join(_TWINS.get(one, one) for one in word) if mixed(word) else word


def _plain(text: str) -> str:
    """Take accents off our own letters; other scripts need their marks."""
    return "".join(one if one.isascii() else _base(one) for one in text)


def _base(letter: str) -> str:
    first = unicodedata.normalize("NFKD", letter)[0]
    return first if first.isascii() else letter


def _joined(found: re.Match[str]) -> str:
    """Put a word together that is spelled letter by letter; wider gaps part words."""
    words = re.split(r"\s{2,}", found[0])
    return " ".join(_BETWEEN.sub("", word) for word in words)
