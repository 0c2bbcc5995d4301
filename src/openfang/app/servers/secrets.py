"""The secrets that servers refer to by name: listed by name, set, removed. Values are never shown.

`${NAME}` in a server's variables or headers stands for a variable of the node's own environment,
else for the secret of that name. A change reaches the servers that refer to it at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from openfang.app.servers.sealing import referred
from openfang.core.errors import Conflict, HomeError, NotFound, Rejected
from openfang.core.events import SECRET_CHANGED, Record
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.app.servers.running import Servers
    from openfang.core.calls import Caller

_NAME = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_WAY_OUT: Final = "openfang secrets list"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Acts for one caller. Whoever makes it has seen to it that the caller may."""

    parts: Parts
    caller: Caller

    async def all(self) -> list[dict[str, Any]]:
        """List every name that is stored or missing, and which servers refer to it."""
        stored = await self._names()
        wanted = {name for one in self.parts.config.mcp_servers for name in referred(one)}
        missing = wanted.difference(self._servers.environ)
        return [self._body(name, stored) for name in sorted(stored | missing)]

    async def set(self, name: str, value: str) -> dict[str, Any]:
        """Store or replace a secret; servers that refer to it are connected with it."""
        if not _NAME.match(name):
            raise Rejected(
                f"{name!r} cannot be the name of a secret.",
                status=422,
                rule="secret_name",
                way_out="letters, digits and _, not beginning with a digit, 128 at most",
            )
        if "\0" in value:
            raise Rejected(
                "The value contains a NUL character.",
                status=422,
                rule="secret_value",
                way_out="no variable and no header can hold one: pass it without",
            )
        await self._on_record(name, "set")
        await self._servers.keep({name: value})
        self._servers.apply(self.parts.config)
        return self._body(name, {name})

    async def remove(self, name: str, *, force: bool) -> dict[str, Any]:
        """Delete a secret; one that a server refers to only if that is meant."""
        stored = await self._names()
        if name not in stored:
            raise NotFound(f"There is no secret {name}.", way_out=_WAY_OUT)
        if (users := self._users(name)) and not force:
            raise Conflict(
                f"The secret {name} is used by {', '.join(users)}.",
                way_out=f"openfang secrets remove {name} --yes",
            )
        await self._on_record(name, "remove")
        await self._servers.forget([name])
        self._servers.apply(self.parts.config)
        return self._body(name, stored - {name})

    async def _names(self) -> set[str]:
        """What is stored and can be referred to; what the node keeps for itself is named apart."""
        names = await to_thread.run_sync(self.parts.secrets.names)
        return {name for name in names if _NAME.match(name)}

    def _body(self, name: str, stored: set[str]) -> dict[str, Any]:
        return {
            "name": name,
            "stored": name in stored,
            "in_environment": name in self._servers.environ,
            "servers": self._users(name),
        }

    def _users(self, name: str) -> list[str]:
        servers = self.parts.config.mcp_servers
        return sorted(one.name for one in servers if name in referred(one))

    @property
    def _servers(self) -> Servers:
        if self.parts.servers is None:
            raise HomeError("The home is not open.", way_out="openfang start")
        return self.parts.servers

    async def _on_record(self, name: str, act: str) -> None:
        payload = {"name": name, "act": act, "servers": self._users(name)}
        context = {"caller": self.caller.id}
        await self.parts.broker.append(
            [Record(event=SECRET_CHANGED, payload=payload, context=context)]
        )
