"""Run inside a mount namespace: a server whose tables are on a tmpfs, which is filled up.

Prints one JSON object; `test_outages.py` reads it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from tests.faults.on_a_small_disk import fill
from tests.storage.postgres.own import own_server

from openfang.audit.chain import Row, Verifier, digest
from openfang.core.errors import HomeError
from openfang.storage.postgres.address import Address
from openfang.storage.postgres.database import open_storage
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.units import Line, Unit

if TYPE_CHECKING:
    from tests.storage.postgres.own import Own

_SIZE = "64m"
_TRIES = 2000
_LOG = "SELECT node, seq, at, event, level, call_id, task_id, payload, context, hash FROM audit"


async def full(server: Own, disk: Path) -> dict[str, Any]:
    """Write until nothing fits, see what is said, make room, and go on."""
    storage = await open_storage(Address(server.url()))
    writer = PostgresWriter(address=Address(server.url()), node="n", digest=digest)
    await writer.open()
    try:
        await writer.write(_unit(0))
        filler = fill(disk)
        kept, refusal = await _until_refused(writer)
        again = await _refused(writer)
        reads = await storage.read("SELECT COUNT(*) FROM audit")
        filler.unlink()
        after = await writer.write(_unit(-1))
        return {
            "message": refusal.message.replace(str(server.port), "PORT"),
            "way_out": refusal.way_out,
            "again": again.message == refusal.message,
            "lost": 1 + kept - reads[0][0],
            "after": after.numbers[-1] - kept,
            "intact": await _intact(storage),
        }
    finally:
        await writer.aclose()
        await storage.aclose()


async def _until_refused(writer: PostgresWriter) -> tuple[int, HomeError]:
    for number in range(_TRIES):
        try:
            await writer.write(_unit(number))
        except HomeError as error:
            return number, error
    raise AssertionError("it never refused")


async def _refused(writer: PostgresWriter) -> HomeError:
    try:
        await writer.write(_unit(0))
    except HomeError as error:
        return error
    raise AssertionError("it was taken")


async def _intact(storage: Any) -> bool:
    verifier = Verifier(())
    for row in await storage.read(f"{_LOG} ORDER BY seq"):
        verifier.read(Row(row[0], row[1], row[2], row[3:9], row[9]))
    return not verifier.finish()


def _unit(number: int) -> Unit:
    text = json.dumps({"number": number, "text": "x" * 1500})
    return Unit((Line("policy_decision", "info", "call", "", text, "{}"),))


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="openfang-small-") as made:
        place = Path(made)
        place.chmod(0o755)
        disk, ahead = place / "disk", place / "ahead"
        disk.mkdir()
        ahead.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(disk)], check=True
        )
        try:
            with own_server(disk, ahead=ahead) as server:
                return anyio.run(full, server, disk)
        finally:
            subprocess.run(["umount", str(disk)], check=True)


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 - the test reads it
