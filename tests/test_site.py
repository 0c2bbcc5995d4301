"""The site is built from the pages: nothing in it is missing, and nothing comes from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.pages import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C19.3")
SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
# Where an attribute of an element makes a browser fetch something.
_FETCHES = {
    "audio": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "script": "src",
    "source": "src",
    "video": "src",
}
_POINTING = frozenset({"canonical", "next", "prev"})


class Page(HTMLParser):
    """What a page fetches, where its links lead, and the places in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places.add(found.get("id", ""))
        pointing = tag == "link" and found.get("rel") in _POINTING
        if not pointing and (address := found.get(_FETCHES.get(tag, ""))):
            self.fetched.append(address)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])


def named(entry: Any) -> Iterator[str]:
    """Every page of the navigation."""
    match entry:
        case str():
            yield entry
        case dict():
            yield from named(list(entry.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - any table
        case list():
            for one in entry:  # pyright: ignore[reportUnknownVariableType] - any list
                yield from named(one)
        case _:
            raise AssertionError(entry)


def test_every_page_stands_in_the_navigation_once_and_no_other() -> None:
    there = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    assert sorted(named(SETTINGS["nav"])) == there


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, from a copy: a broken link ends the build."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(DOCS, folder / "docs")
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / SETTINGS["site_dir"]


def test_the_site_is_whole_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > len(list(DOCS.glob("*.md")))
    for path, page in pages.items():
        assert [one for one in page.fetched if urlsplit(one).netloc] == [], path
        if path.name == "404.html":  # it is shown at any address, so it names the root
            continue
        assert [one for one in page.fetched if not target(path, one).is_file()] == [], path
        broken = [one for one in page.links if not leads_somewhere(site, pages, path, one)]
        assert broken == [], path
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*.?(?:https?:)?//", sheet.read_text("utf-8"))


def target(page: Path, link: str) -> Path:
    found = (page.parent / unquote(urlsplit(link).path)).resolve()
    return found / "index.html" if found.is_dir() else found


def leads_somewhere(site: Path, pages: dict[Path, Page], page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    found = target(page, link) if parts.path else page
    there = found.is_file() and site in found.parents
    return there and (
        not parts.fragment or found not in pages or known(pages[found], parts.fragment)
    )


def known(page: Page, fragment: str) -> bool:
    return unquote(fragment) in page.places
