"""The regions of pages that are made from the code, between two comments that name what is made.

`<!-- made: errors -->` begins one, `<!-- end -->` ends it; what stands around is written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.reference import api, commands, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCS: Final = Path(__file__).parents[2] / "docs"
_REGION = re.compile(
    r"^(<!-- made: ([a-z-]+)((?: \S+)*) -->\n).*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL
)
MAKERS: Final[Mapping[str, Callable[..., str]]] = {
    "api": api.endpoints,
    "commands": commands.commands,
    "errors": tables.errors,
    "events": tables.events,
    "functions": tables.functions,
    "keys": tables.keys,
    "keys-of": tables.keys_of,
    "variables": tables.variables,
}


def regions(page: Path) -> list[str]:
    """Name what is made in a page."""
    return [found[2] for found in _REGION.finditer(page.read_text("utf-8"))]


def made(text: str) -> str:
    """A page as it should be."""
    return _REGION.sub(_filled, text)


def _filled(found: re.Match[str]) -> str:
    begin, maker, words, end = found.groups()
    return f"{begin}\n{MAKERS[maker](*words.split())}\n{end}"


def outdated() -> dict[Path, str]:
    """Every page that is not what the code gives, and what it should be."""
    texts = ((page, page.read_text("utf-8")) for page in sorted(DOCS.rglob("*.md")))
    new = ((page, text, made(text)) for page, text in texts)
    return {page: now for page, before, now in new if now != before}
