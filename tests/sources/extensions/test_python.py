"""An extension in Python: decorated functions in a file, called through the one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sources.extensions.stage import stage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.requirement("C6.3", "C16.1"), pytest.mark.needs("bwrap")]


async def test_plain_and_async_functions_answer_in_words_json_and_parts(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.put(
            """
            from openfang.extension import Result, tool

            @tool
            def greet(*, name, polite=False):
                return f"Good day, {name}" if polite else f"Hi {name}"

            @tool(name="add-up")
            async def add(a: int, b: int):
                return {"sum": a + b}

            @tool
            def listed():
                return [1, 2]

            @tool
            def parts(context):
                context.artifact("a.txt", "made")
                return Result([{"type": "text", "text": "one"}], {"n": 1}, True)

            @tool
            def nothing(): pass
            """,
            *("greet", "add-up", "listed", "parts", "nothing"),
        )
        assert await on.text("greet", name="Ann", polite=True) == "Good day, Ann"
        added = await on.call("add-up", a=1, b=2)
        assert (added.structured, added.text) == ({"sum": 3}, '{"sum": 3}')
        listed = await on.call("listed")
        assert (listed.structured, listed.text) == (None, "[1, 2]")
        parts = await on.call("parts")
        assert (parts.is_error, parts.structured) == (True, {"n": 1})
        assert [part.get("text") for part in parts.content] == ["one", "made"]
        assert (await on.call("nothing")).content == ()
