"""What a daemon does for schedules goes on whatever becomes of its database."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread

from openfang.app.schedules.watching import watch_schedules
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.10")


async def test_while_nothing_can_be_written_what_is_due_waits_and_the_node_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_test_app(tmp_path) as app:
        parts = app.parts
        assert parts.agents
        parts.agents.want(resume=True)
        agents = await parts.agents.opened()
        with anyio.fail_after(60), caplog.at_level(logging.WARNING, "openfang.schedules"):
            await agents.recovered.wait()
            await to_thread.run_sync(app.file.path.unlink)
            async with anyio.create_task_group() as group:
                group.start_soon(watch_schedules, parts)
                while "What is due waits" not in caplog.text:
                    await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
