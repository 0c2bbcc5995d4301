from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.a2a_spec.speaking import BINDINGS, Speaker
from tests.cluster.housed import housed, nodes_server
from tests.peers.a2a.house import House, furnished
from tests.peers.a2a.receiver import Receiver, receiver

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("nodes_server",)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "a2a(*ids): the lines of requirements.toml that this shows")


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory, nodes_server: str) -> Generator[House]:
    """One node for the whole suite."""
    home = furnished(tmp_path_factory.mktemp("a2a_spec") / "home")
    with housed(home, nodes_server) as found:
        yield found
        assert found.complaints() == []


@pytest.fixture(scope="session")
def hook() -> Generator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture(params=BINDINGS)
def caller(request: pytest.FixtureRequest, node: House) -> Speaker:
    """Somebody who speaks 1.0 over one of the bindings."""
    return Speaker(node, request.param)


@pytest.fixture
def other(caller: Speaker, node: House) -> Speaker:
    """Somebody else who speaks as well."""
    return caller.of(key=node.other)
