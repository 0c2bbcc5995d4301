"""`memory_store`, `memory_recall`: what a caller remembers, in a space of its own.

An agent has one for each who talks to it, unless its manifest says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from openfang.core.decisions import Deny
from openfang.core.errors import HomeError, SourceFailed
from openfang.core.results import Result, error_result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.policy.grants import matches, way_to_grant
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema
from openfang.storage.state import MemoryStore, remember
from openfang.storage.writer import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted, Call
    from openfang.storage.writer import Writer

_KEY = {
    "type": "string",
    "minLength": 1,
    "maxLength": 512,
    "description": "The name of the memory.",
}
_STORE = builtin_tool(
    "memory_store",
    "Remember a value under a key, for later calls of the same caller.",
    object_schema(["key", "value"], key=_KEY, value={"description": "Any JSON."}),
    risk=Risk.LOW,
    tags=frozenset({"database.write"}),
    sink=Sink(effect=Effect.LOCAL_WRITE, targets=("key",)),
    idempotent=True,
)
_RECALL = builtin_tool(
    "memory_recall",
    "Recall the value that was remembered under a key.",
    object_schema(["key"], key=_KEY),
    risk=Risk.LOW,
    tags=frozenset({"database.read"}),
    idempotent=True,
)


def memory_tools(
    store: MemoryStore, writer: Writer, space: Callable[[Call], str]
) -> Sequence[Builtin]:
    """The family of memory; `space` says where a call's memories are kept."""
    family = _Memory(store, writer, space)
    return [
        Builtin(_STORE, family.store, lambda call: _grant(call, "memory_write")),
        Builtin(_RECALL, family.recall, lambda call: _grant(call, "memory_read")),
    ]


@dataclass(frozen=True, slots=True)
class _Memory:
    rows: MemoryStore
    writer: Writer
    space: Callable[[Call], str]

    async def store(self, admitted: Admitted) -> Result:
        call, key = admitted.call, admitted.call.arguments["key"]
        value = orjson.dumps(admitted.call.arguments["value"]).decode()
        statement = remember(self.space(call), key, value, admitted.labels)
        try:
            await self.writer.write(Unit(statements=(statement,)))
        except HomeError as error:
            raise SourceFailed(error.message, way_out=error.way_out) from error
        return text_result(f"Remembered {key}.")

    async def recall(self, admitted: Admitted) -> Result:
        call, key = admitted.call, admitted.call.arguments["key"]
        found = self.rows.recall(self.space(call), key)
        if found is None:
            return error_result(f"Nothing is remembered under {key}.")
        text, labels = found
        value = orjson.loads(text)
        shown = value if isinstance(value, str) else text
        return text_result(shown, labels=labels, structured={"value": value})


def _grant(call: Call, grant: str) -> Deny | None:
    key = str(call.arguments.get("key", ""))
    granted = call.caller.grants
    if matches(granted.memory_read if grant == "memory_read" else granted.memory_write, key):
        return None
    return Deny(
        f"Key {key} is not covered by the {grant} grants of {call.caller.id}",
        f"{grant}_not_granted",
        way_to_grant(call.caller, grant, key),
    )
