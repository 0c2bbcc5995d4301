"""How much lies in a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MOST_FILES: Final = 100_000
_BLOCK: Final = 512


def size_of(folder: Path, most: float) -> int:
    """Count the bytes on the disk of all that lies in a folder, until they are too many. Blocks.

    Links are not followed; more than `MOST_FILES` names are too many of themselves.
    """
    waiting, size, names = [str(folder)], 0, 0
    while waiting and size <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    names += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if names > MOST_FILES:
                        return max(size, int(most) + 1)
        except OSError:  # it may have gone a moment ago
            continue
    return size
