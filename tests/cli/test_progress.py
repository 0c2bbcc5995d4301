"""Bars, at a terminal: there once something takes longer than a second, and gone when it ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

import pytest

pytestmark = pytest.mark.requirement("C19.1")
_SHOWN = """
import sys
from openfang.cli.progress import shown_bar
with shown_bar("at once", 2) as count:
    count()
print("quick")
with shown_bar("counting", 2) as count:
    count()
    sys.stdin.readline()
print("done")
"""
SECONDS = 30


def test_a_bar_is_shown_after_a_second_and_leaves_nothing_behind() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    command = [sys.executable, "-c", _SHOWN]
    with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as one:
        os.close(theirs)
        before = until(ours, "quick")
        bar = until(ours, "counting")
        os.write(ours, b"\n")
        after = until(ours, "done")
        assert one.wait(SECONDS) == 0
    os.close(ours)
    assert "at once" not in before
    assert "quick" not in bar
    assert after.rpartition("counting")[2].count("\x1b[2K") >= 1  # the line is erased


def test_a_pipe_sees_no_bar() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SHOWN], input="\n", capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("quick\ndone\n", "")


def until(terminal: int, words: str) -> str:
    shown = b""
    while words.encode() not in shown:
        assert select.select([terminal], [], [], SECONDS)[0], shown
        shown += os.read(terminal, 65_536)
    return shown.decode(errors="replace")
