"""A node that is alive, and whose address does not answer the others."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.cluster.test_singletons import Client

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.cluster.conftest import MakeCluster

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(240)]
LISTED = {"jsonrpc": "2.0", "id": 4, "method": "tools/list"}


@contextmanager
def black_hole() -> Generator[str]:
    """Give an address that neither refuses nor answers: its queue is full."""
    with ExitStack() as held, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listening.getsockname())
        yield "http://{}:{}".format(*listening.getsockname())


def test_a_session_of_a_node_that_cannot_be_reached_is_refused_with_the_reason_and_stays_there(
    make_cluster: MakeCluster,
) -> None:
    with (
        black_hole() as address,
        make_cluster("ab", f'address = "{address}"') as cluster,
        Client(cluster["b"]) as asking,
        cluster["a"].client as other,
        cluster["b"].client as there,
    ):
        took = list[float]()
        for _ in range(2):
            began = time.monotonic()
            refused = other.post("/mcp", json=LISTED, headers=asking.headers)
            took.append(time.monotonic() - began)
            assert refused.status_code == 503, refused.text
            assert "The node b has this session" in refused.text
            assert address in refused.text
        assert took[1] < took[0], "it is waited for once"
        assert there.post("/mcp", json=LISTED, headers=asking.headers).status_code == 200
