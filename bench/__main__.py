"""Run every figure and print the report; `python -m bench path daemon` runs some of them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import anyio

from bench import cli, daemon, log, mcp, path

PARTS = ("path", "log", "mcp", "daemon", "cli")


async def _async_figures(folder: Path, wanted: set[str]) -> None:
    for name, part in (("path", path), ("log", log), ("mcp", mcp), ("daemon", daemon)):
        if name in wanted:
            for figure in await part.figures(folder):
                print(figure, flush=True)


def main() -> None:
    wanted = set(sys.argv[1:]) or set(PARTS)
    with tempfile.TemporaryDirectory(prefix="openfang-bench-") as name:
        folder = Path(name)
        options = {"use_uvloop": True}
        anyio.run(_async_figures, folder, wanted, backend="asyncio", backend_options=options)
        if "cli" in wanted:
            for figure in cli.figures(folder):
                print(figure, flush=True)


if __name__ == "__main__":
    main()
