"""Keys and admin tokens: random, shown once, kept as HMAC-SHA256 under the node's key."""

from __future__ import annotations

import hmac
import secrets
import time
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.calls import Grants, Mode, Role
from openfang.core.keys import AdminToken, Key
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.storage.ports import Reader

KEY_PREFIX = "of_"
TOKEN_PREFIX = "oft_"  # noqa: S105 - a prefix
_COLUMNS = "id, name, kind, body, created_at, expires_at, revoked_at"


def new_secret(prefix: str) -> str:
    """Make a credential with 256 bits of chance."""
    return prefix + secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Look keys up by their digest; the secret itself is nowhere."""

    database: Reader
    pepper: bytes
    now: Callable[[], int] = time.time_ns

    def digest(self, secret: str) -> bytes:
        """Return what is stored in place of a secret."""
        return hmac.digest(self.pepper, secret.encode(errors="surrogatepass"), "sha256")

    def insert_key(self, key: Key, secret: str) -> tuple[str, Sequence[Any]]:
        """Return the statement that stores a key."""
        body = orjson.dumps(_key_body(key)).decode()
        return _INSERT, (
            key.id,
            key.name,
            "key",
            self.digest(secret),
            body,
            key.created_at,
            key.expires_at,
        )

    def insert_token(self, token: AdminToken, secret: str) -> tuple[str, Sequence[Any]]:
        """Return the statement that stores an admin token."""
        body = orjson.dumps({"tools": token.tools}).decode()
        return _INSERT, (
            token.id,
            token.name,
            "admin_token",
            self.digest(secret),
            body,
            token.created_at,
            token.expires_at,
        )

    async def find_key(self, secret: str) -> Key | None:
        """Return the key with this secret, if it is in force now."""
        row = await self._in_force("key", secret)
        return _key(row) if row else None

    async def digests(self) -> frozenset[bytes]:
        """Return the digests of all keys that are in force now."""
        sql = f"SELECT digest FROM keys WHERE {_IN_FORCE}"  # noqa: S608 - constants
        return frozenset(row[0] for row in await self.database.read(sql, (self.now(),)))

    async def in_force(self, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of these digests whose keys are in force now."""
        found: set[bytes] = set()
        for first in range(0, len(digests), _AT_A_TIME):
            some = digests[first : first + _AT_A_TIME]
            # Always as many marks: the statement is then one that the database knows.
            more = [some[-1]] * (_AT_A_TIME - len(some))
            rows = await self.database.read(_STILL, (self.now(), *some, *more))
            found.update(row[0] for row in rows)
        return frozenset(found)

    async def ended(self, name: str) -> bool:
        """Whether there was a key of this name, and it is not in force any more."""
        sql = "SELECT revoked_at, expires_at FROM keys WHERE name = ? AND kind = 'key'"
        rows, now = await self.database.read(sql, (name,)), self.now()
        return bool(rows) and not any(
            revoked is None and (expires is None or expires > now) for revoked, expires in rows
        )

    async def budget(self, name: str) -> float | None:
        """What may be spent on models in a day for the key of this name."""
        sql = (
            "SELECT CAST(json_extract(body, '$.budget_usd_per_day') AS DOUBLE PRECISION) FROM keys "
            "WHERE name = ? AND kind = 'key' AND revoked_at IS NULL"
        )
        rows = await self.database.read(sql, (name,))
        return min((one for (one,) in rows if one), default=None)

    async def find_token(self, secret: str) -> AdminToken | None:
        """Return the admin token with this secret, if it is in force now."""
        row = await self._in_force("admin_token", secret)
        return _token(row) if row else None

    async def _in_force(self, kind: str, secret: str) -> tuple[Any, ...] | None:
        sql = f"SELECT {_COLUMNS} FROM keys WHERE digest = ? AND kind = ?"  # noqa: S608 - constants
        rows = await self.database.read(sql, (self.digest(secret), kind))
        if not rows or rows[0][6] is not None:
            return None
        expires_at = rows[0][5]
        return None if expires_at is not None and expires_at <= self.now() else rows[0]

    async def all(self) -> list[Key | AdminToken]:
        """List everything that was ever created, oldest first."""
        sql = f"SELECT {_COLUMNS} FROM keys ORDER BY created_at, id"  # noqa: S608 - constants
        rows = await self.database.read(sql)
        return [_key(row) if row[2] == "key" else _token(row) for row in rows]


_AT_A_TIME = 50
_IN_FORCE = "kind = 'key' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
_STILL = (
    f"SELECT digest FROM keys WHERE {_IN_FORCE} "  # noqa: S608 - constants
    f"AND digest IN ({', '.join('?' * _AT_A_TIME)})"
)
_INSERT = (
    "INSERT INTO keys (id, name, kind, digest, body, created_at, expires_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)


_LASTING_ADMIN = (
    "other.kind = 'key' AND json_extract(other.body, '$.role') = 'admin' "
    "AND other.revoked_at IS NULL AND other.expires_at IS NULL"
)


def revoke(identity: str, at: int) -> tuple[str, Sequence[Any]]:
    """Return the statement that ends a key or token.

    If it has ended already, or no other administrator's key lasts, the name turns NULL, and the
    unit fails: whoever looks first and acts then can be overtaken.
    """
    left = f"EXISTS (SELECT 1 FROM keys AS other WHERE other.id <> keys.id AND {_LASTING_ADMIN})"  # noqa: S608 - constants
    manages = "kind = 'key' AND json_extract(body, '$.role') = 'admin'"
    sql = (
        "UPDATE keys SET revoked_at = ?, "  # noqa: S608 - constants
        f"name = CASE WHEN revoked_at IS NULL AND (NOT ({manages}) OR {left}) THEN name END "
        "WHERE id = ?"
    )
    return sql, (at, identity)


def _key_body(key: Key) -> dict[str, Any]:
    grants = key.grants
    return {
        "role": key.role.value,
        "edges": key.edges,
        "toolsets": key.toolsets,
        "agents": key.agents,
        "tools": grants.tools,
        "network": grants.network,
        "shell": grants.shell,
        "memory_read": grants.memory_read,
        "memory_write": grants.memory_write,
        "mode": key.mode.value,
        "projects": key.projects,
        "spec": key.spec,
        "blacklist": sorted(key.blacklist),
        "cells_per_minute": key.cells_per_minute,
        "budget_usd_per_day": key.budget_usd_per_day,
    }


def _key(row: tuple[Any, ...]) -> Key:
    body = orjson.loads(row[3])
    grants = Grants(
        tools=tuple(body["tools"]),
        network=tuple(body["network"]),
        shell=tuple(body["shell"]),
        memory_read=tuple(body["memory_read"]),
        memory_write=tuple(body["memory_write"]),
    )
    return Key(
        id=row[0],
        name=row[1],
        role=Role(body["role"]),
        edges=tuple(body["edges"]),
        # Keys that were made before there were such bounds have none.
        toolsets=tuple(body.get("toolsets", ("*",))),
        agents=tuple(body.get("agents", ("*",))),
        grants=grants,
        mode=Mode(body["mode"]),
        projects=tuple(body["projects"]),
        spec=body["spec"],
        blacklist=frozenset(body["blacklist"]),
        cells_per_minute=body["cells_per_minute"],
        budget_usd_per_day=body.get("budget_usd_per_day"),
        created_at=row[4],
        expires_at=row[5],
        revoked_at=row[6],
    )


def _token(row: tuple[Any, ...]) -> AdminToken:
    return AdminToken(
        id=row[0],
        name=row[1],
        tools=tuple(orjson.loads(row[3])["tools"]),
        created_at=row[4],
        expires_at=row[5],
        revoked_at=row[6],
    )
