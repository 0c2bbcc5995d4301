"""What the pages show is typed into a shell as it stands, and its answers are compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.peers.servers import install, runners

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.requirement("C19.3"), pytest.mark.needs("bash", "curl", "bwrap")]
# What cannot be typed where there is no network, and why.
ONLINE = {"openfang servers login tickets": "somebody signs in to a service of the network"}
_MARK = "<<ended with %s>>"
_ENDED = re.compile(r"<<ended with (\d+)>>\n")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, and what the page says that it answers."""

    command: str
    answer: str


def typed(page: str) -> list[Typed]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found: list[Typed] = []
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            if command not in ONLINE:
                found.append(Typed(command, answer))
    return found


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a reader sits: a home that a daemon serves, a folder of files, a shell."""

    environ: dict[str, str]
    folder: Path
    address: str

    def type(
        self, page: list[Typed], instead: Mapping[str, str] | None = None
    ) -> list[tuple[int, str]]:
        """Type the commands of a page into one shell; say how each ended, and what it answered."""
        script = "\n".join(f"{one.command}\nprintf '{_MARK}\\n' $?" for one in page)
        files, backups = (str(self.folder / name) for name in ("files", "backups"))
        places = {"/srv/files": files, "/mnt/backups": backups, "127.0.0.1:50051": self.address}
        for place, here in {**places, **(instead or {})}.items():
            script = script.replace(place, here)
        ran = subprocess.run(
            [shutil.which("bash") or "bash", "-c", script],
            env=self.environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        parts = _ENDED.split(ran.stdout)
        answers = [part.replace(str(self.folder / "files"), "/srv/files") for part in parts[::2]]
        assert len(answers) == len(page) + 1, ran.stderr
        return list(zip(map(int, parts[1::2]), answers, strict=False))


@contextmanager
def served(environ: dict[str, str], folder: Path) -> Generator[Desk]:
    """Have a daemon serve the home of a reader who sits in a folder."""
    openfang = [sys.executable, "-m", "openfang"]
    start = [*openfang, "start", "--init", "--detach"]
    environ = {**environ, "OPENFANG_LISTEN": "127.0.0.1:0"}
    subprocess.run(start, env=environ, check=True, stdout=subprocess.DEVNULL)
    daemon = json.loads(Path(environ["OPENFANG_HOME"], "daemon.json").read_text())
    try:
        yield Desk(environ, folder, daemon["listen_addr"])
    finally:
        subprocess.run([*openfang, "stop"], env=environ, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    home = tmp_path / ".openfang"
    for name in ("files", "backups"):
        (tmp_path / name).mkdir()
    (tmp_path / "token.txt").write_text("not-a-real-token\n")
    shutil.copy(ROOT / "docs" / "examples" / "openai" / "chat.py", tmp_path)
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{runners(tmp_path / 'prefix')}",
        "HOME": str(tmp_path),
        "OPENFANG_HOME": str(home),
    }
    with served(environ, tmp_path) as desk:
        install(home / "servers" / "files" / "home")  # as the page says for one without a network
        yield desk


def alike(told: str, answered: str) -> bool:
    """Whether an answer is the page's: `...` stands for anything, and JSON may be laid out.

    A line of nothing else stands for any number of lines.
    """
    if told.startswith("{"):
        return same(json.loads(told), json.loads(answered))
    lines = [re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in told.splitlines()]
    lines = ["(?:.*\n)*.*" if line == ".*" else line for line in lines]
    pattern = "\n".join(line.replace(r"\ ", " +") for line in lines)
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


@pytest.mark.parametrize(
    "name",
    [
        *("mcp.md", "http.md", "agents.md", "usage.md", "a2a.md", "openai.md", "schedules.md"),
        *("operations.md", "backup.md", "policy.md", "approvals.md", "start.md"),
    ],
)
def test_every_command_of_a_page_works_and_answers_as_the_page_says(desk: Desk, name: str) -> None:
    page = typed(name)
    assert page
    for one, (code, answered) in zip(page, desk.type(page), strict=True):
        assert (one.command, code) == (one.command, 0), answered
        if one.answer:
            assert alike(one.answer, answered), (one, answered)


def test_a_wrong_answer_would_be_seen() -> None:
    assert alike("a  ... c\n", "a   b c\n")
    assert not alike("a ... c\n", "a b d\n")
    assert not alike("a\n", "a\nb\n")
    assert alike('{"id": "call_...", "n": 1}', '{"id":"call_7","n":2}')
    assert not alike('{"id": "call_...", "n": 1}', '{"id":"call_7","n":2,"m":0}')
    assert not alike('{"ok": "yes"}', '{"ok": "no"}')


def test_what_is_not_typed_still_stands_on_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert [command for command in ONLINE if f"$ {command}\n" not in pages] == []
