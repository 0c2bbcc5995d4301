"""What DBOS says is said in our log, and no more of it than a person can read."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

import pytest
from tests.app.cluster.flows import taking

pytestmark = pytest.mark.requirement("C13.3")


def nothing(_name: str, _recipe: dict[str, Any] | None) -> Future[None]:
    return Future()


def test_what_two_queues_say_again_and_again_is_said_once_for_each_and_without_sql(
    empty_postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    with taking(empty_postgres, nothing):
        for _ in range(5):
            for queue in ("one", "two"):
                logging.getLogger("dbos").warning("The queue %s is gone\n[SQL: SELECT 1]", queue)
    said = [one.getMessage() for one in caplog.records if "is gone" in one.getMessage()]
    assert said == ["The queue one is gone", "The queue two is gone"]
