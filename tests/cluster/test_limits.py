"""Limits over several nodes: what is used up at one of them is used up at all."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from anyio import to_thread
from tests.cluster.house import homes
from tests.postgres import run

from openfang.agents.loop import Budget
from openfang.agents.spec import AgentSpec
from openfang.app.agents.budgets import Budgets
from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.core.agents import Usage
from openfang.core.trace import new_chain
from openfang.core.usage import Entry, Payer, Spending
from openfang.storage import ledger
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli
    from tests.cluster.conftest import MakeCluster
    from tests.cluster.house import Cluster, Node

CALLS = 12
GUESSES = 20
WAIT = 10.0


@pytest.mark.requirement("C12.3")
def test_rates_and_failures_to_sign_in_at_one_node_count_at_the_others(
    make_cluster: MakeCluster,
) -> None:
    with make_cluster("ab", "[limits.costs]\ncall = 1\n") as cluster:
        _a_rate_is_everybodys(cluster)
        _guesses_count_everywhere(cluster)


def _a_rate_is_everybodys(cluster: Cluster) -> None:
    made = cluster["a"].cli("keys", "create", "busy", "--limit", str(CALLS), "--json")
    headers = {"Authorization": f"Bearer {made.json['secret']}"}
    told = Told(cluster, "caller/key:busy")
    with _client(cluster["a"], headers) as here, _client(cluster["b"], headers) as there:
        answers = [_call(here) for _ in range(CALLS + 1)]
        assert answers == [*[HTTPStatus.OK] * CALLS, HTTPStatus.TOO_MANY_REQUESTS]
        told.wait(60)
        assert _call(there) == HTTPStatus.OK, "nothing was heard of this caller here"
        told.wait(60 + 60 / CALLS)
        assert _until_refused(lambda: _call(there)) < CALLS // 2


def _call(client: httpx.Client) -> int:
    return client.post("/api/tools/system_time/call", json={"arguments": {}}).status_code


def _guesses_count_everywhere(cluster: Cluster) -> None:
    wrong, told = {"Authorization": "Bearer of-nobody"}, Told(cluster, "sign-in/127.0.0.1")
    with _client(cluster["a"], wrong) as here, _client(cluster["b"], wrong) as there:
        for _ in range(GUESSES):
            assert here.get("/api/status").status_code == HTTPStatus.UNAUTHORIZED
        told.wait(GUESSES * 6)
        assert there.get("/api/status").status_code == HTTPStatus.UNAUTHORIZED
        told.wait(GUESSES * 6 + 6)
        assert _until_refused(lambda: there.get("/api/status").status_code) < GUESSES // 2


class Told:
    """What the nodes told each other of a rate, from now on."""

    def __init__(self, cluster: Cluster, subject: str) -> None:
        self._url = cluster.database
        self._query = f"SELECT tat FROM rates WHERE subject = '{subject}'"  # noqa: S608 - ours
        ((self._began,),) = self._asked("SELECT extract(epoch FROM now())::float8")

    def _asked(self, query: str) -> list[Any]:
        return asyncio.run(run(self._url, query))[0]

    def wait(self, seconds: float) -> None:
        """Wait until so many seconds of the rate are used by all together."""
        until = time.monotonic() + WAIT
        while not any(tat >= self._began + seconds for (tat,) in self._asked(self._query)):
            assert time.monotonic() < until, self._asked("SELECT * FROM rates")


def _client(node: Node, headers: dict[str, str]) -> httpx.Client:
    return httpx.Client(base_url=node.address, headers=headers, timeout=30)


def _until_refused(ask: Callable[[], int]) -> int:
    tries = 1
    while (status := ask()) != HTTPStatus.TOO_MANY_REQUESTS:
        assert status in {HTTPStatus.OK, HTTPStatus.UNAUTHORIZED}
        tries += 1
    return tries


@pytest.mark.requirement("C6.4")
async def test_a_budget_that_was_spent_at_one_node_is_spent_at_every_other(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    first, second = await to_thread.run_sync(homes, make_home, empty_postgres, "ab")
    spec = AgentSpec(name="thinker", workspace=Path(), budget=Budget(daily_usd=1.0))
    payer = Payer(run="run", chain="", agent="thinker", purse="thinker", caller="somebody")
    spent = Entry(payer=payer, spending=Spending(requests=1, cost_usd=1.0))
    async with (
        open_app(Home(first.cli.home), {}) as here,
        open_app(Home(second.cli.home), {}) as there,
    ):
        over = Budgets(parts=there, purse=lambda one: one.name).holding(spec, payer, new_chain())
        assert await over(Usage()) is None
        await here.writer.write(Unit(statements=ledger.add(spent, here.clock.time_ns())))
        reached = await over(Usage())
        assert reached is not None
        assert (reached.used, reached.allowance.said) == (1.0, "the agent thinker")
