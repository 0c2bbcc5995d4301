"""A stream of the first dialect that breaks says so where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from tests.edges.a2a.seeding import body

from openfang.app.a2a.desk import Desk
from openfang.app.a2a.house import NodeHouse
from openfang.core.errors import CallFailed
from openfang.edges.a2a.edge import A2aEdge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.edges.live import Live

    from openfang.core.calls import Caller
    from openfang.core.tasks import Seen
    from openfang.core.trace import Chain

pytestmark = pytest.mark.requirement("C5.2", "C12.2")


class Breaking(Desk):
    """Somebody who tells how a task is, and then no more."""

    async def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        yield await self.get(task_id)
        raise CallFailed("It broke.")


class Fragile(NodeHouse):
    def tasks(self, caller: Caller, chain: Chain) -> Desk:
        return Breaking(self.parts, caller, chain)


async def test_a_stream_that_breaks_tells_it_in_its_last_event(peer: Live) -> None:
    edge = A2aEdge(Fragile(peer.app.parts))
    peer.served.app.mounts = (edge, *peer.served.app.mounts)
    said = {"role": "user", "parts": [{"type": "text", "text": "go"}]}
    sent = body("tasks/sendSubscribe", {"message": said, "metadata": {"agent": "waiter"}})
    reply = await peer.post("/a2a", sent)
    first, last = [orjson.loads(one[6:]) for one in reply.body.strip().split(b"\n\n")]
    assert (reply.status, first["result"]["status"]) == (200, "working")
    assert (last["id"], last["error"]["message"]) == (1, "It broke.")
