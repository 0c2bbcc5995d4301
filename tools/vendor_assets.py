"""Fetch the scripts of the web page from the npm registry, by name and version, into the package.

They are kept as they are published, each with its licence; `versions.json` says what is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STATIC = Path(__file__).resolve().parent.parent / "src/openfang/edges/web/static"
MOST = 250_000
WANTED = {
    ("htmx.org", "4.0.1"): {
        "package/dist/htmx.min.js": "htmx.js",
        "package/dist/ext/hx-sse.min.js": "htmx-sse.js",
        "package/LICENSE": "htmx.LICENSE",
    },
    ("uplot", "1.6.32"): {
        "package/dist/uPlot.iife.min.js": "uplot.js",
        "package/dist/uPlot.min.css": "uplot.css",
        "package/LICENSE": "uplot.LICENSE",
    },
}


def _package(name: str, version: str, folder: str) -> tarfile.TarFile:
    """Fetch a package by its name; npm checks that it is what was published."""
    command = ["npm", "pack", "--json", f"{name}@{version}"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (about,) = json.loads(done.stdout)
    return tarfile.open(Path(folder) / about["filename"])


def _license(packed: tarfile.TarFile) -> str:
    found = packed.extractfile("package/package.json")
    return "" if found is None else str(json.load(found)["license"])


def main() -> int:
    kept: dict[str, Any] = {}
    for (name, version), files in WANTED.items():
        with TemporaryDirectory() as folder:
            packed = _package(name, version, folder)
        for inside, outside in files.items():
            found = packed.extractfile(inside)
            if found is None:
                raise SystemExit(f"{name} {version} has no {inside}")
            text = found.read().decode().replace("\r\n", "\n")
            lines = [one for one in text.splitlines() if not one.startswith("//# sourceMappingURL")]
            (STATIC / outside).write_text("\n".join(lines) + "\n")
        kept[name] = {"version": version, "license": _license(packed), "files": [*files.values()]}
    (STATIC / "versions.json").write_text(json.dumps(kept, indent=1) + "\n")
    size = sum(file.stat().st_size for file in STATIC.iterdir())
    print(f"{size} bytes of {MOST} in {STATIC.name}/")
    return 0 if size <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
