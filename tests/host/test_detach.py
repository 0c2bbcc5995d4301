"""Programs that outlive whoever started them, and how they are told to end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from openfang.host.detach import READY_FD, Detach, first_words, running, speak

pytestmark = pytest.mark.requirement("C12.1")

SECONDS = 20.0
SAYS = f"""
import os, signal
print(os.getpid(), flush=True)
handle = int(os.environ["{READY_FD}"])
os.write(handle, b"ready")
os.close(handle)
signal.pause()
"""
SILENT = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


def program(folder: Path, text: str) -> Detach:
    return Detach(
        argv=(sys.executable, "-I", "-c", text),
        cwd=folder,
        environment={"PATH": os.environ["PATH"]},
        output=folder / "logs" / "output",
    )


def pid_of(detach: Detach) -> int:
    return int(detach.output.read_text())


def test_a_program_that_is_ready_goes_on_apart_from_us_until_it_is_told_to_end(
    tmp_path: Path,
) -> None:
    detach = program(tmp_path, SAYS)
    assert first_words(detach, SECONDS) == b"ready"
    with running(pid_of(detach)) as process:
        assert process
        assert not process.ended(0)
        assert os.getsid(process.pid) == process.pid
        assert process.has_open(detach.output)
        assert not process.has_open(Path(__file__))
        process.send(signal.SIGTERM)
        assert process.ended(SECONDS)
        assert not process.has_open(detach.output)
        process.send(signal.SIGTERM)
    assert detach.output.stat().st_mode & 0o777 == 0o600


def test_a_program_that_says_nothing_in_time_is_killed(tmp_path: Path) -> None:
    detach = program(tmp_path, SILENT)
    assert first_words(detach, 0.5) == b""
    text = detach.output.read_text()
    assert not text or not Path(f"/proc/{text.strip()}").exists()


def test_a_program_that_ends_without_a_word_is_not_waited_for(tmp_path: Path) -> None:
    detach = program(tmp_path, "raise SystemExit('not today')")
    assert first_words(detach, SECONDS) == b""
    assert detach.output.read_text() == "not today\n"


def test_a_program_that_does_not_exist_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - names only
    missing = Detach(
        argv=(str(tmp_path / "none"),), cwd=tmp_path, environment={}, output=tmp_path / "output"
    )
    with pytest.raises(FileNotFoundError):
        first_words(missing, SECONDS)
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208 - as above


def test_only_the_first_words_are_heard() -> None:
    ours, theirs = os.pipe()
    environ = {READY_FD: str(theirs)}
    speak(environ, b"one")
    speak(environ, b"two")
    assert environ == {}
    assert os.read(ours, 100) == b"one"
    assert os.read(ours, 100) == b""
    os.close(ours)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**70])
def test_a_number_that_no_process_has_is_nobody(pid: int) -> None:
    with running(pid) as process:
        assert process is None
