"""The one registry: sources put their tools in, everybody reads one snapshot.

It belongs to the event loop: nothing here waits, and nothing here is locked.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from openfang.core.errors import NotFound
from openfang.core.events import ToolsChanged
from openfang.core.values import dataclass
from openfang.registry.adapters import apply_adapters
from openfang.registry.board import Scanning, new_pins
from openfang.registry.names import NameTable
from openfang.registry.pins import PINNED_KINDS, Held, accept, said_of
from openfang.registry.snapshot import Snapshot
from openfang.safety.definitions import Neighbours

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from openfang.core.ports import ToolSource
    from openfang.core.tools import Tool
    from openfang.registry.adapters import Adapter
    from openfang.registry.board import Board
    from openfang.registry.names import Collision
    from openfang.registry.pins import Pinned

    Subscriber = Callable[[ToolsChanged], None]

_log = logging.getLogger("openfang.registry")


class NameStore(Protocol):
    """Where wire names are kept."""

    def load(self) -> Mapping[str, str]:
        """Return all names by tool id."""
        ...

    def save(self, new: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Keep these, in this order: a name that moved is given up before it is taken.

        `before` are the names that some of these tools have had.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Everything that changes together: a failure on the way leaves all of it as it was."""

    sources: Mapping[str, Mapping[str, Tool]]
    names: NameTable
    snapshot: Snapshot


def _always_hold(tool: Tool) -> Scanning:
    del tool
    return Scanning.HOLD


class Registry:
    """Holds the current snapshot. Made from what is stored; adapters see each new tool once.

    `off` says which tools the operator switched off, whoever offers them; `scanning` what becomes
    of a suspicious one that was never seen before.
    """

    def __init__(
        self,
        *,
        names: NameStore,
        board: Board,
        adapters: Sequence[Adapter] = (),
        off: Callable[[Tool], bool] | None = None,
        scanning: Callable[[Tool], Scanning] = _always_hold,
    ) -> None:
        self.board = board
        self._name_store = names
        self._scanning = scanning
        self._adapters = tuple(adapters)
        self._off = off
        self._subscribers: dict[object, Subscriber] = {}
        self._state = _State(
            sources={},
            names=NameTable.of(names.load()),
            snapshot=Snapshot(),
        )

    @property
    def snapshot(self) -> Snapshot:
        """All tools now. Keep it for as long as one answer must be of one piece."""
        return self._state.snapshot

    @property
    def names(self) -> NameTable:
        """The table of wire names, those of absent tools included."""
        return self._state.names

    def find(self, name: str) -> Tool | None:
        """Look a tool up by canonical id, wire name or alias."""
        return self._state.snapshot.index.get(name)

    def remembered(self, prefix: str) -> list[str]:
        """Give the definitions, as JSON, of all accepted tools whose ids begin so, here or not."""
        return self.board.remembered(prefix)

    def foresee(self, tools: Sequence[Tool]) -> None:
        """Look at new tools in advance, beside the loop: `replace_source` then need not."""
        own = [tool.name for tool in tools]
        self.board.foresee((said_of(tool) for tool in tools if _is_pinned(tool)), own)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], object]:
        """Call it after each change; the answer ends that."""
        ticket = object()
        self._subscribers[ticket] = subscriber
        return lambda: self._subscribers.pop(ticket, None)

    def refresh(self, key: str, source: ToolSource) -> ToolsChanged:
        """Ask a source what it offers now. One that fails keeps what it had."""
        try:
            tools = source.tools()
        except Exception:  # noqa: BLE001 - a source may be other people's code
            _log.exception("Source %s cannot list its tools; those it had stay", key)
            return ToolsChanged()
        return self.replace_source(key, tools)

    def replace_source(self, key: str, tools: Iterable[Tool]) -> ToolsChanged:
        """Put these in place of the source's tools; `key` tells sources apart (`mcp:files`)."""
        state = self._state
        own = state.sources.get(key, {})
        fresh = [self._judged(tool) for tool in _claimed(state, own, tools)]
        names, collisions = state.names.assign([t for t in fresh if not t.operation])
        checks = self._checked(key, fresh)
        ours = {tool.id: _derived(tool, names, checks.get(tool.id)) for tool in fresh}
        return self._commit(
            sources=_renamed({**state.sources, key: ours}, names, collisions),
            names=names,
            collisions=collisions,
            held={
                **{id_: held for id_, held in state.snapshot.held.items() if id_ not in own},
                **{id_: verdict for id_, verdict in checks.items() if isinstance(verdict, Held)},
            },
            verdicts=list(checks.values()),
        )

    def _judged(self, tool: Tool) -> Tool:
        adapted = apply_adapters(tool, self._adapters)
        return replace(adapted, enabled=False) if self._off and self._off(tool) else adapted

    def accept(self, tool_id: str) -> ToolsChanged:
        """Take a held tool as it is now."""
        state = self._state
        held = state.snapshot.held.get(tool_id)
        if held is None:
            raise NotFound(f"{tool_id} is not held back", way_out="openfang tools list")
        self.board.keep([accept(held)])
        tool = replace(state.snapshot.tools[tool_id], hold="")
        key = next(key for key, tools in state.sources.items() if tool_id in tools)
        return self._commit(
            sources={**state.sources, key: {**state.sources[key], tool_id: tool}},
            names=state.names,
            collisions=(),
            held={id_: other for id_, other in state.snapshot.held.items() if id_ != tool_id},
        )

    def _checked(self, key: str, tools: Sequence[Tool]) -> dict[str, Pinned]:
        pinned = [tool for tool in tools if _is_pinned(tool)]
        if not pinned:
            return {}
        others = (found for one, found in self._state.sources.items() if one != key)
        near = Neighbours(
            own=[tool.name for tool in tools],
            others=[tool.name for found in others for tool in found.values()],
        )
        # All tools of one source are looked at in the same way.
        return self.board.judged(map(said_of, pinned), self._scanning(pinned[0]), near)

    def _commit(
        self,
        *,
        sources: Mapping[str, Mapping[str, Tool]],
        names: NameTable,
        collisions: Sequence[Collision],
        held: Mapping[str, Held],
        verdicts: Sequence[Pinned] = (),
    ) -> ToolsChanged:
        """Store what is new, then let everybody see it: in that order, so that nothing is lost."""
        before = self._state
        tools = (tool for key in sorted(sources) for tool in sources[key].values())
        snapshot = Snapshot.of(tools, held)
        self._save(before.names, names)
        self.board.keep(new_pins(verdicts))
        self._state = _State(
            sources={key: tools for key, tools in sources.items() if tools},
            names=names,
            snapshot=snapshot,
        )
        self.board.tell(verdicts, before.snapshot.held)
        for collision in collisions:
            _warn(collision)
        return self._announce(_difference(before.snapshot, snapshot))

    def _save(self, before: NameTable, after: NameTable) -> None:
        if after.names is not before.names:
            known = before.names
            moved = {i: n for i, n in after.names.items() if i in known and known[i] != n}
            new = {i: n for i, n in after.names.items() if i not in known}
            if moved or new:
                self._name_store.save({**moved, **new}, {tool: known[tool] for tool in moved})

    def learn(self, names: Mapping[str, str]) -> list[str]:
        """Take over the names that are kept; return the sources that have to be taken in again."""
        state = self._state
        table = replace(NameTable.of(names), reserved=state.names.reserved)
        if table.names == state.names.names:
            return []
        self._state = replace(state, names=table)
        return [
            key
            for key, tools in state.sources.items()
            if any(table.names.get(id_, "") != one.wire_name for id_, one in tools.items())
        ]

    def sources_of(self, ids: Collection[str]) -> list[str]:
        """Name the sources that offer any of these."""
        return [
            key for key, tools in self._state.sources.items() if not tools.keys().isdisjoint(ids)
        ]

    def _announce(self, event: ToolsChanged) -> ToolsChanged:
        if event != ToolsChanged():
            for subscriber in tuple(self._subscribers.values()):
                try:
                    subscriber(event)
                except Exception:  # noqa: BLE001 - one listener's fault must not deafen the others
                    _log.exception("A subscriber failed on a change of the tools")
        return event


def _claimed(state: _State, own: Mapping[str, Tool], tools: Iterable[Tool]) -> list[Tool]:
    """Leave out what another source offers already, and what this one offers twice."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.id in found or (tool.id in state.snapshot.tools and tool.id not in own):
            _log.warning("Tool %s is offered twice; the first stays", tool.id)
        else:
            found[tool.id] = tool
    return list(found.values())


def _derived(tool: Tool, names: NameTable, verdict: Pinned | None) -> Tool:
    return replace(
        tool,
        wire_name="" if tool.operation else names.names[tool.id],
        aliases=tuple(alias for alias in tool.aliases if names.may_use(alias, tool.id)),
        hold=verdict.reason if isinstance(verdict, Held) else tool.hold,
    )


def _is_pinned(tool: Tool) -> bool:
    return tool.kind in PINNED_KINDS and not tool.operation


def _renamed(
    sources: dict[str, Mapping[str, Tool]], names: NameTable, collisions: Sequence[Collision]
) -> dict[str, Mapping[str, Tool]]:
    """Carry new names to tools of other sources that had to give theirs to a built-in."""
    for loser in {collision.claimant for collision in collisions}:
        for key, tools in sources.items():
            if loser in tools and tools[loser].wire_name != names.names[loser]:
                renamed = replace(tools[loser], wire_name=names.names[loser])
                sources[key] = {**tools, loser: renamed}
    return sources


def _difference(before: Snapshot, after: Snapshot) -> ToolsChanged:
    old, new = before.tools, after.tools
    return ToolsChanged(
        added=tuple(i for i in new if i not in old),
        removed=tuple(i for i in old if i not in new),
        changed=tuple(
            i for i, tool in new.items() if i in old and old[i] is not tool and old[i] != tool
        ),
    )


def _warn(collision: Collision) -> None:
    _log.warning(
        "Tools %s and %s both claim the name %s; the second is called %s",
        collision.holder,
        collision.claimant,
        collision.name,
        collision.given,
    )
