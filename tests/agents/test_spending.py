"""What runs of a node use up: written with each turn, counted once, and held to budgets."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.agents.killed_run import COST, opened
from tests.agents.test_guests import PARENT, spawn
from tests.agents.test_node import ASSISTANT, put
from tests.agents.test_resume import interrupted

from openfang.agents.meter import shown_bytes
from openfang.agents.source import AgentSource
from openfang.app.admin import Admin
from openfang.app.agents.sessions import Conversations
from openfang.app.spending import spending_report
from openfang.core.agents import Message, Speaker, Spent, Usage, Wanted, Wish, Words
from openfang.core.calls import Role
from openfang.core.ids import Kind, new_id
from openfang.core.keys import Key
from openfang.core.labels import Labels
from openfang.core.usage import Entry, Payer, Spending, UsageQuery
from openfang.storage.ledger import LedgerStore
from openfang.testing import ManualClock, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from openfang.agents.sessions import StoredSessions
    from openfang.agents.spec import Mind
    from openfang.app.agents.running import Agents
    from openfang.core.agents import Model, Prompt, Said
    from openfang.core.calls import Caller
    from openfang.core.results import Result
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C6.4")

EACH = Usage(requests=1, input_tokens=900, output_tokens=100, cost_usd=0.25)
TIME = Wish(id="w1", tool="system_time", arguments={})


@dataclass(slots=True)
class Paid:
    """A model with a price: it wants to know the time so often, then it answers."""

    calls: int = 1
    name: str = "paid"
    prompts: list[Prompt] = field(default_factory=list["Prompt"])

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        self.prompts.append(prompt)
        since = [one.speaker for one in prompt.messages][::-1].index(Speaker.USER)
        if since < 2 * self.calls:
            yield Wanted(replace(TIME, id=f"w{since}"))
        else:
            yield Words("It is late.")
        yield Spent(EACH)


@asynccontextmanager
async def node(
    folder: Path, config: str = "", clock: ManualClock | None = None
) -> AsyncGenerator[tuple[OpenApp, Agents]]:
    noon = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
    clock = clock or ManualClock(now_ns=int(noon.timestamp()) * 1_000_000_000)
    async with open_test_app(folder, config=config, clock=clock) as app:
        assert app.parts.agents
        with anyio.fail_after(60):
            yield app, await app.parts.agents.opened()


def thinks(app: OpenApp, agents: Agents, name: str, model: Model) -> AgentSource:
    """Let an agent of the node think with a model of the test's own."""

    def model_of(mind: Mind) -> Model:
        del mind
        return model

    source = AgentSource(agents.find(name).spec, replace(agents.around, model=model_of))
    agents.running[name] = source
    app.parts.add(Kind.AGENT, source)
    return source


async def ask(app: OpenApp, name: str = "assistant", caller: Caller | None = None) -> Result:
    call = app.make(f"agent:{name}", {"message": "how late is it?"}, caller=caller)
    return await app.invoke(call)


async def spent(
    app: OpenApp, by: str = "agent", caller: Caller | None = None
) -> dict[str, Spending]:
    found = await spending_report(app.parts, caller or app.caller, UsageQuery(by=by))
    return dict(found.rows)


def clock_of(app: OpenApp) -> ManualClock:
    clock = app.parts.clock
    assert isinstance(clock, ManualClock)
    return clock


async def test_a_run_is_on_the_account_of_its_agent_its_key_its_day_and_its_chain(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    model = Paid()
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", model)
        call = app.make("agent:assistant", {"message": "how late is it?"})
        await app.invoke(call)
        reports = [await spent(app, by) for by in ("agent", "key", "day", "chain")]

    shown = [shown_bytes(prompt.tools) for prompt in model.prompts]
    assert min(shown) > 100
    expected = Spending(
        requests=2,
        input_tokens=1800,
        output_tokens=200,
        cost_usd=0.5,
        tool_calls=1,
        schema_bytes=sum(shown),
    )
    names = ("assistant", "key:admin", "2026-11-17", call.chain.trace_id)
    assert reports == [{name: expected} for name in names]


async def test_the_ledger_stays_when_a_session_is_deleted(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", Paid())
        answer = await ask(app)
        before = await spent(app, "chain")
        await Conversations(app.parts, app.caller).delete(answer.structured["session"])
        after = await spent(app, "chain")
        rows = app.file.read_now("SELECT * FROM ledger")

    assert after == before != {}
    assert "late" not in str(rows)


async def test_calls_that_a_program_makes_count_and_those_that_were_refused_do_not(
    tmp_path: Path,
) -> None:
    program = """
async def run(message, context):
    await context.call("builtin:system_time", {})
    await context.call("builtin:system_time", {})
    try:
        await context.call("builtin:file_read", {"path": "x"})
    except context.Refused:
        return "done"
"""
    put(tmp_path, "clerk", '[capabilities]\ntools = ["builtin:system_time"]\n', program)
    async with node(tmp_path) as (app, _):
        assert (await ask(app, "clerk")).text == "done"
        assert await spent(app) == {"clerk": Spending(tool_calls=2)}


async def test_calls_that_a_key_makes_itself_are_its_own(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", Paid())
        for _ in range(3):
            await app.call("builtin:system_time")
        await ask(app)
        by_key, by_agent = await spent(app, "key"), await spent(app)
        again = await spent(app, "key")

    assert by_key["key:admin"].tool_calls == 4
    assert by_agent["assistant"].tool_calls == 1
    assert again == by_key


async def test_who_does_not_watch_the_node_sees_its_own(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", Paid())
        ann = replace(app.caller, id="key:ann", role=Role.USER)
        await ask(app)
        await ask(app, caller=ann)
        await ask(app, caller=ann)
        seen = {
            role: await spent(app, "key", replace(ann, role=role))
            for role in (Role.USER, Role.APPROVER, Role.AUDITOR, Role.ADMIN)
        }

    assert {role: sorted(found) for role, found in seen.items()} == {
        Role.USER: ["key:ann"],
        Role.APPROVER: ["key:ann"],
        Role.AUDITOR: ["key:admin", "key:ann"],
        Role.ADMIN: ["key:admin", "key:ann"],
    }
    assert seen[Role.USER]["key:ann"].requests == 4


async def test_tokens_of_an_hour_end_the_next_run_until_the_hour_has_passed(tmp_path: Path) -> None:
    put(tmp_path, "assistant", f"[resources]\nmax_llm_tokens_per_hour = 2000\n{ASSISTANT}")
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", Paid())
        assert (await ask(app)).text == "It is late."
        refused = await ask(app)
        clock_of(app).advance(60 * 60 + 59)
        late = await ask(app)
        clock_of(app).advance(1)
        again = await ask(app)

    assert refused.text == (
        "I stopped: the budget of the agent assistant is used up: "
        "2000 of 2000 tokens an hour. It resets at 13:01 UTC."
    )
    assert refused.structured["ending"] == "tokens"
    assert refused.structured["budget"]["resets_at"] == "2026-11-17T13:01:00+00:00"
    assert refused.structured["usage"]["requests"] == 0
    assert late.structured["ending"] == "tokens"
    assert again.text == "It is late."


async def test_money_of_an_hour_ends_a_run_in_the_middle(tmp_path: Path) -> None:
    put(tmp_path, "assistant", f"[resources]\nmax_cost_per_hour_usd = 0.6\n{ASSISTANT}")
    model = Paid(calls=9)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", model)
        answer = await ask(app)

    assert len(model.prompts) == 3
    assert "$0.75 of $0.60 an hour. It resets at 13:01 UTC." in answer.text
    assert answer.structured["ending"] == "cost"
    assert "budget" in answer.structured


@pytest.mark.parametrize(
    ("window", "hours", "resets"),
    [("day", 12, "00:00 UTC on 2026-11-18"), ("month", 13 * 24 + 12, "00:00 UTC on 2026-12-01")],
)
async def test_money_of_a_day_and_a_month_comes_back_with_the_calendar(
    tmp_path: Path, window: str, hours: int, resets: str
) -> None:
    put(tmp_path, "assistant", f"[resources]\nmax_cost_per_{window}_usd = 0.5\n{ASSISTANT}")
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", Paid())
        assert (await ask(app)).text == "It is late."
        refused = await ask(app)
        clock_of(app).advance(hours * 3600 - 1)
        late = await ask(app)
        clock_of(app).advance(1)
        again = await ask(app)

    assert refused.text == (
        "I stopped: the budget of the agent assistant is used up: "
        f"$0.50 of $0.50 a {window}. It resets at {resets}."
    )
    assert late.structured["ending"] == "cost"
    assert again.text == "It is late."


@pytest.mark.parametrize(
    ("setting", "window"),
    [("max_hourly_usd", "an hour"), ("max_daily_usd", "a day"), ("max_monthly_usd", "a month")],
)
async def test_the_node_has_a_budget_for_all_agents_together(
    tmp_path: Path, setting: str, window: str
) -> None:
    for name in ("assistant", "clerk"):
        put(tmp_path, name, ASSISTANT)
    async with node(tmp_path, f"[budget]\n{setting} = 0.5\n") as (app, agents):
        for name in ("assistant", "clerk"):
            thinks(app, agents, name, Paid())
        assert (await ask(app, "assistant")).text == "It is late."
        refused = await ask(app, "clerk")

    words = f"I stopped: the budget of this node is used up: $0.50 of $0.50 {window}."
    assert refused.text.startswith(words)
    assert refused.structured["budget"]["setting"] == f"budget.{setting}"


async def test_a_key_has_a_budget_for_a_day_whichever_agent_it_asks(tmp_path: Path) -> None:
    for name in ("assistant", "clerk"):
        put(tmp_path, name, ASSISTANT)
    async with node(tmp_path) as (app, agents):
        for name in ("assistant", "clerk"):
            thinks(app, agents, name, Paid())
        wanted = Key(id="", name="ann", budget_usd_per_day=0.5)
        key, _ = await Admin(app.parts, app.caller).create_key(wanted)
        assert (await ask(app, "assistant", key.caller())).text == "It is late."
        refused = await ask(app, "clerk", key.caller())
        others = await ask(app, "clerk")
        clock_of(app).advance(12 * 3600)
        again = await ask(app, "clerk", key.caller())

    assert refused.text.startswith(
        "I stopped: the budget of the key ann is used up: $0.50 of $0.50"
    )
    assert others.text == again.text == "It is late."


@pytest.mark.requirement("C6.6")
async def test_those_that_an_agent_started_take_from_its_budget_also_when_they_are_gone(
    tmp_path: Path,
) -> None:
    bound = "[resources]\nmax_cost_per_day_usd = 1.0\n"
    put(tmp_path, "parent", f"{bound}{PARENT}")
    async with node(tmp_path) as (app, agents):
        who = agents.find("parent").spec.caller
        for _ in range(2):
            await spawn(app, who, "helper")
            thinks(app, agents, "helper", Paid(calls=1))
            assert (await ask(app, "helper")).text == "It is late."
            await agents.kill(app.make("agent_kill", {}, caller=who), "helper")
        await spawn(app, who, "helper")
        thinks(app, agents, "helper", Paid())
        thinks(app, agents, "parent", Paid())
        refused = [(await ask(app, name)).text for name in ("helper", "parent")]
        lives = await spent(app)

    words = "I stopped: the budget of the agent parent is used up: $1.00 of $1.00 a day."
    assert [text.startswith(words) for text in refused] == [True, True]
    assert [name.partition("~")[0] for name in lives] == ["helper", "helper"]


async def test_the_tokens_and_the_steps_of_one_run_are_bounded(tmp_path: Path) -> None:
    put(tmp_path, "thrifty", f"[safety]\nmax_token_usage = 2500\n{ASSISTANT}")
    put(tmp_path, "brief", f"[safety]\nmax_loop_ticks = 2\n{ASSISTANT}")
    thrifty, brief = Paid(calls=9), Paid(calls=9)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "thrifty", thrifty)
        thinks(app, agents, "brief", brief)
        by_tokens, by_steps = await ask(app, "thrifty"), await ask(app, "brief")

    assert (by_tokens.structured["ending"], len(thrifty.prompts)) == ("tokens", 3)
    assert by_tokens.text == (
        "I stopped: the budget of the agent thrifty is used up: 3000 of 2500 tokens a run. "
        "It is raised by safety.max_token_usage."
    )
    assert (by_steps.structured["ending"], len(brief.prompts)) == ("steps", 3)


async def test_runs_side_by_side_share_a_budget_but_for_the_request_under_way(
    tmp_path: Path,
) -> None:
    put(tmp_path, "assistant", f"[resources]\nmax_cost_per_day_usd = 1.0\n{ASSISTANT}")
    model = Paid(calls=9)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", model)

        async def one(number: int) -> None:
            message = {"message": "how late is it?", "session": f"s{number}"}
            await app.invoke(app.make("agent:assistant", message))

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(one, number)

    assert 4 <= len(model.prompts) < 4 + 3


async def test_a_run_that_goes_on_counts_once_with_what_it_had_used_before(tmp_path: Path) -> None:
    put(tmp_path, "assistant", f"[safety]\nmax_token_usage = 5000\n{ASSISTANT}")
    model = Paid()
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", model)
        sessions, run = agents.sessions, new_id("run")
        talk = await sessions.open("assistant", app.caller.id, "default", most=20)
        asked = Message(speaker=Speaker.USER, text="how late is it?")
        wanted = Message(speaker=Speaker.AGENT, wishes=(TIME,))
        before = Spending(requests=1, input_tokens=900, output_tokens=100, cost_usd=0.25)
        payer = Payer(
            run=run, chain="c", agent="assistant", purse="assistant", caller=app.caller.id
        )
        await sessions.begin(talk.id, run, asked, Labels.NONE)
        await sessions.said(talk.id, run, wanted, Entry(payer=payer, spending=before))
        one = interrupted(app, talk.id, run, [asked, wanted])
        used = (await LedgerStore(app.parts.database).of_run(run)).usage
        result = await agents.resuming.go_on(replace(one, used=used))
        kept = app.file.read_now("SELECT usage FROM agent_runs")
        found = await LedgerStore(app.parts.database).of_run(run)

    assert len(model.prompts) == 1
    assert result.structured["usage"] == {
        "requests": 2,
        "input_tokens": 1800,
        "output_tokens": 200,
        "cost_usd": 0.5,
    }
    assert kept == [('{"requests":2,"input_tokens":1800,"output_tokens":200,"cost_usd":0.5}',)]
    assert (found.usage.requests, found.cost_usd, found.tool_calls) == (2, 0.5, 1)


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[StoredSessions]:
    with opened(tmp_path) as sessions:
        yield sessions


@pytest.mark.requirement("C15.3")
async def test_what_a_run_had_used_when_its_process_was_killed_is_not_lost(
    tmp_path: Path, sessions: StoredSessions
) -> None:
    command = (sys.executable, "-m", "tests.agents.killed_run", "begin", str(tmp_path))
    with anyio.fail_after(60):
        async with await anyio.open_process(command) as process:
            assert process.stdout
            assert b"on disk" in await process.stdout.receive()
            process.kill()
    found = await sessions.interrupted()

    assert [one.used for one in found] == [COST.usage] * 3
