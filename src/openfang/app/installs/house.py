"""What is installed and enabled, kept in force: at the start, and whenever something changes."""

from __future__ import annotations

import logging
from dataclasses import field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from openfang.core.errors import NotFound, OpenFangError
from openfang.core.events import INSTALL_HELD, Record
from openfang.core.installs import FOLDERS
from openfang.core.values import dataclass
from openfang.host.folders import all_files_of, digest_of
from openfang.registry.pins import said_of
from openfang.storage.installs import InstallStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from openfang.app.installs.reviews import Sort
    from openfang.app.parts import Parts
    from openfang.core.installs import InstallKind
    from openfang.core.tools import Tool
    from openfang.storage.installs import Install

_log = logging.getLogger("openfang.installs")
CHANGED = "Its files are not those that were accepted."
NOT_HERE = "Its files are not on this node: install it here, too."


@dataclass(slots=True)
class Installs:
    """Puts in force what was accepted and is still that; `held` says of the rest why not."""

    parts: Parts
    held: dict[str, str] = field(default_factory=dict[str, str])
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _opened: anyio.Event = field(default_factory=anyio.Event)
    _known: dict[str, Install] = field(default_factory=dict["str", "Install"])
    _sorts: dict[InstallKind, Sort] = field(default_factory=dict["InstallKind", "Sort"])

    @property
    def store(self) -> InstallStore:
        """What the database knows."""
        return InstallStore(self.parts.database)

    def sort(self, kind: InstallKind) -> Sort:
        """Find one sort; most homes have nothing of it, and need not load how it is read."""
        if kind not in self._sorts:
            self._sorts[kind] = self._made(kind)
        return self._sorts[kind]

    def _made(self, kind: InstallKind) -> Sort:
        from openfang.app.installs.extensions import ExtensionSort  # noqa: PLC0415 - see `sort`
        from openfang.app.skills.sort import Skills  # noqa: PLC0415 - as above

        if kind == "skill":
            return Skills(self.parts)
        if self.parts.extensions is None:
            raise NotFound(f"There are no {kind}s here.")
        return ExtensionSort(self.parts, self.parts.extensions)

    def place(self, sort: Sort, id_: str) -> Path:
        """Say where an install lies."""
        return self.parts.home.path / FOLDERS[sort.kind] / id_

    async def run(self) -> None:
        """Put everything in force that is enabled, once somebody needs it."""
        await self._wanted.wait()
        async with self.parts.changing:
            await self.apply()
        self._opened.set()

    def want(self) -> None:
        """Begin, in the background: many commands need nothing of it."""
        self._wanted.set()

    async def settled(self) -> None:
        """Begin, and wait until all that is enabled is in force."""
        self.want()
        await self._opened.wait()

    async def look_again(self) -> None:
        """See what another node has enabled, disabled or removed, if anything is in force here."""
        if not self._opened.is_set():
            return
        async with self.parts.changing:
            before = self._known
            for install in await self._read():
                if install != before.get(install.id):
                    await self.refresh(install)

    async def apply(self) -> None:
        """Look at everything again: files and configuration may have changed."""
        for install in await self._read():
            await self.refresh(install)

    async def _read(self) -> list[Install]:
        """Read what there is, and let go of what there is no longer."""
        found = await self.store.all()
        before, self._known = self._known, {one.id: one for one in found}
        for id_ in before.keys() - self._known.keys():
            await self.gone(before[id_])
        return found

    async def refresh(self, install: Install, shown: Iterable[Tool] = ()) -> None:
        """Put one in force or take it out, as it stands; of `shown` tools nobody is asked again."""
        sort = self.sort(install.kind)
        before = self.held.pop(install.id, "")
        if not install.enabled:
            await sort.drop(install.id)
            return
        try:
            digest = await to_thread.run_sync(self._digest, sort, install.id)
            if digest != install.accepted:
                await self._hold(install, CHANGED if digest else NOT_HERE, before)
                return
            await sort.put(install, self.place(sort, install.id))
        except (OpenFangError, OSError) as error:
            await self._hold(install, str(error), before)
            return
        self._accept(shown)

    async def gone(self, install: Install) -> None:
        """Take one out that is deleted."""
        self.held.pop(install.id, None)
        await self.sort(install.kind).drop(install.id)

    def _digest(self, sort: Sort, id_: str) -> str:
        place = self.place(sort, id_)
        return digest_of(all_files_of(place)) if place.is_dir() else ""

    async def _hold(self, install: Install, reason: str, before: str) -> None:
        self.held[install.id] = reason
        await self.sort(install.kind).drop(install.id)
        if reason == before:
            return
        _log.warning("%s %s is held back: %s", install.kind, install.id, reason)
        payload = {"kind": install.kind, "install": install.id, "reason": reason}
        record = Record(event=INSTALL_HELD, level="warning", payload=payload, context={})
        await self.parts.broker.append([record])

    def _accept(self, shown: Iterable[Tool]) -> None:
        """Pin what a person has just accepted with the files: nobody is asked twice."""
        registry = self.parts.registry
        for tool in shown:
            held = registry.snapshot.held.get(tool.id)
            if held is not None and held.digest == said_of(tool).digest:
                registry.accept(tool.id)
