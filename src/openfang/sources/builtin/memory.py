"""`memory_store`, `memory_recall`: what a caller remembers, in a space of its own.

An agent has one for each who talks to it, unless its manifest says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from openfang.core.decisions import Deny
from openfang.core.errors import HomeError, SourceFailed
from openfang.core.labels import Labels
from openfang.core.memory import LONGEST_KEY, LONGEST_QUERY, MOST_RECALLED, Origin
from openfang.core.results import Result, error_result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.core.wire import memory_body
from openfang.policy.grants import matches, way_to_grant
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema
from openfang.storage.memory import MemoryStore, Sought, remember
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted, Call
    from openfang.core.memory import Memory
    from openfang.storage.ports import Storage, Writes

_FOUND = 5
_KEY = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_KEY,
    "description": "The name of the memory.",
}
_QUERY = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_QUERY,
    "description": "Words to look for, in the place of a key.",
}
_LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_RECALLED,
    "description": f"With a query: at most so many memories; else {_FOUND}.",
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
    "Recall the value that was remembered under a key, or find memories by their words.",
    # Some models take no schema that offers a choice: that it is one of the two is checked below.
    {**object_schema(key=_KEY, query=_QUERY, limit=_LIMIT), "minProperties": 1},
    risk=Risk.LOW,
    tags=frozenset({"database.read"}),
    idempotent=True,
)


def memory_tools(
    storage: Storage, writer: Writes, space: Callable[[Call], str]
) -> Sequence[Builtin]:
    """The family of memory; `space` says where a call's memories are kept."""
    family = _Memory(storage, writer, space)
    return [
        Builtin(_STORE, family.store, lambda call: _grant(call, "memory_write")),
        Builtin(_RECALL, family.recall, lambda call: _grant(call, "memory_read")),
    ]


@dataclass(frozen=True, slots=True)
class _Memory:
    storage: Storage
    writer: Writes
    space: Callable[[Call], str]

    async def store(self, admitted: Admitted) -> Result:
        call, key = admitted.call, admitted.call.arguments["key"]
        value = orjson.dumps(admitted.call.arguments["value"]).decode()
        kept = remember(self.space(call), key, value, admitted.labels, _origin(call))
        try:
            await self.writer.write(Unit(statements=kept))
        except HomeError as error:
            raise SourceFailed(error.message, way_out=error.way_out) from error
        return text_result(f"Remembered {key}.")

    async def recall(self, admitted: Admitted) -> Result:
        arguments = admitted.call.arguments
        if ("key" in arguments) == ("query" in arguments):
            return error_result("Say either key or query: one of them, and not both.")
        return await self._found(admitted) if "query" in arguments else await self._under(admitted)

    async def _under(self, admitted: Admitted) -> Result:
        call, key = admitted.call, admitted.call.arguments["key"]
        found = await MemoryStore(self.storage).recall(self.space(call), key)
        if found is None:
            return error_result(f"Nothing is remembered under {key}.")
        text, labels = found
        value = orjson.loads(text)
        shown = value if isinstance(value, str) else text
        return text_result(shown, labels=labels, structured={"value": value})

    async def _found(self, admitted: Admitted) -> Result:
        """Search aside: what many memories hold takes some milliseconds."""
        call, globs = admitted.call, admitted.call.caller.grants.memory_read
        sought = Sought(
            space=self.space(call),
            query=call.arguments["query"],
            limit=call.arguments.get("limit", _FOUND),
            granted=globs,
        )
        found = await self.storage.aside(lambda reader: MemoryStore(reader).search(sought))
        return _listed([memory for memory in found if matches(globs, memory.key)])


def _origin(call: Call) -> Origin:
    return Origin(
        stored_by=call.caller.id, asked_by=call.root, trace=call.chain.trace_id, call=call.id
    )


def _listed(found: Sequence[Memory]) -> Result:
    """Answer with memories, labelled as all of them together."""
    labels = Labels.NONE
    for memory in found:
        labels |= memory.labels
    text = "\n".join(map(_line, found)) or "Nothing that is remembered has any of these words."
    return text_result(text, labels=labels, structured={"memories": list(map(memory_body, found))})


def _line(memory: Memory) -> str:
    body = memory_body(memory)
    value = memory.value
    shown = value if isinstance(value, str) else orjson.dumps(value).decode()
    whence = f" by {body['stored_by']} for {body['asked_by']}" if body["stored_by"] else ""
    labels = f", labels {', '.join(body['labels'])}" if body["labels"] else ""
    return f"{memory.key}: {shown}\n  (stored {body['stored_at']}{whence}{labels})"


def _grant(call: Call, grant: str) -> Deny | None:
    granted = call.caller.grants
    globs = granted.memory_read if grant == "memory_read" else granted.memory_write
    key = call.arguments.get("key")
    if globs if key is None else matches(globs, str(key)):
        return None
    what = "A search" if key is None else f"Key {key}"
    return Deny(
        f"{what} is not covered by the {grant} grants of {call.caller.id}",
        f"{grant}_not_granted",
        way_to_grant(call.caller, grant, "*" if key is None else str(key)),
    )
