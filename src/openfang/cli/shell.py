"""What a shell has to know before `openfang` means this program, on this home."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from shlex import quote

from openfang.config.home import find_home


def on_path() -> bool:
    """Whether a shell that is told `openfang` starts us."""
    found = shutil.which("openfang")
    return found is not None and Path(found).resolve() == _script().resolve()


def preparation(home: Path) -> list[str]:
    """What a new shell is told first, to use this home."""
    lines = list[str]()
    if not on_path():
        lines.append(f"export PATH={quote(str(_script().parent))}:$PATH")
    others = {name: value for name, value in os.environ.items() if name != "OPENFANG_HOME"}
    if find_home(others) != home:
        lines.append(f"export OPENFANG_HOME={quote(str(home))}")
    return lines


def _script() -> Path:
    return Path(sys.executable).with_name("openfang").absolute()
