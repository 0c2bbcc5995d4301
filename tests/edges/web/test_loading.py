"""The page costs nothing before somebody asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.requirement("C19.2")

LATER = ("jinja2", "openfang.edges.web.site", "openfang.edges.web.pages", "openfang.app.web")


def test_a_daemon_that_nobody_looks_at_has_loaded_nothing_of_the_pages() -> None:
    code = (
        "import sys, openfang.app.daemon.process, openfang.app.daemon.server; print(*sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert [name for name in LATER if name in told.stdout.split()] == []
