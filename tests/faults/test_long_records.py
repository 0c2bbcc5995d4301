"""Records as long as they may be: whoever reads the log does not make the node large or slow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.faults.daemon import Daemon, make_home, serving

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = pytest.mark.requirement("C12.2", "C13.1")

RECORDS = 80
LONG = "x" * 1_000_000
GROWTH = 60_000_000


def peak(daemon: Daemon, reading: Future[int]) -> int:
    """Watch the memory while somebody reads; each look is a request that must be answered."""
    most = daemon.memory()
    while not reading.done():
        assert daemon.healthy()
        most = max(most, daemon.memory())
    return most


def events(daemon: Daemon) -> int:
    """Listen from the first record to the last."""
    with closing(daemon.connect()) as connection:
        headers = daemon.headers({"Last-Event-ID": "0"})
        connection.request("GET", "/api/events", headers=headers)
        stream = connection.getresponse()
        ends = 0
        while ends < RECORDS:
            line = stream.readline()
            assert line
            ends += b'"event_type":"tool_invocation_end"' in line
        return ends


def test_reading_the_log_takes_no_more_memory_than_a_few_of_its_records(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    with serving(home, anew=True) as daemon, ThreadPoolExecutor(1) as reader:
        for number in range(RECORDS):
            assert daemon.call("memory_store", key=f"{number}", value=LONG).status == 200
        before = daemon.memory()
        for read, wanted in (
            (lambda: events(daemon), RECORDS),
            (lambda: daemon.ask("GET", "/api/audit/verify").json["intact"], True),
            (lambda: daemon.ask("GET", "/api/audit/export").body.count(LONG.encode()), RECORDS),
            (lambda: daemon.ask("GET", "/api/audit?limit=10000").status, 422),
            (lambda: daemon.ask("GET", "/api/audit?limit=9").status, 200),
        ):
            reading = reader.submit(read)
            assert peak(daemon, reading) - before < GROWTH
            assert reading.result() == wanted
