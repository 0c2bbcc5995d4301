"""Three nodes for the tests of a module, or a cluster of a test's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.cli.conftest import make_home
from tests.cluster.house import clustered

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster

__all__ = ("make_home",)


class MakeCluster(Protocol):
    """Runs nodes: each letter is one; `config` is added to what all of them are configured with."""

    def __call__(self, names: str = ..., config: str = ...) -> AbstractContextManager[Cluster]: ...


@pytest.fixture
def make_cluster(make_home: Callable[[], Cli], empty_postgres: str) -> MakeCluster:
    """A cluster of the test's own, on a fresh database."""

    @contextmanager
    def make(names: str = "abc", config: str = "") -> Generator[Cluster]:
        with clustered(make_home, empty_postgres, names, config) as cluster:
            yield cluster

    return make


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Iterator[Cluster]:
    """Three nodes and a balancer before them."""
    with make_cluster() as made:
        yield made
