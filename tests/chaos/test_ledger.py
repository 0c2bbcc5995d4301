"""The storm's own judgement: what it would find if something were lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.chaos import checks
from tests.chaos.faults import Fault
from tests.chaos.ledger import OK, Answer, Ledger, Seen
from tests.chaos.node import Node
from tests.chaos.processes import Vitals
from tests.chaos.to_servers import Killed
from tests.faults.daemon import make_home, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.13", "C13.1")


class Blow(Fault):
    """Something that callers of one server may feel."""

    name = "a blow"
    kinds = frozenset({"timeout"})
    touches = "s01"

    def begin(self) -> None:
        """Nothing is done here."""

    def end(self) -> None:
        """Nothing is undone here."""


def seen(server: str, kind: str, at: float) -> Seen:
    return Seen(way="api", server=server, answer=Answer(kind), began=at, ended=at)


def test_an_error_is_explained_by_a_fault_of_its_server_at_its_time_and_by_nothing_else() -> None:
    ledger = Ledger()
    with ledger.spell(Blow()) as spell:
        pass
    explained = seen("s01", "timeout", spell.began)
    foreign = seen("s02", "timeout", spell.began)
    other = seen("s01", "unknown_tool", spell.began)
    late = seen("s01", "timeout", spell.ended + 1)
    well = seen("s02", OK.kind, spell.began)
    for one in (explained, foreign, other, late, well):
        ledger.note(one, "words")
    assert ledger.unexplained() == [foreign, other, late]


def test_a_server_that_was_killed_and_answers_again_needs_to_fail_nobody(tmp_path: Path) -> None:
    fault = Killed(Node(make_home(tmp_path / "home"), {}), "s01")
    fault.at = 10
    before, after, elsewhere = (
        seen(server, OK.kind, at) for server, at in (("s01", 9), ("s01", 11), ("s02", 11))
    )
    assert not fault.felt([before, elsewhere])
    assert fault.felt([before, after])
    assert fault.felt([seen("s01", "source_failed", 9)])


def test_an_acknowledged_call_that_is_not_on_record_is_found(tmp_path: Path) -> None:
    home, ledger = make_home(tmp_path / "home"), Ledger()
    with serving(home) as daemon:
        assert daemon.call("memory_store", key="k", value=1, text="refused").status == 422
    for words in ("refused", "never sent"):
        ledger.note(seen("s01", OK.kind, 0), words)
    assert checks.on_record(home, ledger) == [
        "2 acknowledged calls are not on record: never sent, refused"
    ]
    assert checks.endings(home) == []
    assert checks.chain(home) == []


def test_what_a_daemon_keeps_is_found() -> None:
    before = Vitals(files=Counter(pipe=2), sockets=3, children=4, threads=5, memory=6)
    assert checks.leaks(before, before) == []
    after = replace(
        before,
        files=Counter(pipe=3),
        children=5,
        sockets=4 + checks.SOCKETS,
        memory=7 + checks.MEMORY,
    )
    assert [one.partition(":")[0] for one in checks.leaks(before, after)] == [
        "it keeps files",
        "it keeps sockets",
        "it keeps children",
        "it keeps memory",
    ]
