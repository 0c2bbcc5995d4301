"""What a process has sent may arrive long after it was cut off: whoever takes over ends that first.

The connection on which a process writes bears its name, or the one that it had at first if it has
come back since. Once the server has ended every one of that name, nothing of the process comes
through any more, and what is in the log is all that will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.storage.postgres.errors import Unreachable

if TYPE_CHECKING:
    from openfang.storage.ports import Reader

_NAME: Final = "SELECT set_config('application_name', $1, false)"
_END: Final = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE application_name IN (SELECT 'openfang ' || writer FROM processes WHERE id = ?) "
    "AND datname = current_database()"
)


async def introduce(connection: Any, writer: str) -> None:  # noqa: ANN401 - the driver has no types
    """Let the server know whose connection this is."""
    await connection.execute(_NAME, f"openfang {writer}")


async def fence(reader: Reader, process: str) -> None:
    """End what a process has under way at the server, and wait until it has ended."""
    if not all(row[0] for row in await reader.read(_END, (process,))):
        raise Unreachable(
            f"The server has not ended the connection of {process} yet.",
            way_out="it is tried again by itself; see pg_stat_activity of the server",
        )
