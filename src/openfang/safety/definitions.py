"""Whether a definition speaks to the model that reads it instead of describing itself. Pure.

A definition is any JSON that somebody else says of itself: a tool, a prompt, instructions, a card.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.values import dataclass
from openfang.safety.definition_orders import LEADING, ORDERS
from openfang.safety.definition_rules import ALONE, TRAITS
from openfang.safety.folding import folded, mixed, skeleton
from openfang.safety.patterns import Pattern, compile_words, contained
from openfang.safety.scan import Scan
from openfang.safety.shapes import SHAPES
from openfang.safety.unseen import revealed, shown, unseen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

LONGEST: Final = 16_000
"""Of one text so much is judged; one that is longer is a finding itself."""
_MOST_TEXTS: Final = 5_000
_MOST_FINDINGS: Final = 20
_MOST_SHOWN: Final = 40
_EXCERPT: Final = 160
_SHORTEST: Final = 12
_CODED: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{32,})|([A-Za-z0-9+/_-]{24,}={0,2})")
# From where a word begins, and never back into it: a text can be one long word.
_READABLE: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}+(?:[ ,.'-]+[A-Za-z~/._]+){2,}")
_TALKING: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}+(?:[ ,.'-]+[A-Za-z~/._]+){4,}")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_NAMES: Final = frozenset({"name", "title"})
# Values that name a part of the definition: choices of an argument, skills of an agent.
_OWN_VALUE: Final = re.compile(r"\.enum\[|\bskills\[[0-9]+\]\.id$")
_NAMED: Final = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_TOOL: Final = re.compile(
    r"\b(?:call|calls|calling|call of|invoke|invoking|use|using|run|running|execute|executing|"
    r"trigger|"
    r"tools? named|tools? called|rule for|how|(?:output|result|results|response) (?:of|from)|tool)"
    r"\s+(?:the\s+)?(?:tool\s+)?[`'\"]?([a-z][a-z0-9]*(?:_[a-z0-9]+)+)"
    r"|\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+)[`'\"(]?\s*(?:tool|function|is\b|has\b"
    r"|of the other|behaves|\()"
)
_SECRETS: Final = Scan(SHAPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a person should see before a model does; `excerpt` is safe to show."""

    code: str
    place: str
    excerpt: str
    serious: bool = True

    def body(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


ABOUT: Final[Mapping[str, str]] = {
    "hidden_characters": "holds characters that nobody sees",
    "confusable_name": "has a name that looks like another one",
    "name_taken": "has the name of another server's tool",
    "overrides_instructions": "tells the model to set its instructions aside",
    "hides_from_user": "tells the model to keep something from the user",
    "reads_secrets": "tells the model to read files that hold secrets",
    "sends_data": "tells the model to hand over data that the tool does not need",
    "orders_other_tools": "tells the model how to use tools of others",
    "false_role": "pretends to be a message of the system or of somebody else",
    "hidden_comment": "holds text that is not shown where it is displayed",
    "encoded_text": "holds text that is encoded",
    "false_authority": "claims an authority that it does not have",
    "prefers_itself": "tells the model to prefer it to all others",
    "runs_programs": "names commands that load and run programs, or destroy data",
    "acts_unasked": "tells the model to act without being asked",
    "secret_in_text": "holds a secret in plain text",
    "unreadable_program": "is a program that nobody can read",
    "overlong": "is longer than is looked at",
}


@dataclass(frozen=True)
class Neighbours:
    """Names that a definition may meet: `own` are of its server, `others` of everybody else."""

    own: Collection[str] = ()
    others: Collection[str] = ()

    @cached_property
    def by_looks(self) -> Mapping[str, str]:
        """The names of others, by what the eye sees of them."""
        return {skeleton(name): name for name in self.others}


NOBODY: Final = Neighbours()


@dataclass(frozen=True, slots=True)
class _Known:
    """Names that may be spoken of; there may be ten thousand of the server's."""

    own: Collection[str]
    words: Collection[str]

    def __contains__(self, name: str) -> bool:
        return name in self.words or name in self.own


@dataclass(frozen=True, slots=True)
class _Text:
    place: str
    raw: str
    is_name: bool = False


def scan(definition: object, own: Collection[str] = ()) -> tuple[Finding, ...]:
    """Judge all that a definition says, gravest first; `own` are its server's names, lower case."""
    texts = list(_texts(definition))
    known = _Known(own, _words_of(texts))
    found: list[Finding] = []
    for text in texts[:_MOST_TEXTS]:
        found += _judged(text, known)
        if sum(one.serious for one in found) > _MOST_FINDINGS:
            break  # what is not serious never hides what is
    if len(texts) > _MOST_TEXTS:
        found.append(Finding(code="overlong", place="", excerpt=f"{len(texts)} texts"))
    unique: dict[tuple[str, str], Finding] = {}
    for one in found:
        unique.setdefault((one.code, one.place), one)
    return tuple(sorted(unique.values(), key=lambda one: not one.serious)[:_MOST_SHOWN])


def serious(findings: Iterable[Finding]) -> bool:
    """Whether a person has to be asked."""
    return any(one.serious for one in findings)


def _texts(value: object) -> Iterator[_Text]:
    """Walk through all strings, keys among them, with the place of each."""
    waiting: list[tuple[str, str, object]] = [("", "", value)]
    while waiting:
        place, key, one = waiting.pop()
        match one:
            case str():
                yield _Text(place, one, key in _NAMES)
            case Mapping():
                members = cast("Mapping[Any, object]", one)
                for name, member in reversed(list(members.items())):
                    inside = f"{place}.{name}" if place else str(name)
                    waiting.append((inside, str(name), member))
                    yield _Text(inside, str(name), is_name=True)
            case list() | tuple():
                listed = cast("Sequence[object]", one)
                waiting += [(f"{place}[{n}]", key, item) for n, item in enumerate(listed)][::-1]
            case _:
                pass


def _words_of(texts: Iterable[_Text]) -> set[str]:
    """Names of a definition's own parts: who speaks of them speaks of itself."""
    return {one.raw.lower() for one in texts if one.is_name or _OWN_VALUE.search(one.place)}


def _judged(text: _Text, known: _Known) -> Iterator[Finding]:
    raw = text.raw
    if len(raw) > LONGEST:
        yield _finding("overlong", text, f"{len(raw)} characters")  # the rest could say anything
        raw = raw[:LONGEST]
    yield from _hidden(text, raw)
    if text.is_name and not raw.isascii() and any(map(mixed, re.findall(r"[^\W\d_]+", raw))):
        yield _finding("confusable_name", text, raw)
    if len(raw) < _SHORTEST:
        return
    yield from _secrets(text, raw)
    plain = folded(raw.replace("_", " ") if text.is_name else raw)
    yield from (_finding(code, text, part) for code, part in _orders(plain, known))
    yield from _coded(text, raw, known)


def _hidden(text: _Text, raw: str) -> Iterator[Finding]:
    runs = list(unseen(raw))
    if not runs:
        return
    grave = [run for run in runs if not run.usual] or ([] if not text.is_name else runs)
    first = (grave or runs)[0]
    around = raw[max(0, first.start - 20) : first.end + 20]
    if grave:
        meaning = revealed("".join(raw[run.start : run.end] for run in grave))
        yield _finding("hidden_characters", text, meaning or around)
    elif not all(_is_emoji_part(raw, run.start) for run in runs):
        yield _finding("hidden_characters", text, around, serious=False)


def _is_emoji_part(raw: str, at: int) -> bool:
    return raw[at] in "\ufe0e\ufe0f\u200d" or ord(raw[at]) >= 0xE0000  # noqa: PLR2004 - tags


def _secrets(text: _Text, raw: str) -> Iterator[Finding]:
    for span in _SECRETS.spans(raw.encode(errors="replace"))[:1]:
        yield _finding("secret_in_text", text, f"a secret of the kind {span.kind}", serious=False)


def _coded(text: _Text, raw: str, known: _Known) -> Iterator[Finding]:
    """Judge what is written in base64 or hex as if it were written out."""
    for found in _CODED.finditer(raw):
        said = _decoded(found)
        if said and _READABLE.search(said):
            grave = bool(_TALKING.search(said) or list(_orders(folded(said), known)))
            yield _finding("encoded_text", text, said, serious=grave)


def _decoded(found: re.Match[str]) -> str:
    try:
        if found[1]:
            data = bytes.fromhex(found[1][: len(found[1]) // 2 * 2])
        else:
            coded = found[2].rstrip("=").replace("-", "+").replace("_", "/")
            coded = coded[: len(coded) - (len(coded) % 4 == 1)]
            data = base64.b64decode(coded + "=" * (-len(coded) % 4))
        said = data.decode("ascii")
    except (ValueError, binascii.Error):
        return ""
    return said


def _orders(plain: str, known: _Known) -> Iterator[tuple[str, str]]:
    """Find orders to a model in folded text: single ones, and traits that make one together."""
    rules = _rules()
    data = plain.encode(errors="replace")
    if contained(rules.any_alone, data):
        for code, pattern in rules.alone:
            if place := pattern.search(data):
                start, end = place.span()
                yield code, data[max(0, start - 20) : end + 60].decode(errors="replace")
    if (contained(rules.any_leading, data) or _foreign(plain, known)) and _possible(plain, known):
        yield from _together(_SENTENCE.split(plain), known)


def _possible(plain: str, known: _Known) -> bool:
    met = _traits(plain, known)
    return any(wanted <= met for _, wanted, _ in ORDERS)


def _together(sentences: Sequence[str], known: _Known) -> Iterator[tuple[str, str]]:
    met = [_traits(sentence, known) for sentence in sentences]
    for number, (sentence, own) in enumerate(zip(sentences, met, strict=True)):
        around = own | met[number - 1] if number else own
        for code, wanted, here in ORDERS:
            if wanted <= around and here <= own:
                yield code, sentence
                break


def _traits(sentence: str, known: _Known) -> frozenset[str]:
    data = sentence.encode(errors="replace")
    found = {name for name, pattern in _rules().traits if contained(pattern, data)}
    if _foreign(sentence, known):
        found.add("foreign")
        if any((one[1] or one[2]) not in known for one in _TOOL.finditer(sentence)):
            found.add("other_tool")
    return frozenset(found)


def _foreign(text: str, known: _Known) -> bool:
    """Whether it names what is none of its own."""
    return any(name not in known for name in _NAMED.findall(text))


@dataclass(frozen=True, slots=True)
class _Rules:
    """Compiled; `any_*` say at once that there is nothing."""

    any_alone: Pattern
    any_leading: Pattern
    alone: tuple[tuple[str, Pattern], ...]
    traits: tuple[tuple[str, Pattern], ...]


@cache
def _rules() -> _Rules:
    """Compile when the first definition is judged: many processes never judge one."""
    return _Rules(
        any_alone=_any(pattern for _, pattern in ALONE),
        any_leading=_any(pattern for name, pattern in TRAITS if name in LEADING),
        alone=tuple((code, compile_words(pattern)) for code, pattern in ALONE),
        traits=tuple((name, compile_words(pattern)) for name, pattern in TRAITS),
    )


def _any(patterns: Iterable[str]) -> Pattern:
    return compile_words("|".join(f"(?:{pattern})" for pattern in patterns))


def alike(definition: Mapping[str, Any], neighbours: Neighbours) -> tuple[Finding, ...]:
    """Find a name that is somebody else's, or that the eye takes for it."""
    own: object = definition.get("name")
    other = neighbours.by_looks.get(skeleton(own)) if isinstance(own, str) else None
    if other is None or not isinstance(own, str):
        return ()
    if _letters(other) == _letters(own):
        return (Finding(code="name_taken", place="name", excerpt=shown(other), serious=False),)
    excerpt = f"{shown(own)} looks like {shown(other)}"
    return (Finding(code="confusable_name", place="name", excerpt=excerpt),)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _finding(code: str, text: _Text, part: str, *, serious: bool = True) -> Finding:
    excerpt = shown(" ".join(part.split()))
    if len(excerpt) > _EXCERPT:
        excerpt = excerpt[: _EXCERPT - 3] + "..."
    return Finding(code=code, place=shown(text.place)[:_EXCERPT], excerpt=excerpt, serious=serious)
