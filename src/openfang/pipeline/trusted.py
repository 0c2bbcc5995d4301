"""What a run has heard from those who are trusted, so that a target can be found in it (C9.3).

Kept in memory alone, by reference, for each caller apart: what is forgotten makes a person be
asked, and never lets anything pass. Nothing is read before a call is tainted and has an effect.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from openfang.core.results import Result
from openfang.core.values import dataclass
from openfang.pipeline.shape import texts_of
from openfang.safety.provenance import unnamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openfang.core.calls import Call
    from openfang.core.tools import Tool
    from openfang.safety.provenance import Unnamed

Heard: TypeAlias = str | bytes | Result
_LARGEST: Final = 100_000
_OF_ONE_RUN: Final = 400_000
_OF_ONE_CALLER: Final = 2_000_000
_OF_ALL: Final = 64_000_000
_OVERHEAD: Final = 200


def _nothing() -> Iterable[str]:
    return ()


@dataclass(slots=True)
class _Scope:
    """What was heard in one run or conversation, with its size; the latest stands at the end."""

    heard: list[tuple[Heard, int]] = field(default_factory=list["tuple[Heard, int]"])
    size: int = 0

    def add(self, heard: Heard, size: int) -> int:
        """Keep it, forget the older half of what is too much, and say how much more there is."""
        before = self.size
        self.heard.append((heard, size))
        self.size += size
        if self.size > _OF_ONE_RUN:
            del self.heard[: len(self.heard) // 2]
            self.size = sum(size for _, size in self.heard)
        return self.size - before


@dataclass(slots=True)
class _Caller:
    """What was heard for one caller; what was gone on with last stands at the end."""

    scopes: OrderedDict[str, _Scope] = field(default_factory=OrderedDict[str, _Scope])
    size: int = 0

    def add(self, scope: str, heard: Heard, size: int) -> int:
        """Keep it, forget what is oldest, and say how much more there is."""
        before = self.size
        kept = self.scopes.get(scope)
        if kept is None:
            kept = self.scopes[scope] = _Scope()
        else:
            self.scopes.move_to_end(scope)
        self.size += kept.add(heard, size)
        while self.size > _OF_ONE_CALLER:
            self.size -= self.scopes.popitem(last=False)[1].size
        return self.size - before


@dataclass(slots=True, kw_only=True)
class TrustedTexts:
    """What callers and trusted tools have said, by who began the chain and by run.

    `standing` are the operator's own words, which hold for everybody.
    """

    standing: Callable[[], Iterable[str]] = _nothing
    _callers: OrderedDict[str, _Caller] = field(
        init=False, default_factory=OrderedDict[str, _Caller]
    )
    _size: int = field(init=False, default=0)

    def hear(self, call: Call, heard: Heard, size: int) -> None:
        """Keep what somebody trusted said in the call's run; what is large is not kept."""
        scope = _scope(call)
        if scope is not None:
            self._keep(call.root, scope, heard, size)

    def hear_in(self, root: str, scope: str, text: str) -> None:
        """Keep what was said in a conversation, once."""
        caller = self._callers.get(root)
        kept = caller.scopes.get(scope) if caller else None
        if kept is None or not any(text is one for one, _ in kept.heard):
            self._keep(root, scope, text, len(text))

    def _keep(self, root: str, scope: str, heard: Heard, size: int) -> None:
        if not size or size > _LARGEST:
            return
        caller = self._callers.get(root)
        if caller is None:
            caller = self._callers[root] = _Caller()
        self._size += caller.add(scope, heard, size + _OVERHEAD)
        if self._size > _OF_ALL:
            self._callers.move_to_end(root)  # not the one who is being heard
            self._size -= self._callers.popitem(last=False)[1].size

    def unnamed(self, call: Call, tool: Tool) -> Unnamed | None:
        """Find what the call chooses that nobody trusted has named in its run."""
        return unnamed(call.arguments, tool.sink, chain(self._said(call), self.standing()))

    def _said(self, call: Call) -> Iterator[str]:
        """What was said in the call's run, and in the conversations that led to it."""
        caller = self._callers.get(call.root)
        if caller is None:
            return
        for scope in (call.run_id, *call.sessions):
            if scope is not None and (kept := caller.scopes.get(scope)):
                for heard, _ in reversed(kept.heard):
                    yield from _texts(heard)


def _scope(call: Call) -> str | None:
    """Where words belong: to the conversation that the call is made in, else to its run."""
    return call.sessions[-1] if call.sessions else call.run_id


def _texts(heard: Heard) -> Iterator[str]:
    match heard:
        case str():
            yield heard
        case bytes():
            yield heard.decode()
        case Result():
            yield from texts_of(heard)
            if heard.structured is not None:
                yield orjson.dumps(heard.structured).decode()
