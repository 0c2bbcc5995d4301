"""The completion scripts, in the real shells: what is begun is completed there."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C19.1")
SECONDS = 30
_BASH = """
source {file}
COMP_WORDS=(openfang {words}) COMP_CWORD={last} COMP_LINE="openfang {words}"
COMP_POINT=${{#COMP_LINE}}
_openfang
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
BEGUN = {
    "au": {"audit"},
    "servers hea": {"health"},
    "tools call --args-f": {"--args-file"},
    "doctor --f": {"--fix"},
}


def ran(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stderr == ""
    return {line.split("\t")[0].strip() for line in done.stdout.splitlines()}


def written(openfang: Cli, shell: str, file: Path) -> Path:
    made = openfang("completion", shell)
    assert made.code == 0
    file.write_text(made.out)
    return file


@pytest.mark.needs("bash")
def test_bash_completes_what_is_begun(openfang: Cli, tmp_path: Path) -> None:
    file = written(openfang, "bash", tmp_path / "script")
    for words, wanted in BEGUN.items():
        script = _BASH.format(file=file, words=words, last=len(words.split()))
        assert ran("bash", "--norc", "-c", script) == wanted


@pytest.mark.needs("fish")
def test_fish_completes_what_is_begun(openfang: Cli, tmp_path: Path) -> None:
    file = written(openfang, "fish", tmp_path / "script")
    for words, wanted in BEGUN.items():
        script = f'source {file}; complete -C "openfang {words}"'
        assert ran("fish", "--no-config", "-c", script) == wanted


@pytest.mark.needs("zsh")
@pytest.mark.parametrize("way", ["source {}/_openfang", "fpath=({} $fpath); compinit -u -D"])
def test_zsh_completes_what_is_begun(openfang: Cli, tmp_path: Path, way: str) -> None:
    """It completes at a terminal alone: there is one, and the tabulator is pressed."""
    written(openfang, "zsh", tmp_path / "_openfang")
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(tmp_path), "PS1": ""}
    command = ["setsid", "--ctty", "zsh", "-f", "-i"]
    with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as zsh:
        os.close(theirs)
        try:
            begin = f"autoload -Uz compinit; compinit -u -D; {way.format(tmp_path)}; print re''ady"
            typed(ours, f"{begin}\n", "ready")
            for words, (wanted,) in BEGUN.items():
                typed(ours, f"\x15openfang {words}\t", wanted)
        finally:
            zsh.kill()
            os.close(ours)


def typed(terminal: int, keys: str, wanted: str) -> None:
    """Press keys, and wait until the terminal shows this."""
    os.write(terminal, keys.encode())
    shown = ""
    while wanted not in shown:
        assert select.select([terminal], [], [], SECONDS)[0], f"never shown: {wanted}: {shown!r}"
        shown += os.read(terminal, 4_096).decode()
