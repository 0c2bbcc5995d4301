"""Where a run comes from: what whoever asked was bound to, written down for who goes on with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openfang.agents.given import is_given
from openfang.core.calls import Context, Mode
from openfang.core.trace import Chain, new_chain
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.calls import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The context and the chain of the call that began a run, over which edge, and for whom.

    `given` is whether more came with it (a history, instructions, tools of the caller's): that is
    not written down. `trusted` is whether nobody outside had a part in its words.
    """

    context: Context
    chain: Chain
    edge: str = ""
    asker: str = ""
    given: bool = False
    trusted: bool = False


def write_origin(call: Call, *, trusted: bool = False) -> str:
    """Write it as JSON. Its deadline is of a clock that ends with the process: another begins."""
    context, chain = call.context, call.chain
    body = {
        "mode": context.mode.value,
        "project": context.project,
        "spec": context.spec_hash,
        "task": context.task_id,
        "blacklist": sorted(context.blacklist),
        "trace": chain.trace_id,
        "span": chain.span_id,
        "parent": chain.parent,
        "depth": chain.depth,
        "ancestors": chain.ancestors,
        "starry": chain.starry_id,
        "shared": chain.shared,
        "edge": call.edge,
        "asker": call.asker,
        "given": is_given(call.arguments),
        "trusted": trusted,
    }
    return json.dumps(body, separators=(",", ":"))


def read_origin(text: str) -> Origin:
    """Read it; of a run that says nothing, a chain of its own and nothing that is bound."""
    if not text:
        return Origin(context=Context(), chain=new_chain())
    body: dict[str, Any] = json.loads(text)
    return Origin(
        context=Context(
            mode=Mode(body["mode"]),
            project=body["project"],
            spec_hash=body["spec"],
            task_id=body["task"],
            blacklist=frozenset(body["blacklist"]),
        ),
        chain=Chain(
            trace_id=body["trace"],
            span_id=body["span"],
            depth=body["depth"],
            ancestors=tuple(body["ancestors"]),
            starry_id=body["starry"],
            shared=body["shared"],
            parent=body.get("parent", ""),
        ),
        edge=body.get("edge", ""),
        asker=body.get("asker", ""),
        given=body.get("given", False),
        trusted=body.get("trusted", False),
    )
