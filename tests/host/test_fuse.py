"""A child that may not outlive a moment does not, whatever its parent does meanwhile."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from openfang.host.fuse import Fuse

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.requirement("C13.3")


def soon(seconds: float) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) + seconds


@contextmanager
def children(count: int) -> Generator[list[subprocess.Popen[bytes]]]:
    found = [subprocess.Popen(["sleep", "60"]) for _ in range(count)]
    try:
        yield found
    finally:
        for child in found:
            child.kill()
            child.wait()


def test_a_child_ends_at_its_time_and_one_that_is_spared_does_not() -> None:
    fuse = Fuse()
    with children(3) as (short, long, spared):
        fuse.watch(short.pid, soon(0.2))
        fuse.watch(long.pid, soon(60))
        fuse.watch(spared.pid, soon(0.2))
        fuse.spare(spared.pid)
        assert short.wait(10) == -9
        assert (long.poll(), spared.poll()) == (None, None)
        fuse.watch(long.pid, soon(0))
        assert long.wait(10) == -9
        fuse.close()
        assert spared.poll() is None


def test_a_parent_that_is_gone_leaves_nobody_behind() -> None:
    fuse = Fuse()
    with children(1) as (child,):
        fuse.watch(child.pid, soon(60))
        fuse.close()
        assert child.wait(10) == -9
