"""The receiver of the docs, as it stands: a person at its terminal answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.app.approvals.test_webhook import SECRET, TOOL, config, on_record
from tests.edges.demo import Demo
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.requirement("C15.1", "C19.3")
EXAMPLE = Path(__file__).parents[3] / "docs/examples/approvals/hook.py"


@pytest.fixture
def hook() -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, str(EXAMPLE), "0", SECRET, "ada"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        yield child
        child.kill()


@pytest.mark.parametrize(("word", "status"), [("y", 200), ("n", 403)])
async def test_what_the_person_says_becomes_of_the_call(
    tmp_path: Path, hook: subprocess.Popen[str], word: str, status: int
) -> None:
    assert hook.stdin
    assert hook.stdout
    with anyio.fail_after(30):
        line = await to_thread.run_sync(hook.stdout.readline)
        url = f"http://127.0.0.1:{line.split()[-1]}"
        demo = Demo()
        async with live(tmp_path / "home", config=config(url), sources=[demo.source]) as node:
            assert (await node.call(TOOL, {"text": "prod"})).status == 202
            hook.stdin.write(f"{word}\n")
            hook.stdin.flush()
            answered = await on_record(node, "approval_answered")
            assert answered["answered_by"] == "webhook:ada"
            assert (await node.call(TOOL, {"text": "prod"})).status == status
    assert demo.source.reached == (1 if word == "y" else 0)
