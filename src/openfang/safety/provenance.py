"""Whether everything that a call chooses was named by somebody who is trusted (C9.3).

Targets are the arguments that choose who, where and what. In what an external sink is given
besides, every address counts, too: a link in a letter is a target of whoever reads it. Where no
argument is known to choose, all of them do; an effect without any was named by nobody.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from openfang.core.values import dataclass
from openfang.safety.atoms import Atom, Text, addresses_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from openfang.core.tools import Sink

_MOST_VALUES: Final = 200
_MOST_NAMES: Final = 1000
_LONGEST_SHOWN: Final = 80
# What a schema calls its members; anything else that is a key is a value of somebody's choice.
_MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z_\-]*\d?")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True, slots=True)
class Unnamed:
    """The first target that does not stand in trusted text; without an argument, there is none."""

    argument: str = ""
    value: str = ""

    def __str__(self) -> str:
        if not self.argument:
            return "no argument names a target"
        return f"{self.argument} {self.value!r} does not stand in trusted text"


def unnamed(arguments: Mapping[str, object], sink: Sink, trusted: Iterable[str]) -> Unnamed | None:
    """Find what a call chooses that nobody trusted has named."""
    targets = sink.targets or tuple(arguments)
    chosen = list(_chosen(arguments, targets))
    if not chosen:
        return Unnamed()
    if len(chosen) > _MOST_VALUES:
        argument, atom = chosen[_MOST_VALUES]
        return _shown(argument, atom)
    texts = [Text(text) for text in trusted]
    if sink.external:
        chosen += _addressed(arguments, targets)
    for argument, atom in dict.fromkeys(chosen):
        if not _stands(atom, texts):
            return _shown(argument, atom)
    return None


def _stands(atom: Atom, texts: Sequence[Text]) -> bool:
    return any(text.holds(atom) for text in texts)


def _shown(argument: str, atom: Atom) -> Unnamed:
    value = str(atom.value)
    cut = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
    return Unnamed(argument, cut)


def _chosen(arguments: Mapping[str, object], targets: Iterable[str]) -> Iterator[tuple[str, Atom]]:
    for target in targets:
        words = words_of(target)
        path = [target] if target in arguments else target.split(".")
        for value in _at(arguments, path):
            for leaf in _leaves(value):
                yield target, Atom(leaf, words)


@lru_cache(_MOST_NAMES)
def words_of(argument: str) -> tuple[str, ...]:
    """The words of an argument's own name."""
    return tuple(word.lower() for word in _WORD.findall(argument.rpartition(".")[2]))


def _at(value: object, path: Sequence[str]) -> Iterator[object]:
    """What stands at a dotted path; a list on the way stands for each of its elements."""
    if isinstance(value, list):
        for element in cast("list[object]", value):
            yield from _at(element, path)
    elif not path:
        yield value
    elif isinstance(value, dict):
        members = cast("dict[str, object]", value)
        if path[0] in members:
            yield from _at(members[path[0]], path[1:])


def _leaves(value: object) -> Iterator[str | float]:
    """Texts and numbers of a value, however deep; keys that name no member are such texts."""
    match value:
        case bool() | None:
            return
        case str():
            if stripped := value.strip():
                yield stripped
        case int() | float():
            yield value
        case list():
            for element in cast("list[object]", value):
                yield from _leaves(element)
        case dict():
            for name, element in cast("dict[str, object]", value).items():
                if not _MEMBER.fullmatch(name):
                    yield from _leaves(name)
                yield from _leaves(element)
        case _:
            yield str(value)


def _addressed(
    arguments: Mapping[str, object], targets: Sequence[str]
) -> Iterator[tuple[str, Atom]]:
    """Addresses in what is no target itself."""
    for name, value in arguments.items():
        if name in targets:
            continue
        for leaf in _leaves(value):
            if isinstance(leaf, str):
                for address in addresses_in(leaf):
                    yield name, Atom(address)
