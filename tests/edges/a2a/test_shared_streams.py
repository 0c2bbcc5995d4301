"""The bound on streams is one for all dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.a2a.seeding import body, refusal, to

from openfang.app.a2a.house import NodeHouse
from openfang.edges.a2a.edge import A2aEdge

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C5.3", "C12.2")


def current(text: str) -> dict[str, Any]:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    return body("SendStreamingMessage", {"message": message})


async def test_who_streams_in_one_dialect_streams_less_in_another(peer: Live, demo: Demo) -> None:
    edge = A2aEdge(NodeHouse(peer.app.parts), most_streams=2)
    peer.served.app.mounts = (edge, *peer.served.app.mounts)
    seed = body("tasks/sendSubscribe", to("waiter", "go")["params"])
    where, version = "/a2a/agents/code-reviewer", {"A2A-Version": "1.0"}
    async with peer.web.post(peer.at("/a2a"), json=seed, headers=peer.headers()) as response:
        await demo.begun.wait()
        refused = await peer.post(where, current("one"), headers=version)
        demo.released.set()
        assert response.status == 200
        await response.read()
    assert refusal(refused) == (429, -32000, "too_many_streams")
    assert (await peer.post(where, current("two"), headers=version)).status == 200
