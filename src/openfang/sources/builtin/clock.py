"""`system_time`: what time it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from anyio import to_thread

from openfang.core.results import Result, error_result, text_result
from openfang.core.tools import Risk
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOOL = builtin_tool(
    "system_time",
    "Tell the current date and time, in UTC or in a time zone.",
    object_schema(
        timezone={"type": "string", "maxLength": 64, "description": "Such as Europe/Paris."}
    ),
    risk=Risk.LOW,
    tags=frozenset[str](),
    idempotent=True,
    polls=True,
)


def clock_tools(now: Callable[[], int]) -> Sequence[Builtin]:
    """The family of the clock; `now` is in nanoseconds."""

    async def system_time(admitted: Admitted) -> Result:
        wanted = admitted.call.arguments.get("timezone", "UTC")
        try:
            zone = UTC if wanted == "UTC" else await to_thread.run_sync(ZoneInfo, wanted)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return error_result(f"Error: There is no time zone {wanted}.")
        moment = datetime.fromtimestamp(now() / 1e9, zone)
        iso = moment.isoformat(timespec="seconds")
        fields = {
            "iso": iso,
            "unix": int(moment.timestamp()),
            "timezone": wanted,
            "weekday": _DAYS[moment.weekday()],
        }
        return text_result(iso, structured=fields)

    return [Builtin(_TOOL, system_time)]
