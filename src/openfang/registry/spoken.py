"""What servers say besides their tools: prompts, templates, resources, and how to be used.

All of it reaches models, so all of it is pinned and judged as tools are. Resources, which change
often, are only looked at.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import NotFound
from openfang.registry.board import new_pins
from openfang.registry.pins import Held, Said, accept, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.registry.board import Board, Scanning
    from openfang.registry.pins import Pin

# What else an entry says of itself changes with what it stands for: sizes, times, pictures.
_READ: Final = ("name", "title", "description", "arguments", "uriTemplate", "uri", "instructions")
# Each id is remembered for ever: a server that makes up new ones all the time must not.
_MOST: Final = 20_000


class Topic(Enum):
    """What is spoken of; the first part of its id."""

    PROMPT = "prompt"
    TEMPLATE = "template"
    RESOURCE = "resource"
    INSTRUCTIONS = "instructions"
    __hash__ = object.__hash__


def spoken_id(topic: Topic, server: str, name: str = "") -> str:
    """Name what a server says: `prompt:notes:review`, `instructions:notes`."""
    return f"{topic.value}:{server}:{name}" if name else f"{topic.value}:{server}"


class Spoken:
    """Keeps what is held back of it. It belongs to the event loop; `foresee` may run beside it."""

    def __init__(self, board: Board, scanning: Callable[[str], Scanning]) -> None:
        self.held: Mapping[str, Held] = {}
        self._board = board
        self._scanning = scanning

    def holds(self, topic: Topic, server: str, name: str = "") -> bool:
        """Whether this waits for a person."""
        return spoken_id(topic, server, name) in self.held

    def foresee(self, topic: Topic, server: str, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Look at new entries in advance, beside the loop."""
        self._board.foresee(_said(topic, server, entries).values(), list(entries))

    def sifted(
        self, topic: Topic, server: str, entries: Mapping[str, Mapping[str, Any]]
    ) -> frozenset[str]:
        """Judge all that a server says on a topic now; the answer names what may be passed on."""
        said = self._familiar(topic, server, _said(topic, server, entries))
        scanning = self._scanning(server)
        verdicts = self._board.judged(said.values(), scanning)
        lasting = {one.id for one in said.values() if one.lasts}
        self._board.keep([pin for pin in new_pins(verdicts.values()) if _kept(pin, lasting)])
        self._board.tell(verdicts.values(), self.held)
        held = {id_: one for id_, one in verdicts.items() if isinstance(one, Held)}
        self.held = {**self._others(topic, server), **held}
        return frozenset(name for name, one in said.items() if one.id not in held)

    def forget(self, server: str) -> None:
        """Let go of what a server said: it is not there any more."""
        for topic in Topic:
            self.held = self._others(topic, server)

    def accept(self, id_: str) -> Held:
        """Take what is held as it is now."""
        held = self.held.get(id_)
        if held is None:
            raise NotFound(f"{id_} is not held back", way_out="openfang servers held")
        self._board.keep([accept(held)])
        self.held = {other: one for other, one in self.held.items() if other != id_}
        return held

    def _others(self, topic: Topic, server: str) -> dict[str, Held]:
        own = spoken_id(topic, server)
        return {
            id_: one
            for id_, one in self.held.items()
            if id_ != own and not id_.startswith(f"{own}:")
        }

    def _familiar(self, topic: Topic, server: str, said: dict[str, Said]) -> dict[str, Said]:
        """Leave out what would be one too many to remember."""
        room = _MOST - self._board.count(f"{spoken_id(topic, server)}:")
        if len(said) <= room or not any(one.lasts for one in said.values()):
            return said
        known = {name: one for name, one in said.items() if self._board.knows(one.id)}
        fresh = [name for name in said if name not in known][: max(room, 0)]
        return {**known, **{name: said[name] for name in fresh}}


def _kept(pin: Pin, lasting: set[str]) -> bool:
    return pin.id in lasting or not pin.accepted


def _said(topic: Topic, server: str, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Said]:
    lasts = topic is not Topic.RESOURCE
    return {
        name: Said(spoken_id(topic, server, name), canonical(_read(entry)), lasts=lasts)
        for name, entry in entries.items()
    }


def _read(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in _READ if name in entry}
