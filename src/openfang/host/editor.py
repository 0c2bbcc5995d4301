"""A person's editor, in the terminal that we were started from."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from pathlib import Path


def run_editor(command: str, file: Path) -> int:
    """Let a person change a file; say how their editor ended."""
    try:
        argv = [*shlex.split(command), str(file)]
        return subprocess.call(argv)  # noqa: S603 - the person's own choice
    except (OSError, ValueError) as error:
        raise NotFound(
            f"The editor {command!r} cannot be started: {error}.", way_out="EDITOR=nano, or another"
        ) from error
