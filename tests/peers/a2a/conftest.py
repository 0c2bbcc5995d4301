from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.housed import housed
from tests.peers.a2a.house import House, furnished
from tests.peers.a2a.receiver import Receiver, receiver

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory, nodes_server: str) -> Generator[House]:
    """One node for all of these tests: their tasks do not get in each other's way."""
    home = furnished(tmp_path_factory.mktemp("a2a") / "home")
    with housed(home, nodes_server) as found:
        yield found
        assert found.complaints() == []


@pytest.fixture(scope="session")
def hook() -> Generator[Receiver]:
    """Somebody who is told of what happens."""
    with receiver() as found:
        yield found
