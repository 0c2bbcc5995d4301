"""An open home: what runs beside the calls, and what is put in order at both ends."""

from __future__ import annotations

import gc
import logging
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from openfang.app.a2a.peers import Peers
from openfang.app.agents.later import Later
from openfang.app.anchor import Anchors
from openfang.app.build import build
from openfang.app.cluster.durable.later import LaterQueues
from openfang.app.endings import end_interrupted
from openfang.app.extensions.house import Extensions
from openfang.app.installs.house import Installs
from openfang.app.servers.running import Servers
from openfang.audit import notary
from openfang.audit.notary import Notary
from openfang.core.errors import AuditUnavailable, OpenFangError
from openfang.core.values import dataclass
from openfang.storage.agent_runs import AgentRunStore, drop_left
from openfang.storage.log import head_of
from openfang.storage.state import (
    DAY_NS,
    RUNS_KEPT_NS,
    Statement,
    drop_expired_blobs,
    drop_old_runs,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

    from openfang.app.cluster.fresh import Fresh
    from openfang.app.cluster.members import Members
    from openfang.app.home.paths import Home
    from openfang.app.parts import Parts
    from openfang.audit.chain import Checkpoint
    from openfang.core.ports import Clock
    from openfang.storage.units import Head

_log = logging.getLogger("openfang.audit")
_BETWEEN_TRIES = 1.0


@asynccontextmanager
async def open_app(
    home: Home, environ: Mapping[str, str], *, clock: Clock | None = None
) -> AsyncGenerator[Parts]:
    """Open a home for calls: end what a dead process left open, sign and pass on what happens."""
    parts = await build(home, environ, clock=clock)
    parts.backlog.serving = True
    gc.freeze()  # what is here now stays: looking through it would stop the loop for 30 ms
    try:
        await end_interrupted(parts)
        seal = _Seal(parts, parts.writer.head.seq)
        parts.servers = Servers(parts, environ)
        parts.agents = Later(parts, environ)
        parts.peers = Peers(parts, environ)
        parts.extensions = Extensions(parts, environ)
        parts.installs = Installs(parts)
        parts.members = _members_of(parts)
        if parts.members is not None:
            parts.members.on_gone(seal.inherit)
            parts.members.on_back(parts.sinks.heirs.back)
        parts.queues = LaterQueues(parts)
        anchors = Anchors(parts)
        try:
            running = (parts.sinks.run, parts.servers.run, parts.agents.run, parts.issuer.run)
            watches = (seal.watch, parts.tasks.run, parts.peers.run, parts.approvals.waits.watch)
            added = (parts.extensions.run, parts.installs.run, parts.queues.run)
            beats = (parts.members.run, _fresh(parts).run) if parts.members else ()
            async with beside(anchors.run, *watches, *running, *added, *beats):
                try:
                    yield parts
                finally:
                    parts.ending = True
        finally:
            with anyio.CancelScope(shield=True):
                with suppress(AuditUnavailable):
                    await parts.broker.settle()
                if parts.members is not None:
                    await parts.members.leave()
                await seal.close()
                await anchors.close()
                await parts.sinks.close()
    finally:
        with anyio.CancelScope(shield=True):
            await parts.aclose()


def _members_of(parts: Parts) -> Members | None:
    if parts.database.dialect == "sqlite":
        return None
    from openfang.app.cluster.members import open_members  # noqa: PLC0415 - start-up time

    return open_members(parts)


def _fresh(parts: Parts) -> Fresh:
    from openfang.app.cluster.fresh import Fresh  # noqa: PLC0415 - start-up time

    return Fresh(parts)


@asynccontextmanager
async def beside(*watches: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Keep these running; an error of the body comes out as it is, not inside a group."""
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            for watch in watches:
                group.start_soon(watch)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        failure, *others = errors.exceptions
        if others:
            raise
    if failure is not None:
        raise failure


def _sign(parts: Parts, node: str, head: Head, now: int) -> Checkpoint:
    # The key is made where it is used: most commands sign nothing.
    signing = Notary(
        node=node,
        key=parts.master.signing_key(),
        file=Path(parts.config.audit.checkpoint_file),
    )
    return signing.sign(head, now)


async def sign_head(parts: Parts) -> None:
    """Sign the log as it is now; the library for it is loaded, and no call waits for that later."""
    seal = _Seal(parts, signed=-1)
    await seal.sign()


@dataclass(slots=True)
class _Seal:
    """Signs the head of the chain now and then, and at the end."""

    parts: Parts
    signed: int
    looked: int = 0

    async def watch(self) -> None:
        """Sign after so many records, or so many seconds with any."""
        audit = self.parts.config.audit
        due = anyio.Event()

        def committed(head: Head) -> None:
            if head.seq - self.signed >= audit.checkpoint_every:
                due.set()

        self.parts.writer.on_commit = committed
        while True:
            with anyio.move_on_after(audit.checkpoint_seconds):
                await due.wait()
            due = anyio.Event()
            if not await self.sign():
                await anyio.sleep(min(audit.checkpoint_seconds, _BETWEEN_TRIES))

    async def sign(self) -> bool:
        """Sign the head if it moved. What cannot be kept now (a full disk) is signed later."""
        try:
            await self._sign()
        except (OSError, OpenFangError) as error:
            _log.error("No checkpoint could be kept: %s", error)
            return False
        return True

    async def _sign(self) -> None:
        head = self.parts.writer.head
        if head.seq == self.signed:
            return
        now = self.parts.clock.time_ns()
        point = await to_thread.run_sync(_sign, self.parts, self.parts.writer.node, head, now)
        process = self.parts.broker.process
        statements = [notary.statement(point), drop_expired_blobs(now), *await self._old_runs(now)]
        if process.known:
            statements.append(process.progress(self.parts.broker.low_water))
        await self.parts.broker.append((), tuple(statements))
        self.signed = head.seq

    async def inherit(self, node: str) -> None:
        """Sign where the chain of a node ends that is gone, and pass on what it has not."""
        await self.parts.sinks.heirs.inherit(node)
        head = await head_of(self.parts.database, node)
        if head.seq:
            now = self.parts.clock.time_ns()
            point = await to_thread.run_sync(_sign, self.parts, node, head, now)
            await self.parts.broker.append((), (notary.statement(point),))

    async def _old_runs(self, now: int) -> tuple[Statement, ...]:
        """Forget those that nobody goes on with; to find them is to look at all, once a day."""
        if now < self.looked + DAY_NS:
            return ()
        self.looked = now
        needed = [run.id for run in await AgentRunStore(self.parts.database).under_way()]
        return drop_old_runs(now - RUNS_KEPT_NS, needed), drop_left(now - DAY_NS)

    async def close(self) -> None:
        """Sign what is left, and say that every call of ours has ended."""
        signed = await self.sign()
        process = self.parts.broker.process
        # A call without its ending is left to the next start, which ends it as interrupted.
        if signed and process.known and not self.parts.broker.unfinished:
            with suppress(AuditUnavailable):
                await self.parts.broker.append((), (process.end(),))
