"""Where a reader of the pages sits: a home that a daemon serves, a folder of files, a shell.

What is typed there as `openfang` runs in a process that is forked (`forked.py`), as a reader's own
would run; the shell, and all else that is typed, is what the machine has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tests import forked
from tests.pages import DOCS, blocks

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_MARK = "<<ended with %s>>"
_ENDED = re.compile(r"<<ended with (\d+)>>\n")
_LONGEST: Final = 200_000
# A command that hands its own files over, and ends as the one that got them.
_COMMAND: Final = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as there:
    there.connect({place!r})
    asked = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(there, [asked], [0, 1, 2])
    sys.exit(int(there.recv(100)))
"""


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, and what the page says that it answers."""

    command: str
    answer: str


def typed(page: str) -> list[Typed]:
    """Every command of a page, in order."""
    found: list[Typed] = []
    for block in blocks(DOCS / page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, answer = part.partition("\n")
                found.append(Typed(command, answer))
    return found


@dataclass(frozen=True, slots=True)
class Desk:
    """A home that a daemon serves, and the folder that the shell is in."""

    environ: dict[str, str]
    folder: Path

    @property
    def address(self) -> str:
        """Where the daemon listens now: it may have been started anew."""
        daemon = json.loads(Path(self.environ["OPENFANG_HOME"], "daemon.json").read_text())
        return daemon["listen_addr"]

    def type(
        self, page: list[Typed], instead: Mapping[str, str] | None = None
    ) -> list[tuple[int, str]]:
        """Type the commands of a page into one shell; say how each ended, and what it answered."""
        script = "\n".join(
            f"{one.command}\nprintf '{_MARK}\\n' $?\n{_settled(one.command)}" for one in page
        )
        files, backups = (str(self.folder / name) for name in ("files", "backups"))
        places = {"/srv/files": files, "/mnt/backups": backups, "127.0.0.1:50051": self.address}
        for place, here in {**places, **(instead or {})}.items():
            script = script.replace(place, here)
        ran = subprocess.run(
            [shutil.which("bash") or "bash", "-c", script],
            env=self.environ,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
            timeout=100,
            check=False,
        )
        parts = _ENDED.split(ran.stdout)
        answers = [part.replace(str(self.folder / "files"), "/srv/files") for part in parts[::2]]
        assert len(answers) == len(page) + 1, ran.stdout
        return list(zip(map(int, parts[1::2]), answers, strict=False))


def _settled(command: str) -> str:
    """Wait for what a daemon notices within half a second: who types is slower than that."""
    made = re.match(r"openfang agents new ([\w-]+)", command)
    return f"until openfang agents show {made[1]} > /dev/null 2>&1; do :; done" if made else ""


@contextmanager
def served(environ: dict[str, str], folder: Path) -> Generator[Desk]:
    """Have a daemon serve the home of a reader who sits in a folder."""
    environ = {**environ, "OPENFANG_LISTEN": "127.0.0.1:0"}
    start = forked.run(("start", "--init", "--detach"), environ)
    assert start.returncode == 0, start.stderr
    try:
        yield Desk(environ, folder)
    finally:
        forked.run(("stop",), environ)


@contextmanager
def command(folder: Path) -> Generator[str]:
    """Have a program `openfang` in a folder, whose path this is, that is forked where it is run."""
    folder.mkdir()
    place = str(folder / "socket")
    program = folder / "openfang"
    program.write_text(_COMMAND.format(python=sys.executable, place=place))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(place)
        listening.listen()
        threading.Thread(target=_accept, args=(listening,), daemon=True).start()
        yield str(folder)
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket) -> None:
    with suppress(OSError):  # nobody types any more
        while True:
            there, _ = listening.accept()
            threading.Thread(target=_run, args=(there,), daemon=True).start()


def _run(there: socket.socket) -> None:
    with there:
        asked, files, _, _ = socket.recv_fds(there, _LONGEST, 3)
        arguments, environ, folder = json.loads(asked)
        stdin, stdout, stderr = files
        zygote = forked._ZYGOTES[-1]
        with zygote.start(arguments, environ, (stdin, stdout, stderr), Path(folder)) as running:
            for file in files:
                os.close(file)
            there.send(str(running.wait(100)).encode())


def alike(told: str, answered: str) -> bool:
    """Whether an answer is the page's: `...` stands for anything, and JSON may be laid out.

    A line of nothing else stands for any number of lines.
    """
    if told.startswith("{"):
        return same(json.loads(told), json.loads(answered))
    lines = [re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in told.splitlines()]
    lines = ["(?:.*\n)*.*" if line == ".*" else line for line in lines]
    pattern = "\n".join(re.sub(r"(?:\\ )+", " +", line) for line in lines)
    return re.fullmatch(pattern, answered.strip()) is not None


def same(told: Any, answered: Any) -> bool:
    """Compare JSON; of numbers that count records only the kind."""
    match told:
        case dict():
            table = cast("dict[str, Any]", told)
            return set(table) == set(answered) and all(
                same(value, answered[key]) for key, value in table.items()
            )
        case list():
            pairs = zip(cast("list[Any]", told), answered, strict=True)
            return all(same(*pair) for pair in pairs)
        case int():
            return isinstance(answered, int)
        case str():
            return re.fullmatch(re.escape(told).replace(r"\.\.\.", ".*"), answered) is not None
        case _:
            return told == answered
