"""The degraded sandbox: programs work in it, with what they were given and nothing else."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread
from tests.host.confining import Ground, alive, landlocked

from openfang.host.egress import EgressRules, open_egress
from openfang.host.process import run
from openfang.host.visits import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.host.visits import Visit

pytestmark = pytest.mark.requirement("C16.1", "C16.4")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(root=tmp_path, backend=landlocked())


async def test_a_program_works_with_what_it_was_given(ground: Ground, tmp_path: Path) -> None:
    data, source = tmp_path / "data", tmp_path / "src"
    for folder in (data, source):
        await to_thread.run_sync(folder.mkdir)
    await to_thread.run_sync((source / "server.py").write_text, "server")
    said = await ground.shell(
        "cat $2; echo new > $1/new && mv $1/new $1/moved && echo written; echo no > $2; "
        "echo mine > ~/mine && cat ~/mine; echo x > $TMPDIR/x && echo kept; ls /etc; ls /tmp",
        data,
        source / "server.py",
    )
    assert "serverwritten" in said.replace("\n", "")
    assert "mine\nkept" in said
    assert said.count("Permission denied") == 3
    assert await to_thread.run_sync((data / "moved").read_text) == "new\n"


async def test_what_is_hidden_stays_hidden_inside_of_what_is_shown(
    ground: Ground,
) -> None:
    def furnish() -> None:
        (ground.user / ".ssh").mkdir(parents=True)
        (ground.user / ".ssh" / "id").write_text("a key")
        (ground.user / "notes").mkdir()
        (ground.user / "notes" / "a").write_text("a note")

    await to_thread.run_sync(furnish)
    said = await ground.shell("cat $1/notes/a $1/.ssh/id; echo no > $1/.ssh/new", ground.user)
    assert said.startswith("a note")
    assert "a key" not in said
    assert not await to_thread.run_sync((ground.user / ".ssh" / "new").exists)


@pytest.mark.parametrize("runtime", ["node", "python3"])
async def test_the_usual_runtimes_start(ground: Ground, runtime: str) -> None:
    if shutil.which(runtime, path=ground.search) is None:
        pytest.skip(f"there is no {runtime}")
    option, text = ("-e", "console.log(6*7)") if runtime == "node" else ("-c", "print(6*7)")
    finished = await ground.run(runtime, option, text)
    assert (finished.exit_code, finished.stdout) == (0, b"42\n"), finished.stderr


ASK = """
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    print(error.code)
"""


async def test_the_way_out_is_the_guarded_one(ground: Ground) -> None:
    seen: list[Visit] = []
    async with open_egress(EgressRules(), noted=seen.append, local=True) as egress:
        finished = await ground.run(
            *(sys.executable, "-I", "-c", ASK, "http://169.254.169.254/"), egress=egress
        )
    assert finished.stdout == b"403\n", finished.stderr
    assert isinstance(seen[0], Refused)


async def test_what_it_started_ends_with_it(ground: Ground) -> None:
    script = "sleep 60 & echo $!; exec >&- 2>&-; sleep 60 & exit 0"
    launch = await to_thread.run_sync(lambda: ground.launch("sh", "-c", script))
    finished = await run(launch)
    assert not await to_thread.run_sync(alive, int(finished.stdout))
