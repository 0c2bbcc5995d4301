"""What is held back of what others say of themselves: put on record, shown, and accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.errors import Conflict, NotFound
from openfang.core.events import (
    DEFINITION_ACCEPTED,
    DEFINITION_HELD,
    DEFINITION_NOTED,
    TOOL_ACCEPTED,
    TOOL_HELD,
    Record,
)
from openfang.core.ids import Kind
from openfang.core.tools import Trust
from openfang.core.values import dataclass
from openfang.registry.board import Scanning
from openfang.registry.pins import FirstSeen, Held, finding_bodies
from openfang.registry.spoken import Topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.core.calls import Caller

_TOPICS = frozenset(topic.value for topic in Topic)


def scanning_of(config: Config, kind: Kind, source: str) -> Scanning:
    """Say what becomes of suspicious definitions: by the server's word, its trust, the node's."""
    found = next((one for one in config.mcp_servers if one.name == source), None)
    if kind is Kind.MCP and found is not None:
        if found.scan is not None:
            return Scanning(found.scan)
        if found.trust is Trust.HIGH and config.definitions.scan == Scanning.HOLD.value:
            return Scanning.WARN
    return Scanning(config.definitions.scan)


def scans_of(config: Config) -> object:
    """Give all that `scanning_of` reads: where that changed, everything is judged again."""
    return config.definitions, {one.name: (one.scan, one.trust) for one in config.mcp_servers}


def sift_again(parts: Parts) -> None:
    """Judge again what servers said besides their tools."""
    for source in list(parts.servers.running.values()) if parts.servers else ():
        source.sift()
        source.lists.sift()


def records_of(verdicts: Iterable[FirstSeen | Held]) -> list[Record]:
    """Put down what is held back, and what was found in what is offered."""
    return [_held(one) if isinstance(one, Held) else _noted(one) for one in verdicts]


def _held(held: Held) -> Record:
    payload = {
        "was": held.pin.digest if held.changed else None,
        "now": held.digest,
        "reason": held.reason,
        "diff": held.diff,
        "findings": finding_bodies(held.findings),
    }
    spoken = is_spoken(held.pin.id)
    return Record(
        event=DEFINITION_HELD if spoken else TOOL_HELD,
        level="warning",
        payload=payload,
        context=_about(held.pin.id),
    )


def _noted(seen: FirstSeen) -> Record:
    payload = {"now": seen.pin.digest, "findings": finding_bodies(seen.pin.findings)}
    return Record(event=DEFINITION_NOTED, payload=payload, context=_about(seen.pin.id))


def _about(id_: str) -> dict[str, str]:
    return {"definition" if is_spoken(id_) else "tool": id_}


def is_spoken(id_: str) -> bool:
    """Whether it is the id of what a server says besides its tools."""
    return id_.partition(":")[0] in _TOPICS


@dataclass(frozen=True, slots=True)
class Definitions:
    """What waits for a person, and that person's yes."""

    parts: Parts
    caller: Caller

    def held(self, source: str = "") -> list[dict[str, Any]]:
        """List all that is held back, or what of one source is."""
        all_held = {**self.parts.registry.snapshot.held, **self.parts.spoken.held}
        bodies = [held_body(one) for _, one in sorted(all_held.items())]
        return [body for body in bodies if not source or body["source"] == source]

    async def accept(self, id_: str, digest: str = "") -> dict[str, Any]:
        """Take what is held as it is now, if that is still what was looked at."""
        parts = self.parts
        tool = parts.registry.find(id_)
        found = self._found(tool.id if tool else id_)
        if found is None:
            raise NotFound(f"{id_} is not held back.", way_out="openfang servers held")
        if digest and digest != found.digest:
            raise _changed(id_)
        await parts.broker.append([self._accepted(found)])
        self._take(found)
        return held_body(found)

    def _found(self, id_: str) -> Held | None:
        return self.parts.spoken.held.get(id_) or self.parts.registry.snapshot.held.get(id_)

    def _take(self, looked_at: Held) -> None:
        """Take it, unless it became something else while the yes to it was written down."""
        parts, id_ = self.parts, looked_at.pin.id
        found = self._found(id_)
        if found is None or found.digest != looked_at.digest:
            raise _changed(id_)
        if not is_spoken(id_):
            parts.registry.accept(id_)
            return
        parts.spoken.accept(id_)
        source = parts.servers.running.get(_source(id_)) if parts.servers else None
        if source is not None:
            source.lists.sift()

    def _accepted(self, held: Held) -> Record:
        id_ = held.pin.id
        spoken = is_spoken(id_)
        payload = {**_about(id_), "digest": held.digest, "findings": finding_bodies(held.findings)}
        return Record(
            event=DEFINITION_ACCEPTED if spoken else TOOL_ACCEPTED,
            payload=payload,
            context={"caller": self.caller.id},
        )


def _changed(id_: str) -> Conflict:
    return Conflict(
        f"{id_} is no longer what was looked at: it changed again.",
        way_out="openfang servers held",
    )


def held_body(held: Held) -> dict[str, Any]:
    """One that is held back, as a person is shown it."""
    id_ = held.pin.id
    kind, _, rest = id_.partition(":")
    name = rest.partition(":")[2]
    word = kind if kind in _TOPICS else "agent" if kind == Kind.A2A.value else "tool"
    return {**held.body(), "kind": word, "source": _source(id_), "name": name or _source(id_)}


def _source(id_: str) -> str:
    return id_.split(":", 2)[1]
