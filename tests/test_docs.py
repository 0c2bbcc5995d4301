"""The docs cannot fall behind: commands, events and error codes are all told of."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.reference.pages import MAKERS, outdated, regions
from tools.sizing import table

import openfang
from openfang.cli.app import _COMMANDS, _GROUPS
from openfang.core import events
from openfang.core.errors import OpenFangError
from openfang.core.event_kinds import KINDS
from openfang.edges.api.table import ENDPOINTS
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from openfang.core.tools import Tool

DOCS = Path(__file__).parent.parent / "docs"


def told(page: str) -> set[str]:
    """Everything that stands in backticks in the first column of the page's tables."""
    rows = re.findall(r"^\| (.*?) \|", (DOCS / page).read_text(), re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def all_errors(kind: type[OpenFangError]) -> set[type[OpenFangError]]:
    return {kind}.union(*(all_errors(child) for child in kind.__subclasses__()))


@pytest.fixture(scope="module")
def everything_imported() -> None:
    for module in pkgutil.walk_packages(openfang.__path__, "openfang."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def test_every_command_is_told_of_and_no_other() -> None:
    grouped = {f"{group} {name}" for group, (_, names) in _GROUPS.items() for name in names}
    assert told("cli.md") == grouped | set(_COMMANDS)


async def test_every_built_in_is_told_of_with_its_arguments_and_no_other(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        tools = [one for one in app.parts.registry.snapshot.select() if one.source == "builtin"]
    page = (DOCS / "builtins.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| ", page, re.MULTILINE)
    assert sorted(rows) == sorted((one.name, signature(one)) for one in tools)


def signature(tool: Tool) -> str:
    """The arguments of a tool as the page has them: those in bold are required."""
    names, required = tool.input_schema["properties"], tool.input_schema["required"]
    return ", ".join(f"**{name}**" if name in required else name for name in names)


def test_every_event_is_told_of() -> None:
    named = {name: value for name, value in vars(events).items() if name.isupper()}
    assert told("audit.md") == {value for value in named.values() if isinstance(value, str)}


def test_every_event_has_its_words() -> None:
    named = [value for name, value in vars(events).items() if name.isupper()]
    assert sorted(one.name for one in KINDS) == sorted(one for one in named if isinstance(one, str))


@pytest.mark.requirement("C19.3")
def test_what_the_pages_take_from_the_code_is_what_the_code_gives() -> None:
    assert [page.name for page in outdated()] == [], "make reference"
    made = {name for page in DOCS.rglob("*.md") for name in regions(page)}
    assert made == set(MAKERS)


@pytest.mark.usefixtures("everything_imported")
def test_every_error_code_is_told_of_and_no_other() -> None:
    codes = {kind.code for kind in all_errors(OpenFangError) if kind.__module__ != __name__}
    assert told("errors.md") == codes


def test_every_endpoint_is_told_of_with_what_it_requires_and_no_other() -> None:
    rows = re.findall(
        r"^\| `([A-Z]+ /\S+)` \| (\w+) \|", (DOCS / "http.md").read_text(), re.MULTILINE
    )
    known = [
        (f"{one.method} {one.path.replace(':path', '')}", one.access.value) for one in ENDPOINTS
    ]
    assert sorted(rows) == sorted(known)


def test_every_test_and_file_that_the_threat_model_names_is_there() -> None:
    text = (DOCS / "threat-model.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    root = DOCS.parent
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (root / file).is_file() or f"def {test}(" not in (root / file).read_text("utf-8")
    ]
    assert len(named) > 60
    assert missing == []
    files = set(re.findall(r"`([a-z]\w*/[\w/]+\.py)`", text))
    assert [one for one in files if not (root / "src" / "openfang" / one).is_file()] == []


def test_every_threat_has_a_defence_and_a_test_or_is_open() -> None:
    text = (DOCS / "threat-model.md").read_text("utf-8").partition("## Threats")[2]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) >= 25
    silent = [row[0] for row in rows if len(row) != 3 or "`tests/" not in row[2]]
    assert silent == []


def test_the_page_on_sizing_shows_what_its_script_computes() -> None:
    page = (DOCS / "sizing.md").read_text()
    assert table() in page
