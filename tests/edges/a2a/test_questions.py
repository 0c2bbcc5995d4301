"""A task that waits for its caller holds up nobody else in its context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.a2a.front import Served, serving, text_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5.4", "C5.5")


async def said(served: Served, text: str, **more: Any) -> Any:
    message = served.message(text, **more)
    return (await served.rpc("asker", "SendMessage", {"message": message}))["result"]["task"]


async def test_another_task_of_the_same_context_is_answered_while_one_waits(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        with anyio.fail_after(30):
            first = await said(served, "one", contextId="talk")
            second = await said(served, "two", contextId="talk")
            assert [one["status"]["state"] for one in (first, second)] == [
                "TASK_STATE_INPUT_REQUIRED"
            ] * 2
            assert text_of(await said(served, "blue", taskId=second["id"])) == "so: blue"
            assert text_of(await said(served, "red", taskId=first["id"])) == "so: red"
