from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.housed import NODES, houses
from tests.peers.a2a.house import House, furnished, house
from tests.peers.a2a.receiver import Receiver, receiver

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="session")
def node(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Generator[House]:
    """One node for all of these tests: their tasks do not get in each other's way."""
    home = furnished(tmp_path_factory.mktemp("a2a") / "home")
    server = request.getfixturevalue("postgres_server") if NODES else ""
    with houses(home, server) if NODES else house(home) as found:
        yield found
        assert found.complaints() == []


@pytest.fixture(scope="session")
def hook() -> Generator[Receiver]:
    """Somebody who is told of what happens."""
    with receiver() as found:
        yield found
