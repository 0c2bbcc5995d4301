"""The short form of the storm over several nodes: the one with all faults is `make chaos-nodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.storm import brewing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C13.3")


def test_nothing_acknowledged_is_lost_when_a_node_and_the_database_are_killed(
    make_home: Callable[[], Cli], tmp_path: Path
) -> None:
    said = list[str]()
    with brewing(make_home, tmp_path, said.append) as storm:
        told = storm.run("kd")
    assert storm.wrong == [], (said, told.answers)
