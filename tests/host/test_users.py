"""A child of a root daemon has a user of its own, and works in its folders all the same."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import Ground, bubblewrap

from openfang.host.lines import open_lines
from openfang.host.users import own_user, staged
from openfang.host.witness import look_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.host.lines import Lines

pytestmark = [pytest.mark.requirement("C16.1", "C16.4"), pytest.mark.needs("bwrap")]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users away")

SHOWN = """
import json, os, sys
print(json.dumps({"user": os.getuid(), "home": os.listdir(os.environ["HOME"])}), flush=True)
sys.stdin.read()
"""
FORKS = """
import os, sys
children = 0
try:
    while children < 200:
        child = os.fork()
        if child == 0:
            os.read(0, 1)
            os._exit(0)
        children += 1
except BlockingIOError:
    pass
print(children)
"""


class Heard:
    def __init__(self) -> None:
        self.message = anyio.Event()
        self.said: object = None

    def heard(self, message: object) -> None:
        self.said = message
        self.message.set()

    def complained(self, line: str) -> None:
        pytest.fail(line)

    def gone(self, reason: str) -> None:
        del reason


@asynccontextmanager
async def running(ground: Ground) -> AsyncGenerator[tuple[Lines, Heard]]:
    heard = Heard()
    launch = await to_thread.run_sync(lambda: ground.launch(sys.executable, "-I", "-c", SHOWN))
    with anyio.fail_after(20):
        async with open_lines(launch, heard) as child:
            await heard.message.wait()
            yield child, heard


@as_root
async def test_each_child_has_a_user_of_its_own_and_sees_itself_as_ours(tmp_path: Path) -> None:
    seen = list[int]()
    for name in ("one", "two"):
        async with running(Ground(root=tmp_path / name)) as (child, heard):
            sight = await to_thread.run_sync(look_at, child.process.pid)
        assert sight is not None
        seen.append(sight.user)
        assert heard.said == {"user": 0, "home": []}
    assert len({0, *seen}) == 3


@as_root
async def test_its_folders_are_its_to_use_and_stay_ours(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "kept").write_text("kept")
    (closed / "kept").chmod(0o600)
    ground = Ground(root=tmp_path)
    said = await ground.shell(
        "cat $1/kept; echo new > $1/new; echo x > ~/mine; echo y > /tmp/y", closed
    )
    assert said == "kept"
    for path in (closed / "new", ground.folder / "home" / "mine", ground.folder / "tmp" / "y"):
        assert (await anyio.Path(path).stat()).st_uid == 0


@as_root
async def test_the_limit_of_processes_holds(tmp_path: Path) -> None:
    """The kernel does not hold root to it."""
    ground = Ground(root=tmp_path, processes=30)
    finished = await ground.run(sys.executable, "-I", "-S", "-c", FORKS)
    assert 1 < int(finished.stdout) < 30


@as_root
def test_a_file_system_that_cannot_show_its_files_as_anothers_is_told() -> None:
    user = own_user(Path("/x"))
    assert staged(user, [Path("/proc/sys")]) is None
    found = staged(user, [Path("/tmp"), Path("/root/.cache"), Path("/root")])  # noqa: S108 - a name
    assert found is not None
    assert found.place(Path("/root/.cache/a")) == Path("/sys/0/.cache/a")
    assert found.place(Path("/usr/bin")) == Path("/usr/bin")


def test_a_user_is_told_by_its_folder(tmp_path: Path) -> None:
    assert own_user(tmp_path) == own_user(tmp_path)
    assert own_user(tmp_path) != own_user(tmp_path / "x")
    assert bubblewrap().users == (os.geteuid() == 0)
