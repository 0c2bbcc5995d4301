"""A node whose queues are out of reach: it goes on with all else, and takes tasks again later."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.cluster.stove import ask, kitchen, wait_for
from tests.faults.dialects import RPC1, Sending, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from tests.cli.conftest import Cli
    from tests.cluster.stove import Kitchen

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(600)]
NODE = "a"


@pytest.fixture(scope="module")
def kettle(make_home: Callable[[], Cli], empty_postgres_of_module: str) -> Iterator[Kitchen]:
    """One node, for the tests of this module."""
    with kitchen(make_home, empty_postgres_of_module, NODE) as made:
        yield made


@contextmanager
def out_of_reach(kettle: Kitchen) -> Generator[None]:
    """Hide from DBOS what it keeps its workflows in."""
    kettle.read("ALTER TABLE dbos.workflow_status RENAME TO gone")
    try:
        yield
    finally:
        kettle.read("ALTER TABLE dbos.gone RENAME TO workflow_status")


def says(kettle: Kitchen, words: str) -> bool:
    return words in kettle.cluster[NODE].log.read_text()


def told(kettle: Kitchen, act: str) -> None:
    with kettle.cluster[NODE].client as client:
        assert client.post(f"/api/nodes/{NODE}/{act}", json={}).status_code == 200


def test_a_node_without_its_queues_goes_on_with_what_it_has_and_with_all_else(
    kettle: Kitchen,
) -> None:
    waiting = kettle.send(NODE, "cook")
    kettle.until(NODE, waiting, "input-required", agent="cook")
    with out_of_reach(kettle):
        with kettle.cluster[NODE].client as client:
            sending = Sending(agent="clock", text="what time is it?", waits=False)
            refused = ask(client, RPC1.send(sending))
        assert RPC1.code(refused), refused
        wait_for(lambda: says(kettle, "The queues of tasks cannot be looked at"))
        assert kettle.cluster[NODE].call("system_time")["outcome"] == "ok"
    assert state_of(kettle.until(NODE, kettle.send(NODE, "clock"), agent="clock")) == "completed"
    kettle.cancel(NODE, waiting, "cook")
    wait_for(lambda: kettle.flows(waiting)[waiting][0] == "SUCCESS")


def test_a_node_that_cannot_give_back_its_queues_drains_and_takes_from_them_again(
    kettle: Kitchen,
) -> None:
    with out_of_reach(kettle):
        told(kettle, "drain")
        wait_for(lambda: says(kettle, "The queues of tasks are out of reach"))
        told(kettle, "resume")
    wait_for(lambda: ready(kettle))
    assert state_of(kettle.until(NODE, kettle.send(NODE, "clock"), agent="clock")) == "completed"


def ready(kettle: Kitchen) -> bool:
    with kettle.cluster[NODE].client as client:
        return client.get("/api/ready").status_code == 200
