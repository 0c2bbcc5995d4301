"""Cut the code blocks out of the five seed documents: `cut_seeds.py SEEDS_FOLDER OUTPUT_FOLDER`.

Fenced blocks are taken by their language. Pages without fences are cut by shape: TOML starts at a
table header, JSON at a line that is one brace. Python keeps a second suffix, since a block may be
a fragment that no tool of the house should read as a module.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)$")
_HEADER = re.compile(r"^\[\[?[a-z0-9_.]+\]\]?$")
_TOML_LINE = re.compile(r"^(\[\[?[a-z0-9_.]+\]\]?|[a-z_]+ = .*)$")
_SUFFIXES = {"toml": "toml", "yaml": "yaml", "json": "json", "python": "py.txt", "sql": "sql"}


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for seed in sorted(source.glob("[0-9]*.txt")):
        for number, (language, block) in enumerate(cut(seed.read_text("utf-8")), 1):
            number_and_kind = f"{number:02d}-{kind(language, block)}"
            name = f"{seed.name[:3]}-{number_and_kind}.{_SUFFIXES[language]}"
            (target / name).write_text(block, "utf-8")
            print(name)


def cut(text: str) -> Iterator[tuple[str, str]]:
    """Give language and text of each block that we have a use for."""
    lines = text.splitlines()
    blocks = fenced(lines) if any(map(_FENCE.match, lines)) else shaped(lines)
    for language, block in blocks:
        # One list of timeouts is fenced as Python in the seed, and is YAML.
        actual = "yaml" if re.search(r"^mcp_servers:", block, re.MULTILINE) else language
        if actual in _SUFFIXES:
            yield actual, block


def fenced(lines: list[str]) -> Iterator[tuple[str, str]]:
    language: str | None = None
    block: list[str] = []
    for line in lines:
        fence = _FENCE.match(line)
        if fence and language is None:
            language, block = fence["language"], []
        elif fence:
            yield str(language), joined(block)
            language = None
        else:
            block.append(line)


def shaped(lines: list[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(lines):
        if _HEADER.match(lines[at]):
            end = toml_end(lines, at)
            yield "toml", joined(lines[at:end])
        elif lines[at] == "{":
            end = lines.index("}", at) + 1
            yield "json", joined(lines[at:end])
        else:
            end = at + 1
        at = end


def toml_end(lines: list[str], start: int) -> int:
    """Find the line after the block; a blank line belongs to it when a header follows."""
    at = start
    while at < len(lines):
        blank_before_header = not lines[at] and any(map(_HEADER.match, lines[at + 1 : at + 2]))
        if not (_TOML_LINE.match(lines[at]) or blank_before_header):
            break
        at += 1
    return at


def joined(block: list[str]) -> str:
    return dedent("\n".join(block)) + "\n"


def kind(language: str, block: str) -> str:
    """Say what a block is for: a whole configuration, a part of one, or something else."""
    if language in {"toml", "yaml"}:
        whole = re.search(r"^(\[\[mcp_servers\]\]|\[a2a\]|  - id:)", block, re.MULTILINE)
        return "config" if whole else "fragment"
    if language == "json":
        words = {"mcpServers": "client", "jsonrpc": "message"}
        return next((word for key, word in words.items() if f'"{key}"' in block), "document")
    return {"python": "code", "sql": "queries"}[language]


if __name__ == "__main__":
    main()
