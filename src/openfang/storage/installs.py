"""What people added from folders, as rows: what is there, what of it was accepted, and by whom."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.installs import InstallKind
    from openfang.storage.ports import Reader

Statement: TypeAlias = "tuple[str, Sequence[Any]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """One extension or skill. `digest` is of its files as they were installed.

    What was `accepted` last is a digest, too, and `review` all that was shown then; neither is
    there before the first time. Times are in nanoseconds.
    """

    id: str
    kind: InstallKind
    version: str
    digest: str
    origin: str
    installed_at: int
    installed_by: str
    enabled: bool = False
    accepted: str = ""
    accepted_at: int = 0
    accepted_by: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    review: Mapping[str, Any] = field(default_factory=dict[str, Any])


_COLUMNS: Final = tuple(one.name for one in fields(Install))
_NAMES: Final = ", ".join(_COLUMNS)
_READ: Final = f"SELECT {_NAMES} FROM installs"  # noqa: S608 - names of our own
_CHANGED: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:])
_KEEP: Final = (
    f"INSERT INTO installs ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608 - as above
    f"ON CONFLICT (id) DO UPDATE SET {_CHANGED}"
)


@dataclass(frozen=True, slots=True)
class InstallStore:
    """Reads what is installed."""

    database: Reader

    async def all(self, kind: InstallKind | None = None) -> list[Install]:
        """List what is there, by id."""
        rows = await self.database.read(f"{_READ} ORDER BY id")
        return [one for one in map(_install, rows) if kind in {None, one.kind}]

    async def get(self, id_: str) -> Install | None:
        """Find one."""
        rows = await self.database.read(f"{_READ} WHERE id = ?", (id_,))
        return _install(rows[0]) if rows else None


def keep(install: Install) -> Statement:
    """Write one down, in place of what was there of the same id."""
    row = {name: getattr(install, name) for name in _COLUMNS}
    row["enabled"] = int(install.enabled)
    for name in ("findings", "review"):
        row[name] = orjson.dumps(row[name]).decode()
    return _KEEP, tuple(row.values())


def forget(id_: str) -> Statement:
    """Delete one."""
    return "DELETE FROM installs WHERE id = ?", (id_,)


def _install(row: Sequence[Any]) -> Install:
    found = dict(zip(_COLUMNS, row, strict=True))
    found["enabled"] = bool(found["enabled"])
    found["findings"] = tuple(orjson.loads(found["findings"]))
    found["review"] = orjson.loads(found["review"])
    return Install(**found)
