"""The filter of system calls as a file that bubblewrap reads, and how a child comes by it."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from typing import TYPE_CHECKING, Final

from openfang.host.seccomp import filter_program

if TYPE_CHECKING:
    from collections.abc import Callable

_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@cache
def filter_file() -> int | None:
    """Open the filter for this machine's processor, once; None where there is none for it."""
    program = filter_program(os.uname().machine)
    if not program:
        return None
    file = os.memfd_create("filter", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(file, program)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    return file


def afresh(file: int) -> Callable[[], None]:
    """Give what a child does to read a file of ours from its beginning, whoever else reads it."""
    own = f"/proc/self/fd/{file}"

    def prepare() -> None:
        again = os.open(own, os.O_RDONLY)
        os.dup2(again, file)
        os.close(again)

    return prepare
