"""Memories: how long it takes to find some among many, by words that few or all of them hold."""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import TYPE_CHECKING

import orjson
from anyio import to_thread

from bench.figures import Figure
from openfang.core.labels import Labels
from openfang.storage.database import open_home
from openfang.storage.memory import remember
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from openfang.testing import OpenApp

_MEMORIES = 100_000
_TIMES = 20
_QUERIES = {
    "a word that one holds": "needle",
    "words of a sentence": "what is said about topic 42 and the needle",
    "a word that all hold": "fact",
}


def _memories() -> Iterator[tuple[str, str]]:
    chance = random.Random(1)  # noqa: S311 - not a secret
    words = [f"{chance.randrange(16**6):06x}" for _ in range(5_000)]
    for number in range(_MEMORIES):
        said = " ".join(chance.choices(words, k=20))
        yield f"note.{number}", f"fact {number} about topic {number % 500}: {said}"
    yield "hay", "a fact about the needle"


def _fill(file: Path, space: str) -> None:
    with closing(open_home(file)) as database:
        database.connection.execute("BEGIN")
        for name, text in _memories():
            value = orjson.dumps(text).decode()
            for statement in remember(space, name, value, Labels.NONE):
                database.connection.execute(*statement)
        database.connection.execute("COMMIT")


async def _milliseconds(app: OpenApp, query: str) -> float:
    """The median of a whole call: the path, the thread, the search."""
    took: list[float] = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        result = await app.call("memory_recall", query=query)
        took.append(time.perf_counter() - begun)
        assert result.structured["memories"], query
    return sorted(took)[_TIMES // 2] * 1e3


async def figures(folder: Path) -> list[Figure]:
    async with open_test_app(folder / "memory") as app:
        await to_thread.run_sync(_fill, app.file.path, app.caller.space)
        return [
            Figure(f"recall over 100,000: {name}", await _milliseconds(app, query), "ms", 20)
            for name, query in _QUERIES.items()
        ]
