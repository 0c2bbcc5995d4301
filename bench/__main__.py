"""Run every figure and print the report; `python -m bench path daemon` runs some of them.

`python -m bench lasting` makes 200,000 calls, which takes minutes: it has to be asked for.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import anyio

from bench import (
    a2a,
    agents,
    approvals,
    chains,
    cli,
    code_agents,
    completions,
    daemon,
    definitions,
    extensions,
    flows,
    lasting,
    log,
    mcp,
    memory,
    models,
    path,
    planner,
    rules,
    sandbox,
    schedules,
    serving,
    telemetry,
    trust,
    web,
)

PARTS = (
    *("path", "flows", "log", "mcp", "agents", "models", "code", "extensions", "planner", "memory"),
    *("schedules", "rules", "trust", "approvals", "definitions", "sandbox"),
    *("daemon", "serving", "telemetry", "a2a", "chains", "openai", "web", "cli"),
)


async def _async_figures(folder: Path, wanted: set[str]) -> None:
    parts = {
        "path": path,
        "flows": flows,
        "log": log,
        "mcp": mcp,
        "agents": agents,
        "models": models,
        "code": code_agents,
        "extensions": extensions,
        "planner": planner,
        "definitions": definitions,
        "memory": memory,
        "schedules": schedules,
        "rules": rules,
        "trust": trust,
        "approvals": approvals,
        "sandbox": sandbox,
        "daemon": daemon,
        "serving": serving,
        "telemetry": telemetry,
        "a2a": a2a,
        "chains": chains,
        "openai": completions,
        "web": web,
        "lasting": lasting,
    }
    for name, part in parts.items():
        if name in wanted:
            for figure in await part.figures(folder):
                print(figure, flush=True)


def main() -> None:
    wanted = set(sys.argv[1:]) or set(PARTS)
    # What is measured starts from bytecode, as wherever it was started before.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="openfang-bench-") as name:
        folder = Path(name)
        options = {"use_uvloop": True}
        anyio.run(_async_figures, folder, wanted, backend="asyncio", backend_options=options)
        if "cli" in wanted:
            for figure in cli.figures(folder):
                print(figure, flush=True)


if __name__ == "__main__":
    main()
