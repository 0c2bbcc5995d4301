"""What of the A2A suite takes several requests passes against three nodes behind a balancer.

`make test-nodes` runs all of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
BELONGS_TOGETHER = ("test_stream.py", "test_tasks.py", "test_push.py")


def test_streams_cancelling_questions_and_notices_go_over_any_node() -> None:
    files = [f"tests/a2a_spec/{name}" for name in BELONGS_TOGETHER]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**_alone(), "TEST_NODES": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def _alone() -> dict[str, str]:
    """Nothing of the run that this is a part of."""
    return {name: said for name, said in os.environ.items() if not name.startswith("PYTEST_")}
