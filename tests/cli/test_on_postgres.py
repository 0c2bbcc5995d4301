"""A daemon whose home is on a real Postgres server: calls, tasks, approvals, and its sudden end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C13.3")


@pytest.fixture
def moved(fresh: Cli, empty_postgres: str) -> Cli:
    assert fresh("storage", "migrate", "--to", empty_postgres).code == 0
    fresh.configure(f"[storage]\nurl = {json.dumps(empty_postgres)}")
    (fresh.home / "openfang.db").rename(fresh.home / "before.db")
    return fresh


def test_a_home_on_postgres_serves_commands_with_and_without_a_daemon(moved: Cli) -> None:
    first = moved.call("memory_store", key="a", value="grün")
    assert first.code == 0, first.err
    with serving(moved):
        assert moved.call("memory_recall", key="a").code == 0
        assert moved("memory", "search", "GRUN", "--json").code == 0
        status = moved("status", "--json").json
    verified = moved("audit", "verify", "--json")
    assert verified.code == 0, verified.err + verified.out
    print(status, verified.out)
