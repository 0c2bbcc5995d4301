"""What people do with extensions and skills: look, install, enable, disable, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from openfang.app.auth.identify import require
from openfang.app.calling import Calling
from openfang.core.calls import Role
from openfang.core.values import dataclass
from openfang.core.wire import moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.installs.door import Door
    from openfang.app.installs.reviews import Review
    from openfang.app.parts import Parts
    from openfang.core.installs import InstallKind
    from openfang.storage.installs import Install


@dataclass(frozen=True, slots=True)
class Installing(Calling):
    """The installs of the node: an auditor sees them, an administrator changes them."""

    async def installs(self, kind: InstallKind) -> Sequence[Mapping[str, Any]]:
        """List what is installed, by id, and how each is."""
        await self._may(Role.AUDITOR)
        assert self.parts.installs is not None  # noqa: S101 - the home is open
        found = await self.parts.installs.store.all(kind)
        return [await self._body(one) for one in found]

    async def installed(self, kind: InstallKind, install_id: str) -> Mapping[str, Any]:
        """Show one, with all that a person decides by."""
        await self._may(Role.AUDITOR)
        return await self._reviewed(await self._door.found(install_id, kind))

    async def install(
        self, kind: InstallKind, parcel: bytes, origin: str, *, preview: bool = False
    ) -> Mapping[str, Any]:
        """Take an archive in, off; with `preview`, only say what would be taken in."""
        await self._may()
        review = await self._door.install(kind, parcel, origin, preview=preview)
        if preview:
            return {**_nowhere(kind, review), "review": review_body(review)}
        return await self._reviewed(await self._door.found(review.id), review)

    async def change_install(
        self,
        kind: InstallKind,
        install_id: str,
        act: str,
        *,
        digest: str = "",
        accept_findings: bool = False,
    ) -> Mapping[str, Any]:
        """Enable one as it was shown, by its digest; disable or remove it."""
        await self._may()
        door = self._door
        install = await door.found(install_id, kind)
        if act == "enable":
            review = await door.enable(install_id, digest, accept_findings=accept_findings)
            return await self._reviewed(await door.found(install_id), review)
        if act == "disable":
            return await self._reviewed(await door.disable(install_id))
        body = await self._body(install)
        await door.remove(install_id)
        gone = {"state": "removed", "reason": "", "enabled": False, "process": None}
        return {**body, **gone, "review": None}

    async def _may(self, *roles: Role) -> None:
        await require(self.parts, self.caller, *roles)
        if self.parts.installs is not None:
            await self.parts.installs.settled()

    @property
    def _door(self) -> Door:
        from openfang.app.installs.door import Door  # noqa: PLC0415 - few commands go through it

        return Door(self.parts, self.caller)

    async def _reviewed(self, install: Install, review: Review | None = None) -> dict[str, Any]:
        """Show one with its review; one whose folder cannot be read any more has none."""
        body = await self._body(install)
        found = review or await self._door.tried(install.id)
        return {**body, "review": review_body(found) if found else None}

    async def _body(self, install: Install) -> dict[str, Any]:
        waits = await to_thread.run_sync(self._door.waits, install)
        return install_body(self.parts, install, waits=waits)


def _nowhere(kind: InstallKind, review: Review) -> dict[str, Any]:
    return {
        "id": review.id,
        "kind": kind,
        "version": review.described.version,
        "state": "preview",
        "reason": "",
        "enabled": False,
        "waiting": False,
        "origin": review.origin,
        "installed_at": None,
        "installed_by": None,
        "accepted": None,
        "process": None,
    }


def install_body(parts: Parts, install: Install, *, waits: bool = False) -> dict[str, Any]:
    """Say how an install is: off, on, held back, or failed, and why."""
    state, reason, process = _state(parts, install)
    accepted = {
        "digest": install.accepted,
        "at": moment(install.accepted_at),
        "by": install.accepted_by,
    }
    return {
        "id": install.id,
        "kind": install.kind,
        "version": install.version,
        "state": state,
        "reason": parts.redactor.text(reason).text,
        "enabled": install.enabled,
        "waiting": waits,
        "origin": install.origin,
        "installed_at": moment(install.installed_at),
        "installed_by": install.installed_by,
        "accepted": accepted if install.accepted else None,
        "process": process,
    }


def _state(parts: Parts, install: Install) -> tuple[str, str, Mapping[str, Any] | None]:
    house = parts.installs
    if house is None or not install.enabled:
        return "off", "", None
    if install.id in house.held:
        return "held", house.held[install.id], None
    process = house.sort(install.kind).state(install.id)
    failed = process.get("how") == "failed"
    return ("failed", str(process.get("reason", "")), process) if failed else ("on", "", process)


def review_body(review: Review) -> dict[str, Any]:
    """Give all that a person decides by, and what differs from what was accepted."""
    return {**review.body(), "changes": [one.body() for one in review.changes]}
