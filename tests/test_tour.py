"""The README, typed into a shell as it stands, in a folder that looks like a clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.desk import alike, served, typed
from tests.node import NODE
from tests.pages import ROOT
from tests.peers.inspector import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.desk import Desk

pytestmark = [
    pytest.mark.requirement("C12.5", "C19.3"),
    pytest.mark.needs("bash", "curl"),
]
README = "../README.md"
# Other tests do these: `tests/cli/test_daemon.py`, and whoever runs this one.
_ELSEWHERE = ("make run ", "make test ")
_PACKAGE = "npx -y @modelcontextprotocol/inspector"
_WOULD_WAIT = 5


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    """A daemon as `make run` starts it, on a port of its own; the reader's home is elsewhere."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / ".venv").symlink_to(sys.prefix)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path_factory.mktemp("person")),
        "OPENFANG_HOME": str(folder / ".openfang"),
    }
    with served(environ, folder) as desk:
        yield desk


def test_the_readme_works_as_typed_and_answers_as_it_says(desk: Desk) -> None:
    page = [one for one in typed(README) if not one.command.startswith(_ELSEWHERE)]
    assert page[0].command == "source .venv/bin/activate"
    answers = desk.type(page, {_PACKAGE: f"{NODE} {PROGRAM}"})
    for one, (code, answered) in zip(page, answers, strict=True):
        right = _WOULD_WAIT if one.command.startswith("openfang explain ") else 0
        assert (one.command, code) == (one.command, right), answered
        if one.answer:
            assert alike(one.answer, answered), (one, answered)
    told = "".join(answered for _, answered in answers)
    for words in ("would wait for a person", "tool_invocation_end", "policy_violation"):
        assert words in told
    assert '"name": "shell_exec"' in told


def test_the_python_of_the_readme_runs(desk: Desk) -> None:
    (block,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    ran = subprocess.run(
        [sys.executable, "-c", block],
        env=desk.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert re.fullmatch(r"20\d\d-\S+\n", ran.stdout)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
