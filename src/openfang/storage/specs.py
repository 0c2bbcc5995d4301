"""Frozen specs and the projects they belong to."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from openfang.core.keys import Spec
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]


def spec_hash(content: bytes) -> str:
    """Name a spec by what it says."""
    return sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class SpecStore:
    """Reads specs and projects."""

    database: Reader

    async def projects(self, spec: str) -> frozenset[str]:
        """Name the projects for which this hash was frozen."""
        sql = "SELECT project FROM specs WHERE hash = ?"
        return frozenset(row[0] for row in await self.database.read(sql, (spec,)))

    async def all(self) -> list[Spec]:
        """List all specs, oldest first."""
        sql = "SELECT hash, project, name, frozen_by, frozen_at FROM specs ORDER BY frozen_at"
        return [
            Spec(hash=row[0], project=row[1], name=row[2], frozen_by=row[3], frozen_at=row[4])
            for row in await self.database.read(sql)
        ]


def insert_spec(spec: Spec, content: bytes) -> Statement:
    """Freeze a spec."""
    sql = "INSERT INTO specs VALUES (?, ?, ?, ?, ?, ?)"
    values = (spec.hash, spec.project, spec.name, content, spec.frozen_by, spec.frozen_at)
    return sql, values


def insert_project(name: str) -> Statement:
    """Make a project; making it again changes nothing."""
    sql = "INSERT INTO projects VALUES (?, ?) ON CONFLICT DO NOTHING"
    return sql, (name, time.time_ns())
