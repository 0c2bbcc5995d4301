"""Signed checkpoints, told to an address outside: what is there cannot be taken back here.

Every checkpoint is sent at least once, in order, behind the log; no call waits for it. How far this
has got is kept in the database, so that a gap is told wherever it is looked at.
"""

from __future__ import annotations

import hmac
import logging
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import orjson

from openfang.audit.chain import Checkpoint
from openfang.audit.notary import checkpoint_body
from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.storage.chains import own_chain
from openfang.storage.log import checkpoints_after, unanchored
from openfang.storage.state import Settings, cursor, put_setting
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.config.node import Anchor
    from openfang.storage.ports import Reader
    from openfang.storage.units import Head

_log = logging.getLogger("openfang.audit")
_POLL_SECONDS: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 2.0
_AT_ONCE: Final = 100
_MOST_READ: Final = 4096
_OK: Final = range(200, 300)
SIGNATURE: Final = "X-OpenFang-Signature"


@dataclass(frozen=True, slots=True)
class Anchoring:
    """How far the checkpoints of a node have got: the last one out, those that wait, since when."""

    host: str
    last: int
    waiting: int
    since: int | None

    def as_json(self) -> dict[str, Any]:
        """Say it to who asks how the node is."""
        return {
            "host": self.host,
            "anchored": self.last,
            "waiting": self.waiting,
            "since": None if self.since is None else moment(self.since),
        }


async def anchoring(database: Reader, node: str, section: Anchor | None) -> Anchoring | None:
    """Look how far it has got, if checkpoints are to be anchored at all."""
    if section is None:
        return None
    last = await _last(database, section, own_chain(database, node))
    waiting, since = await unanchored(database, node, last)
    return Anchoring(urlsplit(section.url).hostname or "", last, waiting, since)


async def audit_body(database: Reader, node: str, head: Head, config: Config) -> dict[str, Any]:
    """Say of the log how long it is, what ends it, and what of it is not yet anchored."""
    found = await anchoring(database, node, config.audit.anchor)
    told = {} if found is None else {"anchor": found.as_json()}
    return {"records": head.seq, "hash": head.hash.hex(), **told}


async def _last(database: Reader, section: Anchor, chain: str) -> int:
    return int(await Settings(database).get(_place(section, chain)) or 0)


def _place(section: Anchor, chain: str) -> str:
    """The setting that keeps how far it has got; an address may hold what is secret."""
    return cursor(f"anchor:{sha256(section.url.encode()).hexdigest()[:16]}", chain)


@dataclass(slots=True)
class Anchors:
    """Sends the checkpoints of this node to the address of the configuration.

    And those that a node which is gone has left behind.
    """

    parts: Parts
    _failed: bool = False

    async def run(self) -> None:
        """Send them as they come, until cancelled; what cannot be sent now is tried again."""
        section, pause = self.parts.config.audit.anchor, _POLL_SECONDS
        while section is not None:
            sent = await self._tried(section)
            pause = _POLL_SECONDS if sent else min(pause * 2, _LONGEST_PAUSE)
            await anyio.sleep(pause)

    async def close(self) -> None:
        """Send what is left, within a deadline; the rest waits for the next start."""
        section = self.parts.config.audit.anchor
        if section is not None and not self._failed:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._tried(section)

    async def _tried(self, section: Anchor) -> bool:
        try:
            for chain in await self.parts.sinks.heirs.chains():
                while points := await self._next(section, chain):
                    await self._send(section, points, chain)
        except OpenFangError as error:
            if not self._failed:
                _log.warning("Checkpoints are not anchored: %s", error.message)
            self._failed = True
            return False
        self._failed = False
        return True

    async def _next(self, section: Anchor, chain: str) -> list[Checkpoint]:
        database = self.parts.database
        after = await _last(database, section, chain)
        node = chain or self.parts.writer.node
        found = await checkpoints_after(database, node, after, _AT_ONCE)
        return [
            Checkpoint(node=node, seq=seq, at=at, hash=head, signer=signer, signature=signature)
            for node, seq, at, head, signer, signature in found
        ]

    async def _send(self, section: Anchor, points: Sequence[Checkpoint], chain: str) -> None:
        from openfang.host.http import HttpClient, Request  # noqa: PLC0415 - aiohttp takes 0.4 s

        body = b"".join(orjson.dumps(checkpoint_body(point)) + b"\n" for point in points)
        request = Request(
            url=section.url,
            allow_hosts=("*",),
            method="POST",
            headers={"Content-Type": "application/x-ndjson", **_signed(section, body)},
            body=body,
            limit=_MOST_READ,
            timeout=_SECONDS,
            allow_private=section.allow_private,
            follow=False,
        )
        async with HttpClient() as http:
            answer = await http.fetch(request)
        if answer.status not in _OK:
            host = urlsplit(section.url).hostname
            raise SourceFailed(f"{host} answered with {answer.status}.")
        moved = put_setting(_place(section, chain), str(points[-1].seq))
        await self.parts.writer.write(Unit(statements=(moved,)))


def _signed(section: Anchor, body: bytes) -> dict[str, str]:
    """Let the receiver tell ours from others', if it shares a secret with us."""
    if section.secret is None:
        return {}
    key = section.secret.get_secret_value().encode()
    return {SIGNATURE: f"sha256={hmac.digest(key, body, 'sha256').hex()}"}
