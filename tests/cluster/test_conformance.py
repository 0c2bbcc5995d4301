"""Three nodes behind a balancer pass every scenario that the official suite requires of a server.

Each single request goes to the next node, whatever belongs together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.fronts import KEYLESS, PLACE, fronts
from tests.conformance.suite import REVISIONS, judge, required, version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster

pytestmark = [
    pytest.mark.requirement("C13.3", "C4.4", "C4.6"),
    pytest.mark.skipif(not version(), reason="needs the suite: make conformance"),
]


@pytest.fixture(scope="module")
def cluster(make_home: Callable[[], Cli], postgres_server: str) -> Iterator[Cluster]:
    with fronts(make_home, postgres_server, more=KEYLESS) as made:
        yield made


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_passes_that_is_required(
    revision: str, cluster: Cluster, tmp_path: Path
) -> None:
    before, wanted = len(cluster.balancer.served), required(revision, "server")
    verdict = judge(revision, cluster.balancer.address + PLACE, tmp_path)
    assert verdict.passed(wanted) == wanted, verdict.told(wanted)
    assert verdict.status == 0, verdict.suite
    assert set(cluster.balancer.served[before:]) == {node.address for node in cluster.nodes}
