"""The storm in two tables: what was done, and what callers were told."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.ledger import Ledger, Spell


def report(ledger: Ledger) -> Iterator[str]:
    yield f"{'fault':45} {'times':>5} {'seconds':>8} {'calls':>7} {'failed':>7}"
    by_name = sorted(ledger.spells, key=_name)
    for name, spells in groupby(by_name, key=_name):
        yield _row(ledger, name, list(spells))
    yield ""
    for way, answers in sorted(ledger.by_way().items()):
        told = ", ".join(f"{kind} {times}" for kind, times in answers.most_common())
        yield f"{way:10} {told}"
    calls, tasks = len(ledger.acknowledged), len(ledger.tasks.acknowledged)
    yield f"{calls} calls and {tasks} tasks were acknowledged"


def _name(spell: Spell) -> str:
    return spell.fault.name


def _row(ledger: Ledger, name: str, spells: list[Spell]) -> str:
    seconds = sum(spell.ended - spell.began for spell in spells)
    seen = [one for spell in spells for one in ledger.during(spell)]
    failed = sum(not one.well for one in seen)
    return f"{name:45} {len(spells):5} {seconds:8.1f} {len(seen):7} {failed:7}"
