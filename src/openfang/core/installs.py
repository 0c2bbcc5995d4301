"""What people add from folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

InstallKind: TypeAlias = Literal["extension", "skill"]
FOLDERS: Final[Mapping[InstallKind, str]] = {"extension": "extensions", "skill": "skills"}
"""Where they lie, below the home."""
WAITING: Final = ".waiting"
"""Where other versions of those wait, below that."""
COMMANDS: Final[Mapping[InstallKind, str]] = {"extension": "ext", "skill": "skills"}
"""What people type: `openfang ext enable ID`."""
