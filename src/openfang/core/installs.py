"""What people add from folders."""

from __future__ import annotations

from typing import Literal, TypeAlias

InstallKind: TypeAlias = Literal["extension", "skill"]
