"""What an administrator does to extensions and skills. All on record; nothing of them runs here.

What comes in is copied, looked at and off. To enable it is to accept it as it was shown: by its
digest. Who installs another version beside one that is on leaves that one on until then.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from secrets import token_hex
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, to_thread

from openfang.app.installs.looking import findings_of
from openfang.app.installs.reviews import Review
from openfang.core.errors import Conflict, HomeError, NotFound, OpenFangError
from openfang.core.events import INSTALL_CHANGED, Record
from openfang.core.ids import Kind
from openfang.core.installs import COMMANDS, FOLDERS, WAITING
from openfang.core.values import dataclass
from openfang.host.folders import all_files_of, copy_folder, digest_of
from openfang.host.parcels import unpack
from openfang.host.replace import replace_folder, sync_below
from openfang.registry.board import Scanning
from openfang.registry.pins import finding_bodies
from openfang.safety.definitions import Neighbours
from openfang.storage.installs import Install, forget, keep
from openfang.storage.units import INSTALLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.app.installs.house import Installs
    from openfang.app.installs.reviews import Sort
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.installs import InstallKind
    from openfang.storage.installs import Statement


@dataclass(frozen=True, slots=True)
class Door:
    """Acts for one caller. Whoever makes it has seen to it that the caller may."""

    parts: Parts
    caller: Caller

    async def install(
        self, kind: InstallKind, parcel: bytes, origin: str, *, preview: bool = False
    ) -> Review:
        """Take an archive in, off; with `preview`, only say what would be taken in.

        Beside one of the same id that was accepted before it waits until it is accepted, too.
        """
        async with self.parts.changing:
            return await self._install(self._house.sort(kind), parcel, origin, preview=preview)

    async def _install(self, sort: Sort, parcel: bytes, origin: str, *, preview: bool) -> Review:
        root = self.parts.home.path / FOLDERS[sort.kind]
        near = self._near()
        async with _staging(root) as stage:
            read = await to_thread.run_sync(self._staged, sort, stage, parcel, origin, near)
            review = await self._with_accepted(read)
            await self._check_free(sort, review.id)
            if not preview:
                await self._kept(sort, stage / "copy", review)
        return review

    def _staged(self, sort: Sort, stage: Path, parcel: bytes, origin: str, near: _Near) -> Review:
        (stage / "raw").mkdir(mode=0o700, parents=True)
        (stage / "copy").mkdir(mode=0o700)
        copy_folder(unpack(parcel, stage / "raw"), stage / "copy")
        return self._looked(sort, stage / "copy", origin, near)

    def _looked(self, sort: Sort, folder: Path, origin: str, near: _Near) -> Review:
        described = sort.read(folder)
        files = all_files_of(folder)
        found = ()
        if self._scanning is not Scanning.OFF:
            found = findings_of(described, folder, files, near.but(described.id), near.builtins)
        return Review(
            kind=sort.kind,
            described=described,
            files=files,
            digest=digest_of(files),
            origin=origin,
            findings=found,
            lenient=self._scanning is not Scanning.HOLD,
        )

    async def _with_accepted(self, review: Review) -> Review:
        """Hold what was read against what was accepted last, if anything was."""
        known = await self._house.store.get(review.id)
        return replace(review, accepted=known.review) if known else review

    @property
    def _scanning(self) -> Scanning:
        return Scanning(self.parts.config.definitions.scan)

    def _near(self) -> _Near:
        tools = self.parts.registry.snapshot.tools.values()
        return _Near(
            tuple((tool.source, name) for tool in tools for name in (tool.name, tool.wire_name)),
            frozenset(tool.name for tool in tools if tool.kind is Kind.BUILTIN),
        )

    async def _check_free(self, sort: Sort, id_: str) -> None:
        known = await self._house.store.get(id_)
        if known is not None and known.kind != sort.kind:
            raise Conflict(
                f"{id_} is the name of an installed {known.kind}.",
                way_out="choose another name, or remove that one",
            )

    async def _kept(self, sort: Sort, copy: Path, review: Review) -> None:
        """Put the copy where it belongs. What was accepted stays in its place until then."""
        known = await self._house.store.get(review.id)
        waits = known is not None and bool(known.accepted) and known.accepted != review.digest
        install = known if known is not None and waits else self._row(review, known)
        place = self._house.place(sort, review.id)
        target = self._waiting(sort, review.id) if waits else place
        await self._on_record("install", review, (keep(install),))
        await to_thread.run_sync(_placed, copy, target)
        if not waits:
            await to_thread.run_sync(_removed, self._waiting(sort, review.id))
            await self._house.refresh(install)

    def _row(self, review: Review, known: Install | None) -> Install:
        row = Install(
            id=review.id,
            kind=review.kind,
            version=review.described.version,
            digest=review.digest,
            origin=review.origin,
            installed_at=self.parts.clock.time_ns(),
            installed_by=self.caller.id,
            findings=tuple(finding_bodies(review.findings)),
        )
        if known is None:
            return row
        names = ("enabled", "accepted", "accepted_at", "accepted_by", "review")
        return replace(row, **{name: getattr(known, name) for name in names})

    async def review(self, id_: str) -> Review:
        """Look at what would be accepted now: what waits, else what lies in its place."""
        install = await self.found(id_)
        sort = self._house.sort(install.kind)
        read = await to_thread.run_sync(self._again, sort, install, self._near())
        return await self._with_accepted(read)

    def _again(self, sort: Sort, install: Install, near: _Near) -> Review:
        waiting, place = self._waiting(sort, install.id), self._house.place(sort, install.id)
        return self._looked(sort, waiting if waiting.is_dir() else place, install.origin, near)

    async def tried(self, id_: str) -> Review | None:
        """Look at it, if it can be read."""
        try:
            return await self.review(id_)
        except OpenFangError:
            return None

    async def found(self, id_: str, kind: InstallKind | None = None) -> Install:
        """Find one, of this kind."""
        install = await self._house.store.get(id_)
        if install is None or kind not in {None, install.kind}:
            word = kind or "extension or skill"
            command = COMMANDS[kind] if kind else "ext"
            raise NotFound(f"No {word} {id_} is installed.", way_out=f"openfang {command} list")
        return install

    async def enable(self, id_: str, digest: str, *, accept_findings: bool = False) -> Review:
        """Accept it as it was shown, and put it in force."""
        async with self.parts.changing:
            review = await self._enable(id_, digest, accept_findings=accept_findings)
        await self._house.sort(review.kind).settled(id_)
        return review

    async def _enable(self, id_: str, digest: str, *, accept_findings: bool) -> Review:
        install, review = await self.found(id_), await self.review(id_)
        sort = self._house.sort(install.kind)
        self._check_shown(sort, review, digest)
        if review.grave and not accept_findings:
            raise Conflict(
                f"{id_} needs more than a plain yes: {'; '.join(review.grave[:5])}.",
                way_out=f"openfang {COMMANDS[sort.kind]} enable {id_} --accept-findings",
            )
        accepted = replace(
            self._row(review, install),
            enabled=True,
            accepted=review.digest,
            accepted_at=self.parts.clock.time_ns(),
            accepted_by=self.caller.id,
            review=review.body(),
            installed_at=install.installed_at,
            installed_by=install.installed_by,
        )
        await self._on_record("enable", review, (keep(accepted),))
        await to_thread.run_sync(self._promoted, sort, id_)
        await self._house.refresh(accepted, review.described.tools)
        return review

    def _check_shown(self, sort: Sort, review: Review, digest: str) -> None:
        if digest != review.digest:
            raise Conflict(
                f"{review.id} is not what was shown: its files have another digest now.",
                way_out=f"look again: openfang {COMMANDS[sort.kind]} show {review.id}",
            )

    def _promoted(self, sort: Sort, id_: str) -> None:
        waiting = self._waiting(sort, id_)
        if waiting.is_dir():
            _placed(waiting, self._house.place(sort, id_))

    async def disable(self, id_: str) -> Install:
        """Let it go; its files stay."""
        async with self.parts.changing:
            install = replace(await self.found(id_), enabled=False)
            await self._on_record("disable", install, (keep(install),))
            await self._house.refresh(install)
            return install

    async def remove(self, id_: str) -> Install:
        """Delete it, and what waits of it. What it kept in its workspace stays."""
        async with self.parts.changing:
            install = await self.found(id_)
            sort = self._house.sort(install.kind)
            await self._on_record("remove", install, (forget(id_),))
            await self._house.gone(install)
            for folder in (self._waiting(sort, id_), self._house.place(sort, id_)):
                await to_thread.run_sync(_removed, folder)
            return install

    def waits(self, install: Install) -> bool:
        """Whether another version waits beside it. It blocks for a moment."""
        return self._waiting(self._house.sort(install.kind), install.id).is_dir()

    def _waiting(self, sort: Sort, id_: str) -> Path:
        return self.parts.home.path / FOLDERS[sort.kind] / WAITING / id_

    @property
    def _house(self) -> Installs:
        installs = self.parts.installs
        if installs is None:
            raise HomeError("The home is not open.", way_out="openfang start")
        return installs

    async def _on_record(
        self, act: str, what: Review | Install, statements: tuple[Statement, ...]
    ) -> None:
        payload: dict[str, Any] = {"kind": what.kind, "install": what.id, "act": act}
        payload |= _facts(what)
        grave = isinstance(what, Review) and bool(what.grave)
        record = Record(
            event=INSTALL_CHANGED,
            level="warning" if grave else "info",
            payload=payload,
            context={"caller": self.caller.id},
        )
        await self.parts.broker.append([record], statements, (INSTALLS,))


def _facts(what: Review | Install) -> Mapping[str, Any]:
    if isinstance(what, Install):
        return {"version": what.version, "digest": what.digest}
    return {
        "version": what.described.version,
        "digest": what.digest,
        "origin": what.origin,
        "findings": finding_bodies(what.findings),
        "changes": [one.body() for one in what.changes],
    }


@dataclass(frozen=True, slots=True)
class _Near:
    """The names of all tools that are there, by source."""

    names: tuple[tuple[str, str], ...]
    builtins: frozenset[str]

    def but(self, source: str) -> Neighbours:
        """Leave out those of one source: an install does not shadow itself."""
        return Neighbours(others=[name for one, name in self.names if name and one != source])


@asynccontextmanager
async def _staging(root: Path) -> AsyncGenerator[Path]:
    stage = root / f".stage.{token_hex(8)}"
    try:
        yield stage
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_removed, stage)


def _placed(new: Path, place: Path) -> None:
    """Put a folder in its place at once, and delete what was there."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync_below(new)
    aside = place.with_name(f".{place.name}.{token_hex(8)}")
    if replace_folder(new, place, aside):
        _removed(aside)


def _removed(folder: Path) -> None:
    rmtree(folder, ignore_errors=True)
