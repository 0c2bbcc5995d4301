"""What the pages show is typed into a shell as it stands, and its answers are compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests import forked
from tests.commands import unparsed
from tests.desk import Desk, alike, command, served, typed
from tests.pages import DOCS, ROOT, pages
from tests.peers.servers import install, runners

from openfang.core.event_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tests.desk import Typed

pytestmark = [pytest.mark.requirement("C19.3"), pytest.mark.needs("bash", "curl", "bwrap")]

# What is not typed: it needs what is not here. The parser takes it all the same.
NOT_TYPED: Final[Mapping[str, str]] = {
    "openfang servers login tickets": "somebody signs in to a service of the network",
    "openfang nodes trust https://two.example": "another node of the network shows its key",
}
# Pages that are typed at another desk, in this order: they would see what others do, or others
# what they do.
APART: Final[Mapping[str, str]] = {
    "usage.md": "it counts all that the node has done",
    "operations.md": "it ends the daemon",
    "backup.md": "it ends the daemon, and puts another home in the place of this one",
}
# A person has the rate of a person; here all pages are typed within a minute.
_UNHURRIED: Final = "\n[limits]\ncells_per_minute = 100000\nburst = 100000\n"


def typed_pages() -> list[str]:
    """Every page with something to type; those of the root have tests of their own."""
    inside = [path for path in pages() if DOCS in path.parents]
    named = [str(path.relative_to(DOCS)) for path in inside]
    return [name for name in named if to_type(name)]


def to_type(name: str) -> list[Typed]:
    return [one for one in typed(name) if one.command not in NOT_TYPED]


@contextmanager
def sat_down(folder: Path) -> Generator[Desk]:
    """Sit down in a folder, where a daemon serves a home that is new."""
    home = folder / ".openfang"
    for name in ("files", "backups"):
        (folder / name).mkdir()
    (folder / "token.txt").write_text("not-a-real-token\n")
    shutil.copy(DOCS / "examples" / "openai" / "chat.py", folder)
    with command(folder / "bin") as programs:
        path = (programs, str(Path(sys.executable).parent), str(runners(folder / "prefix")))
        environ = {
            "PATH": os.pathsep.join(path),
            "HOME": str(folder),
            "OPENFANG_HOME": str(home),
        }
        forked.run(("init",), environ)
        with (home / "config.toml").open("a") as file:
            file.write(_UNHURRIED)
        with served(environ, folder) as desk:
            yield desk


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    with sat_down(tmp_path_factory.mktemp("desk")) as desk:
        home = Path(desk.environ["OPENFANG_HOME"])
        install(home / "servers" / "files" / "home")  # as the page says, without a network
        yield desk
        assert undescribed(desk) == []


def undescribed(desk: Desk) -> list[tuple[str, str, str]]:
    """What is in the log of all that was typed and not on its page: event, level, key."""
    query = "SELECT event_type, level, payload FROM task_audits"
    found = forked.run(("audit", "sql", query, "--json"), desk.environ)
    rows = [tuple(one.values()) for one in json.loads(found.stdout)]
    assert rows
    written = {(event, level, key) for event, level, text in rows for key in json.loads(text)}
    told = {(one.name, level, key) for one in KINDS for level in one.levels for key in one.fields}
    return sorted(written - told)


def works(desk: Desk, page: list[Typed]) -> None:
    for one, (code, answered) in zip(page, desk.type(page), strict=True):
        assert (one.command, code) == (one.command, 0), answered
        if one.answer:
            assert alike(one.answer, answered), (one, answered)


@pytest.mark.parametrize("name", [one for one in typed_pages() if one not in APART])
def test_every_command_of_a_page_works_and_answers_as_the_page_says(
    shared: Desk, name: str
) -> None:
    works(shared, to_type(name))


def test_so_do_those_of_pages_that_want_the_node_for_themselves(tmp_path: Path) -> None:
    with sat_down(tmp_path) as desk:
        for name in APART:
            works(desk, to_type(name))
        assert undescribed(desk) == []


def test_what_is_made_by_make_is_there() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for name in ("../README.md", "../CONTRIBUTING.md"):
        made = [one.command.split() for one in typed(name) if one.command.startswith("make ")]
        assert made
        assert [words for words in made if words[1] not in targets] == []


def test_a_wrong_answer_would_be_seen() -> None:
    assert alike("a  ... c\n", "a   b c\n")
    assert not alike("a ... c\n", "a b d\n")
    assert not alike("a\n", "a\nb\n")
    assert alike('{"id": "call_...", "n": 1}', '{"id":"call_7","n":2}')
    assert not alike('{"id": "call_...", "n": 1}', '{"id":"call_7","n":2,"m":0}')
    assert not alike('{"ok": "yes"}', '{"ok": "no"}')


def test_what_is_not_typed_still_stands_on_a_page_and_is_a_command() -> None:
    named = {one.command for path in pages() for one in typed(os.path.relpath(path, DOCS))}
    assert set(NOT_TYPED) <= named
    ours = [one for one in NOT_TYPED if one.startswith("openfang ")]
    assert [(one, unparsed(one)) for one in ours if unparsed(one)] == []
