"""The seed's Python blocks, and what they are run with."""

from __future__ import annotations

import ast
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfang import compat
from openfang.core.ids import Kind
from openfang.testing import TableSource, foreign_tool, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.testing import OpenApp

_SEEDS = Path(__file__).parent.parent / "data/seeds"
_SIGNATURE = re.compile(r"^( *(?:async )?def \w+\([^)]*\)(?: -> [\w\[\], ]+)?)$", re.MULTILINE)


def block(number: int) -> str:
    """One block, as it stands in the seed."""
    return (_SEEDS / f"003-{number:02}-code.py.txt").read_text("utf-8")


def run(text: str, **names: Any) -> dict[str, Any]:
    """Execute a block that has these names and those of `openfang.compat`."""
    offered = {name: getattr(compat, name) for name in compat.__all__}
    risks = {"HIGH": compat.RiskLevel.HIGH, "MEDIUM": compat.RiskLevel.MEDIUM}
    space: dict[str, Any] = {**offered, **risks, **names}
    exec(compile(text, "seed", "exec"), space)  # noqa: S102 - the seed's own text
    return space


def outline(text: str) -> ast.ClassDef:
    """Read a class of which only the signatures are given."""
    (found,) = ast.parse(_SIGNATURE.sub(r"\1: ...", text)).body
    assert isinstance(found, ast.ClassDef)
    return found


async def answer(arguments: Mapping[str, Any]) -> str:
    return f"did {arguments.get('text', 'it')}"


def demo() -> TableSource:
    """A server with one tool of each risk."""
    names = ("echo", "fetch_page", "write_file", "delete_file")
    return TableSource(
        Kind.MCP, "demo", {name: (foreign_tool("demo", name), answer) for name in names}
    )


@asynccontextmanager
async def house(
    folder: Path, *, config: str = "", source: TableSource | None = None
) -> AsyncGenerator[OpenApp]:
    """An open home whose house is in use."""
    sources = [source or demo()]
    async with (
        open_test_app(folder, config=config, sources=sources) as app,
        compat.use(app.parts, app.caller),
    ):
        yield app
