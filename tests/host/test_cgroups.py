"""A group that a service manager has handed to us, in a real hierarchy of the second version.

Its memory and process counters may belong to the first version on a machine that has both: what is
shown here holds for whichever controller is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import pytest

from openfang.host.cgroups import _mounts

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.requirement("C16.1")
# Joins the group, opens it, and says what came of it and where it is now.
_JOINED = """
import json, os, sys
from pathlib import Path
from openfang.host.cgroups import opened
group, controller = Path(sys.argv[1]), sys.argv[2]
(group / "cgroup.procs").write_text(str(os.getpid()))
found = opened(group, [controller])
again = opened(group / "daemon", [controller])
made = group / "openfang-1-a"
if found:
    made.mkdir()
inside = [one.name for one in made.iterdir()] if found else []
if found:
    made.rmdir()
lies = [line for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::"]
print(json.dumps([str(found), str(again), any(one.startswith(controller) for one in inside), lies]))
"""


def controllers(point: Path) -> list[str]:
    return (point / "cgroup.controllers").read_text().split()


@contextmanager
def group() -> Generator[Path]:
    """Make a group whose controller may be given to those below it, and take both back."""
    points = [point for kind, point, _ in _mounts() if kind == "cgroup2" and controllers(point)]
    made = points[0] / f"test-{token_hex(4)}" if points else Path("/nowhere/at/all")
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"needs a hierarchy of the second version that may be written: {error}")
    given, name = points[0] / "cgroup.subtree_control", controllers(points[0])[0]
    before = given.read_text().split()
    try:
        given.write_text(f"+{name}")
        yield made
    finally:
        for folder in (made / "daemon", made):
            with suppress(FileNotFoundError):
                folder.rmdir()
        if name not in before:
            given.write_text(f"-{name}")


def joined(group: Path) -> tuple[str, str, bool, list[str]]:
    name = controllers(group)[0]
    command = [sys.executable, "-c", _JOINED, str(group), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return tuple(json.loads(done.stdout))


def test_the_daemon_makes_room_for_children_only_in_a_group_that_was_handed_to_it() -> None:
    with group() as ours:
        found, _, _, lies = joined(ours)
        assert (found, lies) == ("None", [f"0::/{ours.name}"])
        os.setxattr(ours, "user.delegate", b"1")
        found, again, bounded, lies = joined(ours)
        assert (found, again, bounded) == (str(ours), str(ours), True)
        assert lies == [f"0::/{ours.name}/daemon"]
