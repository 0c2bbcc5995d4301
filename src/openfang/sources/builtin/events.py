"""`event_publish`: tell the node that something happened, for whoever listens or is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.results import text_result
from openfang.core.tools import Risk
from openfang.core.triggers import EVENT_TYPE
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.results import Result


class Events(Protocol):
    """Where events go."""

    async def publish(self, admitted: Admitted) -> Mapping[str, Any]:
        """Keep an event: its id, the triggers that it starts, and those that are held back."""
        ...


_PUBLISH = builtin_tool(
    "event_publish",
    "Publish an event: it is seen in the live events, and agents that wait for it are started.",
    object_schema(
        ["event_type"],
        event_type={
            "type": "string",
            "pattern": EVENT_TYPE,
            "description": "What kind of event, such as build.failed.",
        },
        payload={"type": "object", "description": "What there is to know of it."},
    ),
    risk=Risk.LOW,
    tags=frozenset(),
    hands_on=True,
)


def event_tools(events: Events) -> Sequence[Builtin]:
    """The family of events."""

    async def publish(admitted: Admitted) -> Result:
        told = await events.publish(admitted)
        started = ", ".join(told["triggered"]) or "nobody"
        held = "".join(f"; not {one['trigger']}: {one['reason']}" for one in told["held"])
        text = f"Published {told['event_type']} as {told['id']}; it starts {started}{held}."
        return text_result(text, structured=dict(told))

    return [Builtin(_PUBLISH, publish)]
