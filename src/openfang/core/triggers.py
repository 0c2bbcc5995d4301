"""Events that agents publish, and triggers: which events start which agent, with what message."""

from __future__ import annotations

import re
from typing import Final

from openfang.core.values import dataclass

EVENT_TYPE: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
EVENT_GLOB: Final = r"^[A-Za-z0-9*?][A-Za-z0-9._:/*?-]{0,127}$"
PEER_CALL: Final = "EXEC:TOOL_CALL"
"""The type of the event that a call of a peer's is."""
CONDITION: Final = "event:"
"""How a condition of a manifest begins that waits for events."""
USUAL_MESSAGE: Final = "{event_type}: {payload}"
USUAL_PER_HOUR: Final = 60
LARGEST_PAYLOAD: Final = 65_536
_PLACES: Final = re.compile(r"\{(event_type|payload)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """An agent that is told of events of some types."""

    name: str
    event: str
    agent: str
    message: str = USUAL_MESSAGE
    per_hour: int = USUAL_PER_HOUR

    def told(self, event_type: str, payload: str) -> str:
        """Write what the agent is told; what stands in the event fills no further places."""
        words = {"event_type": event_type, "payload": payload}
        return _PLACES.sub(lambda place: words[place[1]], self.message)


def conditions(written: tuple[str, ...]) -> tuple[str, ...]:
    """Give the types of events that a manifest waits for."""
    found = (one.removeprefix(CONDITION).strip() for one in written if one.startswith(CONDITION))
    return tuple(one for one in found if re.match(EVENT_GLOB, one))
