"""A process in the middle of a run, for tests that kill it; or one that takes over what is left.

`begin FOLDER`: say so when everything is on disk, and wait to be killed.
`take FOLDER`: wait for a line, then print the runs that were taken over, and stay alive for
another line.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from openfang.agents.sessions import StoredSessions
from openfang.audit.chain import digest
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.labels import Labels
from openfang.core.usage import Entry, Payer, Spending
from openfang.storage.database import open_home
from openfang.storage.processes import Process
from openfang.storage.units import Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator

COST = Spending(requests=1, input_tokens=40, output_tokens=2, cost_usd=0.125)
WISHES = tuple(
    Wish(id=one, tool=tool, arguments={"path": f"{one}.txt"})
    for one, tool in (("w1", "file_read"), ("w2", "file_write"), ("w3", "file_read"))
)


@contextmanager
def opened(folder: Path) -> Generator[StoredSessions]:
    """The sessions of a home of the test's own."""
    file = folder / "openfang.db"
    database = open_home(file)
    writer = Writer(path=file, node="n", digest=digest)
    process = Process(folder / "run")
    try:
        yield StoredSessions(database=database, writer=writer, process=process)
    finally:
        writer.close()
        process.release()
        database.close()


async def begin_call(sessions: StoredSessions, run: str, wish: Wish) -> None:
    """Keep that a call is made, as the unit in which it begins does."""
    await sessions.writer.write(Unit(statements=sessions.begun(run, wish)))


async def half_a_run(sessions: StoredSessions, *, run: str = "r1", name: str = "default") -> str:
    """Read one file, begin to write another, and get no further."""
    talk = await sessions.open("assistant", "key:me", name, most=20)
    go = Message(speaker=Speaker.USER, text="three, please")
    await sessions.begin(talk.id, run, go, Labels.USER_INPUT)
    payer = Payer(run=run, chain="c", agent="assistant", purse="assistant", caller="key:me")
    wanted = Message(speaker=Speaker.AGENT, wishes=WISHES)
    await sessions.said(talk.id, run, wanted, Entry(payer=payer, spending=COST))
    await begin_call(sessions, run, WISHES[0])
    done = Message(speaker=Speaker.TOOL, text="one", answers="w1")
    await sessions.said(talk.id, run, done)
    await begin_call(sessions, run, WISHES[1])
    return talk.id


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def begin(folder: Path) -> None:
    with opened(folder) as sessions:
        for number in range(3):
            await half_a_run(sessions, run=f"r{number}", name=f"talk {number}")
        tell("on disk")
        sys.stdin.readline()


async def take(folder: Path) -> None:
    with opened(folder) as sessions:
        tell("ready")
        sys.stdin.readline()
        found = await sessions.interrupted()
        tell(json.dumps([one.run for one in found]))
        sys.stdin.readline()


if __name__ == "__main__":
    anyio.run({"begin": begin, "take": take}[sys.argv[1]], Path(sys.argv[2]))
