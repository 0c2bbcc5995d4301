"""Waits until the configuration names a collector: who has none loads nothing of all this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from openfang.app.metrics.telemetry import Telemetry
    from openfang.app.parts import Parts

_LOOK_SECONDS: Final = 2.0


async def watch_telemetry(parts: Parts, telemetry: Telemetry) -> None:
    """Tell a collector of everything, from when there is one."""
    while parts.config.telemetry.endpoint is None:  # noqa: ASYNC110 - a reload may name one
        await anyio.sleep(_LOOK_SECONDS)
    from openfang.app.tracing.sending import Sending  # noqa: PLC0415 - as above

    await Sending(parts, telemetry).run()
