"""What an administrator does to the node: keys, tokens, specs, pins. All on record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.app.definitions import Definitions
from openfang.core.errors import Conflict, NotFound, OpenFangError
from openfang.core.events import KEY_CREATED, KEY_REVOKED, SPEC_FROZEN, Record
from openfang.core.ids import new_id
from openfang.core.keys import AdminToken, Key, Spec
from openfang.core.values import dataclass
from openfang.storage.approvals import end_all
from openfang.storage.keys import KEY_PREFIX, TOKEN_PREFIX, new_secret, revoke
from openfang.storage.specs import insert_project, insert_spec, spec_hash
from openfang.storage.units import APPROVALS, KEYS, Notice

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.audit.broker import Statements
    from openfang.core.calls import Caller
    from openfang.core.tools import Tool

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Admin:
    """Acts for one caller. Whoever makes it has seen to it that the caller may."""

    parts: Parts
    caller: Caller

    async def create_key(self, key: Key, *, ttl: float | None = None) -> tuple[Key, str]:
        """Make a key; its secret is returned once and kept nowhere."""
        await self._check_name(key.name)
        await self._check_unused(key.name)
        await self._check_spec(key.spec)
        self._check_limit(key.cells_per_minute)
        secret = new_secret(KEY_PREFIX)
        key = replace(key, id=new_id("key"), created_at=self._now(), expires_at=self._expiry(ttl))
        record = self._record(KEY_CREATED, key=key.id, name=key.name, role=key.role.value)
        projects = tuple(insert_project(project) for project in key.projects)
        insert = self.parts.keys.insert_key(key, secret)
        await self._insert(key.name, record, (*projects, insert))
        return key, secret

    async def create_token(self, token: AdminToken, *, ttl: float | None) -> tuple[AdminToken, str]:
        """Make an admin token, for gate 6."""
        await self._check_name(token.name)
        secret = new_secret(TOKEN_PREFIX)
        token = replace(
            token, id=new_id("token"), created_at=self._now(), expires_at=self._expiry(ttl)
        )
        record = self._record(KEY_CREATED, key=token.id, name=token.name, tools=token.tools)
        await self._insert(token.name, record, (self.parts.keys.insert_token(token, secret),))
        return token, secret

    async def _insert(self, name: str, record: Record, statements: Statements) -> None:
        """Store it, unless somebody else took the name a moment ago."""
        try:
            await self.parts.broker.append([record], statements, (KEYS,))
        except Conflict:
            raise _taken(name) from None

    async def revoke_key(self, name: str) -> Key | AdminToken:
        """End a key or token, by name or id."""
        found = next((key for key in await self._in_force() if name in {key.id, key.name}), None)
        if found is None:
            raise _unknown(name)
        record = self._record(KEY_REVOKED, key=found.id, name=found.name)
        now = self._now()
        # A later key of the same name must not inherit what this one was allowed.
        ended = end_all(f"key:{found.name}", now)
        try:
            told = (KEYS, Notice(APPROVALS))
            await self.parts.broker.append([record], (revoke(found.id, now), ended), told)
        except Conflict:
            raise await self._not_ended(found) from None
        self.parts.callers.end(found.id)
        return replace(found, revoked_at=now)

    async def keys(self) -> list[Key | AdminToken]:
        """List all keys and tokens."""
        return await self.parts.keys.all()

    async def _in_force(self) -> list[Key | AdminToken]:
        return [key for key in await self.keys() if key.revoked_at is None]

    async def _not_ended(self, key: Key | AdminToken) -> OpenFangError:
        """Say why: another was faster, or nobody would be left who can manage the node."""
        if all(one.id != key.id for one in await self._in_force()):
            return _unknown(key.name)
        return Conflict(
            f"{key.name} is the last administrator's key that does not expire.",
            way_out="first: openfang keys create NAME --admin",
        )

    async def _check_name(self, name: str) -> None:
        if name == "config" or any(key.name == name for key in await self._in_force()):
            raise _taken(name)

    async def _check_unused(self, name: str) -> None:
        """Refuse a name that a key ever had: its sessions, memory and files are kept by name."""
        if any(isinstance(key, Key) and key.name == name for key in await self.keys()):
            raise Conflict(
                f"A key named {name} was revoked; what is kept by its name is not handed on.",
                way_out="choose another name",
            )

    async def _check_spec(self, spec: str | None) -> None:
        if spec is not None and all(known.hash != spec for known in await self.parts.specs.all()):
            raise NotFound(f"No spec {spec} is frozen.", way_out="openfang spec freeze FILE")

    def _check_limit(self, cells: int | None) -> None:
        cost = self.parts.config.limits.costs.call
        if cells is not None and cells < cost:
            raise Conflict(
                f"With {cells} cells a minute it could never call: one call costs {cost}.",
                way_out=f"a limit of at least {cost}, or lower limits.costs.call",
            )

    async def freeze_spec(self, name: str, content: bytes, project: str) -> Spec:
        """Freeze a plan; freezing the same content again changes nothing."""
        digest = spec_hash(content)
        known = next((spec for spec in await self.parts.specs.all() if spec.hash == digest), None)
        if known is not None and known.project != project:
            raise Conflict(
                f"The same content is frozen already, for the project {known.project}.",
                way_out=f"call with --project {known.project} --spec {digest}",
            )
        if known is not None:
            return known
        spec = Spec(
            hash=digest,
            project=project,
            name=name,
            frozen_by=self.caller.id,
            frozen_at=self._now(),
        )
        record = self._record(SPEC_FROZEN, spec=digest, project=project, name=name)
        statements = (insert_project(project), insert_spec(spec, content))
        await self.parts.broker.append([record], statements)
        return spec

    async def accept_tool(self, name: str) -> Tool:
        """Take a tool that is held back as it is now."""
        tool = self.parts.catalog.find(self.caller, name)
        await Definitions(self.parts, self.caller).accept(tool.id)
        return self.parts.catalog.find(self.caller, tool.id)

    def _now(self) -> int:
        return self.parts.clock.time_ns()

    def _expiry(self, ttl: float | None) -> int | None:
        return None if ttl is None else self._now() + int(ttl * _SECOND)

    def _record(self, event: str, **payload: object) -> Record:
        return Record(event=event, payload=payload, context={"caller": self.caller.id})


def _taken(name: str) -> Conflict:
    return Conflict(f"A key named {name} exists already.", way_out=f"openfang keys revoke {name}")


def _unknown(name: str) -> NotFound:
    return NotFound(f"No key {name} is in force.", way_out="openfang keys list")
