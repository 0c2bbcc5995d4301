"""What is large travels beside the call: it reaches the agent whole, and the record stays small."""

from __future__ import annotations

import base64
import os
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from tests.edges.a2a.front import serving, text_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.requirement("C7.5", "C5.4"),
    pytest.mark.filterwarnings("ignore:Sending a large body"),  # the client's, not ours
]


async def test_a_file_that_is_too_large_for_a_call_reaches_the_agent_whole(tmp_path: Path) -> None:
    raw = base64.b64encode(os.urandom(3_000_000)).decode()
    many = ["a number of words"] * 2_000
    async with serving(tmp_path / "home") as served:
        parts = {"raw": raw, "filename": "large.bin"}, {"data": {"words": many}}
        task = await served.send("weigher", "weigh this", *parts)
        records = served.node.app.file.read_now(
            "SELECT LENGTH(payload) FROM audit WHERE event = 'tool_invocation_start'"
        )
    assert text_of(task).split() == [
        sha256(raw.encode()).hexdigest(),
        sha256(str({"words": many}).encode()).hexdigest(),
    ]
    assert task["history"][0]["parts"][1]["raw"] == raw
    assert max(size for (size,) in records) < 10_000


async def test_a_message_of_more_than_ten_megabytes_is_refused_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "home") as served:
        message = {"message": served.message({"raw": "A" * 10_000_000})}
        reply = await served.ask("weigher", "SendMessage", message)
        assert reply.status == 413
        left = served.node.app.file.read_now("SELECT COUNT(*) FROM tasks")
    assert left == [(0,)]
