"""`openfang usage`, in process and over a daemon: the same numbers."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

from openfang.core.usage import DAY_NS, Entry, Payer, Spending, day_name
from openfang.storage import ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.4")

ONE = Spending(
    requests=1,
    input_tokens=100,
    output_tokens=10,
    cost_usd=0.125,
    tool_calls=2,
    schema_bytes=300,
)


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def running(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    if request.param == "in-process":
        yield made
        return
    made.configure("[limits]\ncells_per_minute = 100_000\nburst = 100_000")
    with serving(made):
        yield made


@pytest.fixture
def cli(running: Cli) -> Cli:
    """The command on a home in which nobody has used anything but what the log has counted."""
    running("usage")
    with closing(sqlite3.connect(running.home / "openfang.db")) as database, database:
        for table in ("ledger", "ledger_days"):
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant
    return running


def spend(home: Path, agent: str, caller: str = "key:admin", *, days_ago: int = 0) -> None:
    payer = Payer(run=f"run of {agent}", chain="c" * 32, agent=agent, purse=agent, caller=caller)
    at = time.time_ns() - days_ago * DAY_NS
    with closing(sqlite3.connect(home / "openfang.db")) as database, database:
        for sql, parameters in ledger.add(Entry(payer=payer, spending=ONE), at):
            database.execute(sql, parameters)


def test_a_run_and_a_call_are_in_it(cli: Cli) -> None:
    nothing = cli("usage")
    assert (nothing.code, nothing.out) == (0, "")
    assert "Nothing was used since 20" in nothing.err
    assert cli("agents", "send", "assistant", "what time is it?").code == 0
    assert cli.call("system_time").code == 0
    body = cli("usage", "--json").json
    (line,) = body["usage"]
    assert (line["agent"], line["requests"], line["tool_calls"]) == ("assistant", 2, 1)
    assert line["schema_bytes"] > 1000
    (key,) = cli("usage", "--by", "key", "--json").json["usage"]
    assert (key["key"], key["requests"], key["tool_calls"]) == ("key:admin", 2, 2)
    (chain,) = cli("usage", "--by", "chain", "--json").json["usage"]
    trace = cli("audit", "search", "--tool", "agent:assistant", "--json").lines[-1]
    assert chain["chain"] == trace["context"]["trace"]


def test_it_is_a_table_with_a_total(cli: Cli) -> None:
    spend(cli.home, "coder")
    spend(cli.home, "coder")
    spend(cli.home, "clerk", "key:ann")
    shown = [line.split() for line in cli("usage").out.splitlines()]
    assert shown[1:] == [
        ["coder", "2", "200", "20", "$0.2500", "4", "600"],
        ["clerk", "1", "100", "10", "$0.1250", "2", "300"],
        ["total", "3", "300", "30", "$0.3750", "6", "900"],
    ]


def test_it_is_narrowed_by_time_agent_and_key(cli: Cli) -> None:
    spend(cli.home, "coder", days_ago=9)
    spend(cli.home, "coder", days_ago=1)
    spend(cli.home, "clerk", "key:ann")

    def names(*options: str) -> list[str]:
        body = cli("usage", "--by", "agent", "--json", *options).json
        return [line["agent"] for line in body["usage"]]

    assert names() == ["clerk", "coder"]
    assert names("--agent", "coder") == ["coder"]
    assert names("--key", "ann") == names("--key", "key:ann") == ["clerk"]
    days = cli("usage", "--by", "day", "--since", "30d", "--json").json["usage"]
    assert len(days) == 3
    yesterday = day_name(time.time_ns() // DAY_NS - 1)
    since = cli("usage", "--by", "day", "--since", yesterday, "--json").json
    assert (since["since"], since["total"]["requests"]) == (yesterday, 2)


def test_who_does_not_watch_sees_its_own(cli: Cli) -> None:
    name = f"user{time.time_ns()}"
    key = cli("keys", "create", name).out.strip()
    spend(cli.home, "coder")
    spend(cli.home, "clerk", f"key:{name}")
    env = {"OPENFANG_API_KEY": key}
    assert [line["agent"] for line in cli("usage", "--json", env=env).json["usage"]] == ["clerk"]
    assert cli("usage", "--key", "admin", "--json", env=env).json["usage"] == []


@pytest.mark.parametrize("since", ["7", "yesterday", "1w", "2026-1-1"])
def test_a_time_that_is_none_is_wrong_usage(cli: Cli, since: str) -> None:
    ran = cli("usage", "--since", since)
    assert ran.code == 2
    assert f"--since is '{since}'." in ran.err
    assert cli("usage", "--since", "2026-02-30").code != 0


def test_a_key_is_made_with_a_budget_that_ends_its_runs(cli: Cli) -> None:
    name = f"poor{time.time_ns()}"
    made = cli("keys", "create", name, "--budget-usd-per-day", "0.1", "--json").json
    assert made["budget_usd_per_day"] == 0.1
    spend(cli.home, "coder", f"key:{name}")
    env = {"OPENFANG_API_KEY": made["secret"]}
    answer = cli("agents", "send", "assistant", "what time is it?", env=env)
    words = f"I stopped: the budget of the key {name} is used up: $0.125 of $0.10 a day."
    assert words in answer.out
    assert "It resets at 00:00 UTC on 20" in answer.out
    wrong = cli("keys", "create", "none", "--budget-usd-per-day", "0")
    assert (wrong.code, "--budget-usd-per-day is 0." in wrong.err) == (2, True)
