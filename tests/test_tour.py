"""The README's five minutes, typed into a shell as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent
pytestmark = [
    pytest.mark.requirement("C12.5", "C19.3"),
    pytest.mark.needs("bash", "curl"),
]


def commands() -> list[str]:
    """What a reader types between the two headings; the rest of the blocks is what is answered."""
    tour = README.partition("## Five minutes")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", tour, re.MULTILINE | re.DOTALL)
    typed = list[str]()
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            typed.append(line.removeprefix("$ "))
        elif typed[-1].count("'") % 2:
            typed[-1] += f"\n{line}"
    return typed


@pytest.fixture
def environ(tmp_path: Path) -> Generator[dict[str, str]]:
    """A daemon on a home in an empty folder, as `make run` starts it, on a port of its own."""
    environ = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "OPENFANG_HOME": str(tmp_path / ".openfang"),
    }
    openfang = [sys.executable, "-m", "openfang"]
    start = [*openfang, "start", "--init", "--detach", "--listen", "127.0.0.1:0"]
    subprocess.run(start, env=environ, check=True, stdout=subprocess.DEVNULL)
    try:
        yield environ
    finally:
        subprocess.run([*openfang, "stop"], env=environ, check=True, stdout=subprocess.DEVNULL)


def test_the_five_minutes_of_the_readme_work_as_typed(
    environ: dict[str, str], tmp_path: Path
) -> None:
    typed = commands()
    assert typed[0] == "source .venv/bin/activate"
    daemon = json.loads((tmp_path / ".openfang/daemon.json").read_text())
    script = "\n".join(typed[1:]).replace("127.0.0.1:50051", daemon["listen_addr"])
    bash = shutil.which("bash") or "bash"
    ran = subprocess.run(
        [bash, "-c", script],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    told = (
        "system_time",
        '"text":"hello"',
        '"verdict":"deny","reason":"Planning mode cannot use tools with side effects"',
        "\n3\n",
        '"status":202',
        "is approved",
        '"outcome":"ok"',
        "would wait for a person",
        "tool_invocation_end",
        "The audit log is intact",
        '"intact":true',
        "policy_violation",
    )
    rest = ran.stdout
    for words in told:
        assert words in rest, (words, ran.stdout, ran.stderr)
        rest = rest.partition(words)[2]
