"""The Inspector's command line, which people look at servers with."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

from tests.node import NODE
from tests.peers.clients import SECONDS, Web, environment
from tests.peers.servers import PACKAGES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.clients import Era, Target

PROGRAM: Final = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"


def inspect(folder: Path, target: Target, era: Era, method: str, *options: str) -> Any:
    """Call a method by `mcp-inspector --cli`, and give what it prints; its home is the folder."""
    chosen = ["--protocol-era", era, "--method", method, *options, "--format", "json", "--quiet"]
    done = subprocess.run(
        [NODE, PROGRAM, "--cli", *_reached(target), *chosen],
        env={**environment(), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _reached(target: Target) -> list[str]:
    if isinstance(target, Web):
        headers = [f"--header={name}: {value}" for name, value in target.headers.items()]
        return [target.url, "--transport", "http", *headers]
    variables = [word for name, value in target.env.items() for word in ("-e", f"{name}={value}")]
    return [*variables, "--transport", "stdio", target.command, *target.args]
