"""What must be so afterwards. Each check gives the sentences that say what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tests.faults.tasks import Peer
from tests.faults.test_tasks_killed import check as check_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.chaos.ledger import Ledger
    from tests.chaos.node import Node
    from tests.chaos.processes import Vitals
    from tests.faults.daemon import Home

_MADE = """
    SELECT json_extract(started.payload, '$.arguments.text'),
        json_extract(ended.payload, '$.outcome')
    FROM audit AS started JOIN audit AS ended
        ON ended.call_id = started.call_id AND ended.event = 'tool_invocation_end'
    WHERE started.event = 'tool_invocation_start'
"""
_UNFINISHED = "SELECT id FROM tasks WHERE final = 0"
_FEW = 10
# Who says that a wrong file is not in force, and that a full disk keeps no checkpoint.
_TELLING = ("openfang.config", "openfang.audit")
# What a quiet daemon may have more than it had: connections to servers, helpers of the loop, pages.
SOCKETS = 6
THREADS = 16
MEMORY = 40_000_000


def _shown(what: str, found: Iterable[object]) -> list[str]:
    listed = list(found)
    few = ", ".join(map(str, listed[:_FEW]))
    return [f"{len(listed)} {what}: {few}"] if listed else []


def unexplained(ledger: Ledger) -> list[str]:
    """Errors for which there is no reason."""
    kinds = Counter((one.way, one.server, one.answer) for one in ledger.unexplained())
    return _shown("calls went wrong for no reason", kinds.items())


def on_record(home: Home, ledger: Ledger) -> list[str]:
    """A call that was answered well is in the log, with its ending."""
    made = {text for text, outcome in home.rows(_MADE) if outcome == "ok"}
    return _shown("acknowledged calls are not on record", sorted(ledger.acknowledged - made))


def endings(home: Home) -> list[str]:
    """A call that has begun has ended, once."""
    wrong = [(call, how) for call, how in home.endings().items() if len(how) != 1]
    return _shown("calls have no ending, or several", wrong)


def chain(home: Home) -> list[str]:
    found = home.verified()
    return [] if found["intact"] else [f"the log is not intact: {json.dumps(found)}"]


def tasks(node: Node, ledger: Ledger) -> list[str]:
    """A task that was acknowledged is there as it was told of, and has ended."""
    try:
        check_tasks(Peer(node.daemon), ledger.tasks)
    except AssertionError as error:
        return [f"tasks: {str(error)[:1000]}"]
    return _shown("tasks have no end", node.home.rows(_UNFINISHED))


def log(home: Home) -> list[str]:
    """The daemon has met nothing that it did not expect."""
    lines = home.log.read_text().splitlines()
    return _shown("mistakes in its log", [one for one in lines if _is_mistake(one)])


def _is_mistake(line: str) -> bool:
    expected = any(f'"logger":"{name}"' in line for name in _TELLING)
    return '"exception":' in line or ('"level":"error"' in line and not expected)


def leaks(before: Vitals, after: Vitals) -> list[str]:
    """What a daemon has that it did not have when it had just begun."""
    files = after.files - before.files
    told = {
        "files": dict(files) if files else None,
        "sockets": after.sockets - before.sockets if _more(before, after) else None,
        "children": after.children - before.children if after.children > before.children else None,
        "threads": after.threads if after.threads > before.threads + THREADS else None,
        "memory": after.memory - before.memory if after.memory > before.memory + MEMORY else None,
    }
    return [f"it keeps {name}: {what}" for name, what in told.items() if what is not None]


def _more(before: Vitals, after: Vitals) -> bool:
    return after.sockets > before.sockets + SOCKETS
