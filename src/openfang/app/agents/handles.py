"""Keeps the results that agents hold as handles, for as long as whole results are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.events import RESULT_REVEALED, Record
from openfang.core.ids import new_id
from openfang.core.results import Result
from openfang.core.values import dataclass
from openfang.storage.state import grow_run, put_blob
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.core.calls import Call
    from openfang.core.labels import Labels


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Results in the home's database, readable by who began the chain."""

    parts: Parts

    async def keep(self, call: Call, result: Result) -> str:
        """Keep a result; what is returned stands for it."""
        parts, shaper, handle = self.parts, self.parts.pipeline.shaper, new_id("result")
        body = orjson.dumps({"content": result.content, "structured": result.structured})
        until = parts.clock.time_ns() + shaper.keep_ns
        kept = put_blob(handle, call.root, body, result.labels, until)
        statements = (kept, *shaper.room(handle, call.root, len(body)))
        await parts.writer.write(Unit(statements=statements))
        return handle

    async def find(self, call: Call, handle: str) -> tuple[str, Labels] | None:
        """Read the text of a result, and what it carries."""
        found = await self.parts.blobs.get(handle, call.root, self.parts.clock.time_ns())
        if found is None:
            return None
        body: dict[str, Any] = orjson.loads(found[0])
        return Result(content=tuple(body["content"])).text, found[1]

    async def reveal(self, call: Call, handle: str, labels: Labels) -> None:
        """Let what a result carries enter the run, on record."""
        context = {"caller": call.caller.id, "run": call.run, "trace": call.chain.trace_id}
        payload = {"handle": handle, "labels": labels.names}
        record = Record(event=RESULT_REVEALED, call_id=call.id, payload=payload, context=context)
        run, now = call.run_id, self.parts.clock.time_ns()
        grown = () if run is None else (grow_run(run, labels, now),)
        await self.parts.broker.append([record], grown)
