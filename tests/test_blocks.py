"""Every block of every page is what it says that it is: it loads, parses, compiles.

Those of `console` are typed by `test_pages.py` and `test_tour.py`.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import time
from configparser import ConfigParser
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from anyio import to_thread
from tests.commands import mistake, unparsed
from tests.node import NODE
from tests.pages import DOCS, ROOT, Block, all_blocks, pages, prose

from openfang import open_local
from openfang.app.home.new import init_home
from openfang.app.rules.cases import run_tests
from openfang.app.rules.drafts import rules_of
from openfang.config.clients import named_file, read_client
from openfang.config.extension_manifests import read_manifest
from openfang.config.load import check
from openfang.config.manifests import check_manifests
from openfang.config.skill_files import SkillFile, read_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = pytest.mark.requirement("C19.3")

# What a block may import that the environment of the tests has not, and who runs it instead.
ELSEWHERE: Final[Mapping[str, str]] = {
    "agents": "tests/peers/test_frameworks.py",
    "autogen_ext": "nobody; the page says so",
    "crewai_tools": "nobody; the page says so",
    "google": "nobody; the page says so",
    "langchain_mcp_adapters": "tests/peers/test_frameworks.py",
    "llama_index": "nobody; the page says so",
}
# Files that a configuration of a page includes.
_INCLUDED: Final = {"team.toml": "", "servers.yaml": "mcp_servers: []\n"}
_INSTRUCTIONS: Final = frozenset(
    {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"}
    | {"RUN", "USER", "VOLUME", "WORKDIR"}
)
_CLIENTS: Final = frozenset(
    {
        ".claude.json",
        ".mcp.json",
        "claude_desktop_config.json",
        "mcp.json",
        "mcp_config.json",
        "mcp_servers.yaml",
        "settings.json",
    }
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def configuration(block: Block, home: Path) -> None:
    for name, text in {**_INCLUDED, "config.toml": block.text}.items():
        write(home, name, text)
    assert [str(one) for one in check(home, {})] == []


def manifest(block: Block, home: Path) -> None:
    """A piece of a manifest may leave its name to the rest."""
    named = re.search(r'^name = "([\w-]+)"', block.text.partition("\n[")[0], re.MULTILINE)
    toml = block.language == "toml"
    text = block.text if named or not toml else f'name = "coder"\n{block.text}'
    write(home, f"agents/{named[1] if named else 'coder'}/agent.{block.language}", text)
    assert [str(one) for one in check_manifests(home)] == []


def rules(block: Block, home: Path) -> None:
    path = write(home, "policy.toml", block.text)
    found = rules_of(str(path), {"HOME": str(home)})
    assert [one.as_json() for one in run_tests(found, {}, time.time_ns()) if not one.passed] == []


def client(block: Block, home: Path) -> None:
    """The file of another program, with at least one server in the form that it reads."""
    path = write(home, block.title.removeprefix("~/"), block.text)
    found = read_client(named_file(path), {"HOME": str(home)})
    assert found
    assert [one for one in found if not one.entry.get("transport")] == []


def skill(block: Block, home: Path) -> None:
    write(home, block.title, block.text)
    if block.title == "skill.toml":
        write(home, "main.py", "")
    found = read_skill(home, placed=False)
    assert isinstance(found, SkillFile), found


def extension(block: Block, home: Path) -> None:
    write(home, "manifest.json", block.text)
    write(home, "main.py", "")
    read_manifest(home)


def toml(block: Block, home: Path) -> None:
    kind = Path(block.title).name
    if kind == "config.toml" and block.title != kind:
        client(block, home)
        return
    known: dict[str, Callable[[Block, Path], None]] = {
        "": configuration,
        "config.toml": configuration,
        "agent.toml": manifest,
        "policy.toml": rules,
        "skill.toml": skill,
    }
    known[kind](block, home)


def as_json(block: Block, home: Path) -> None:
    kind = Path(block.title).name
    if kind in _CLIENTS:
        client(block, home)
    elif kind == "agent.json":
        manifest(block, home)
    elif kind == "manifest.json":
        extension(block, home)
    else:
        json.loads(block.text)


def as_yaml(block: Block, home: Path) -> None:
    found: Any = yaml.safe_load(block.text)
    if Path(block.title).name in _CLIENTS:
        client(block, home)
    elif Path(block.title).name == "compose.yaml":
        assert found["services"]
    assert found is not None


def python(block: Block, home: Path) -> None:
    del home
    if block.title.startswith("docs/"):
        assert block.text in (ROOT / block.title).read_text("utf-8")
    text = dedent(block.text)  # a part of a file may come from within a function
    compile(text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for module, name in imported(ast.parse(text)):
        if module.partition(".")[0] in ELSEWHERE:
            continue
        found = importlib.import_module(module)
        assert not name or hasattr(found, name) or importlib.import_module(f"{module}.{name}")


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", one.name) for one in node.names)


def shell(block: Block, home: Path) -> None:
    del home
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    lines = block.text.replace("\\\n", " ").splitlines()
    assert [unparsed(one) for one in lines if one.startswith("openfang ")] == [
        "" for one in lines if one.startswith("openfang ")
    ]


def javascript(block: Block, home: Path) -> None:
    path = write(home, "block.mjs", block.text)
    subprocess.run([NODE, "--check", path], check=True)


def unit(block: Block, home: Path) -> None:
    del home
    found = ConfigParser(strict=False, interpolation=None)
    found.read_string(block.text)
    assert found.sections()


def image(block: Block, home: Path) -> None:
    del home
    lines = block.text.replace("\\\n", " ").splitlines()
    words = [one.split()[0] for one in lines if one.strip() and not one.startswith("#")]
    assert "FROM" in words
    assert set(words) <= _INSTRUCTIONS


def words(block: Block, home: Path) -> None:
    """Anything; but a line that is a command of ours has to be one."""
    del home
    lines = [re.sub(r"   .*", "", one) for one in block.text.splitlines()]
    found = [mistake(one) for one in lines if one.startswith("openfang ")]
    assert [one for one in found if one] == []


LANGUAGES: Final[Mapping[str, Callable[[Block, Path], None]]] = {
    "console": words,
    "dockerfile": image,
    "ini": unit,
    "js": javascript,
    "json": as_json,
    "markdown": skill,
    "python": python,
    "sh": shell,
    "sql": words,
    "text": words,
    "toml": toml,
    "yaml": as_yaml,
}


@pytest.mark.parametrize("block", all_blocks(), ids=str)
def test_a_block_is_what_it_says_that_it_is(block: Block, tmp_path: Path) -> None:
    LANGUAGES[block.language](block, tmp_path / "home")


async def test_every_query_of_the_pages_can_be_asked(tmp_path: Path) -> None:
    queries = [one.text for one in all_blocks() if one.language == "sql"]
    assert queries
    environ = {"HOME": str(tmp_path)}
    await to_thread.run_sync(init_home, tmp_path / ".openfang", environ)
    async with open_local(environ) as local:
        for query in queries:
            assert await local.sql(query)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_is_there_with_its_options(page: Path) -> None:
    named = re.findall(r"`(openfang [^`\n]+)`", prose(page))
    assert [(one, mistake(one)) for one in named if mistake(one)] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(page))
    here = [one for one in links if "://" not in one and not one.startswith("mailto:")]
    assert [one for one in here if not (page.parent / one).exists()] == []
    inside = DOCS if DOCS in page.parents else ROOT
    assert [one for one in here if inside not in (page.parent / one).resolve().parents] == []


def test_every_picture_says_in_words_what_it_shows_and_needs_nothing_from_elsewhere() -> None:
    for page in pages():
        for words_, place in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", prose(page)):
            assert len(words_) > 10, (page, place)
            assert (page.parent / place).is_file(), (page, place)
    for picture in DOCS.rglob("*.svg"):
        text = picture.read_text("utf-8")
        assert "<title>" in text, picture
        assert not re.search(r"<script|(?:href|src)=.https?:|@import|url\(.?https?:", text), picture


def test_a_command_that_is_not_there_would_be_seen() -> None:
    assert mistake("openfang tools call x --args '{}' | head") == ""
    assert mistake("openfang tools cal x") == "there is no command tools cal"
    assert mistake("openfang tools call x --arsg") == "tools call has no option --arsg"
    assert mistake("openfang NAME --help") == ""
    assert unparsed("openfang tools call") != ""
