"""Who takes over from a dead node goes on, whatever is wrong with its own disk just then."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import anyio
import pytest

from openfang.app.cluster.takeover import Takeover
from openfang.storage.processes import Vanished
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.3", "C7.10")


async def test_an_heir_whose_disk_is_full_goes_on_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfang.app.cluster.takeover._PAUSE_SECONDS", 0.0)
    heard, all_heard = list[str](), anyio.Event()

    async def hear(node: str) -> None:
        heard.append(node)
        if node == "first":
            raise OSError(errno.ENOSPC, "No space left on device")
        all_heard.set()

    async with open_test_app(tmp_path / "home") as app, anyio.create_task_group() as group:
        takeover = Takeover(app.parts, [hear])
        group.start_soon(takeover.run)
        for node in ("first", "second"):
            takeover.want(Vanished(id=f"process_{node}", low_water=1, node=node), member=True)
        with anyio.fail_after(20):
            await all_heard.wait()
        group.cancel_scope.cancel()
    assert heard == ["first", "second"]
