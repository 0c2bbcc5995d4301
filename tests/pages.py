"""The pages, and the blocks in them: of each its language, and which file it is of.

A block's title is the name of that file: ```` ```toml title="agent.toml" ````.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<mark>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)(?P=mark)$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and where it stands."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page, those of the root first."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        language, _, more = found["info"].partition(" ")
        title = _TITLE.search(more)
        indent = found["indent"]
        yield Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, found.start()) + 1,
            language=language,
            title=title[1] if title else "",
            text=re.sub(rf"^{indent}", "", found["text"], flags=re.MULTILINE),
        )


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def prose(page: Path) -> str:
    """The page without its blocks, each line where it was."""
    text = page.read_text("utf-8")
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
