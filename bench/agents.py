"""Agents: how long it takes to open one of a thousand long conversations, and to list them."""

from __future__ import annotations

import time
from contextlib import closing
from statistics import median
from typing import TYPE_CHECKING

from bench.figures import Figure
from openfang.agents.sessions import StoredSessions
from openfang.app.agents.sessions import Conversations
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.labels import Labels
from openfang.core.sessions import SessionSummary
from openfang.storage.database import Database
from openfang.storage.sessions import insert, written
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSIONS = 1_000
MESSAGES = 200
REMEMBERED = 20
ROUNDS = 3
_PAGE = 50
_WISH = Wish(id="w", tool="file_read", arguments={"path": "notes/today.md"})
_TURNS = [
    (message.speaker.value, written(message))
    for message in (
        Message(speaker=Speaker.USER, text="What do my notes say of today? " * 8),
        Message(speaker=Speaker.AGENT, wishes=(_WISH,)),
        Message(speaker=Speaker.TOOL, text="- buy milk\n" * 90, answers="w"),
        Message(speaker=Speaker.AGENT, text="They say that you should buy milk. " * 20),
    )
]


def _summary(number: int) -> SessionSummary:
    return SessionSummary(
        id=f"session_{number:032x}",
        agent="assistant",
        caller="key:admin",
        name=f"talk {number}",
        title="What do my notes say of today?",
        messages=MESSAGES,
        labels=Labels.NONE,
        created_at=number,
        updated_at=number,
    )


def _turns(n: int) -> Iterator[tuple[object, ...]]:
    for number in range(SESSIONS):
        yield _summary(number).id, n + 1, f"run {n // 4}", n, *_TURNS[n % 4]


def build(database: Database) -> None:
    """Write the conversations the fast way, all side by side: each is spread over the file."""
    connection = database.connection
    connection.execute("BEGIN")
    for number in range(SESSIONS):
        connection.execute(*insert(_summary(number)))
    for n in range(MESSAGES):
        connection.executemany("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", _turns(n))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def opening(app: OpenApp, database: Database) -> list[float]:
    """Milliseconds for each session, on a connection that has read none of them."""
    parts = app.parts
    sessions = StoredSessions(database=database, writer=parts.writer, process=parts.broker.process)
    taken: list[float] = []
    for number in range(SESSIONS):
        before = time.perf_counter()
        opened = await sessions.open("assistant", "key:admin", f"talk {number}", most=REMEMBERED)
        taken.append((time.perf_counter() - before) * 1000)
        assert len(opened.history) == REMEMBERED
    return taken


async def listing(app: OpenApp) -> list[float]:
    """Milliseconds for each page, through to the end."""
    conversations, after, taken, seen = Conversations(app.parts, app.caller), "", list[float](), 0
    while True:
        before = time.perf_counter()
        page = await conversations.page(agent="", after=after, limit=_PAGE)
        taken.append((time.perf_counter() - before) * 1000)
        seen += len(page.sessions)
        if page.after is None:
            assert seen == SESSIONS
            return taken
        after = page.after


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "agents") as app:
        build(app.file)
        rounds: list[list[float]] = []
        for _ in range(ROUNDS):
            with closing(Database(app.file.path)) as fresh:
                rounds.append(await opening(app, fresh))
        # What other programs of the machine do shows in one round, what a session takes in each.
        opened = [min(taken) for taken in zip(*rounds, strict=True)]
        listed = await listing(app)
    name = f"open one of {SESSIONS:,} sessions of {MESSAGES} messages"
    return [
        Figure(
            name, max(opened), "ms", 20, beside=f"the slowest; half within {median(opened):.2f}"
        ),
        Figure(
            f"list {_PAGE} of {SESSIONS:,} sessions", max(listed), "ms", 5, beside="the slowest"
        ),
    ]
