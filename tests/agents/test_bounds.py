"""What a manifest bounds holds for models and programs alike: calls, time, files, messages."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.agents.test_node import node, put, say

from openfang.agents.code.start import recipe_of
from openfang.agents.loop import Budget
from openfang.agents.spec import AgentSpec, Program
from openfang.app.confine import Confiner
from openfang.core.agents import Ending
from openfang.core.calls import EVERYTHING, Caller
from openfang.core.errors import PolicyViolation, SourceFailed
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.host.backends import Missing
from openfang.host.children.start import to_start
from openfang.storage.state import put_blob
from openfang.storage.units import Unit
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.agents.spec import Sandbox

pytestmark = [pytest.mark.requirement("C6.1"), pytest.mark.needs("bwrap")]

COUNTS = """
async def run(message, context):
    made = 0
    try:
        for number in range(5):
            await context.call("memory_store", {"key": str(number), "value": number})
            made += 1
    except context.Refused as refused:
        return f"{made} {refused.code} {refused.way_out}"
    return str(made)
"""
STORES = """
[capabilities]
tools = ["memory_store"]
memory_write = ["*"]
[policy]
project = "default"
"""
FILES = """
async def run(message, context):
    tool, _, path = message.partition(" ")
    given = {"content": "x"} if tool == "file_write" else {}
    try:
        found = await context.call(tool, {"path": path, **given})
        return found.text
    except context.Refused as refused:
        return refused.code
"""


async def test_a_run_of_a_program_makes_no_more_calls_than_its_manifest_says(
    tmp_path: Path,
) -> None:
    put(tmp_path, "two", f"{STORES}[limits]\ntool_calls = 2\n", COUNTS)
    put(tmp_path, "all", STORES, COUNTS)
    async with node(tmp_path) as (app, _):
        assert (await say(app, "two", "go")).startswith("2 run_budget")
        assert (await say(app, "two", "go")).startswith("2 run_budget")
        assert await say(app, "all", "go") == "5"


async def test_an_agent_makes_so_many_calls_in_a_minute(tmp_path: Path) -> None:
    put(tmp_path, "slow", f"{STORES}[resources]\nmax_tool_calls_per_minute = 3\n", COUNTS)
    put(tmp_path, "quick", STORES, COUNTS)
    async with node(tmp_path) as (app, _):
        refused = await say(app, "slow", "go")
        assert refused.startswith("3 rate_limit")
        assert "resources.max_tool_calls_per_minute" in refused
        assert (await say(app, "slow", "go")).startswith("0 rate_limit")
        assert await say(app, "quick", "go") == "5"


async def test_a_tool_call_takes_no_longer_than_the_manifest_says(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    try:
        return (await context.call("mcp:far:wait")).text
    except context.Failed as failed:
        return str(failed)
"""
    put(
        tmp_path,
        "hasty",
        '[capabilities]\ntools = ["mcp:*"]\n[limits]\ntool_timeout_secs = 0.2\n',
        program,
    )

    async def wait(_: Mapping[str, Any]) -> Result | str:
        await anyio.sleep_forever()
        return ""

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    async with node(tmp_path) as (app, _):
        app.add(TableSource(Kind.MCP, "far", {"wait": (facts, wait)}))
        assert "did not answer within 0.2 s" in await say(app, "hasty", "go")


async def test_a_path_that_is_denied_stays_closed_to_every_tool_of_files(tmp_path: Path) -> None:
    grants = (
        '[capabilities]\ntools = ["file_*"]\n'
        'deny_paths = ["secret", "a/b*", "*.key", "WORKSPACE/c"]\n'
        '[policy]\nproject = "default"\n'
    )
    workspace = tmp_path / "workspaces" / "agent-keeper"
    put(tmp_path, "keeper", grants.replace("WORKSPACE", str(workspace)), FILES)
    for name in ("secret/x", "deep/secret/x", "a/b1/x", "a/c", "my.key", "c", "open"):
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"in {name}")
    async with node(tmp_path) as (app, _):
        for path in ("secret/x", "./secret//x", "deep/secret/x", "a/b1/x", "my.key", "c"):
            assert await say(app, "keeper", f"file_read {path}") == "path_closed", path
            assert await say(app, "keeper", f"file_write {path}") == "path_closed", path
        assert await say(app, "keeper", f"file_read {workspace}/secret/x") == "path_closed"
        assert await say(app, "keeper", "file_list secret") == "path_closed"
        assert await say(app, "keeper", "file_list .") == "a/\ndeep/\nopen"
        assert await say(app, "keeper", "file_read a/c") == "in a/c"
        assert "Wrote" in await say(app, "keeper", "file_write open")


async def test_an_agent_takes_messages_of_those_it_names_and_of_people(tmp_path: Path) -> None:
    sends = """
async def run(message, context):
    try:
        return (await context.call("agent:shy", {"message": message})).text
    except context.Refused as refused:
        return f"{refused.code}: {refused.way_out}"
"""
    program = "async def run(message): return 'taken'"
    put(tmp_path, "shy", '[communication]\nreceive_from = ["friend*"]\n', program)
    for name in ("friend1", "stranger"):
        put(tmp_path, name, '[capabilities]\nagent_message = ["shy"]\n', sends)
    async with node(tmp_path) as (app, _):
        assert await say(app, "shy", "hi") == "taken"
        assert await say(app, "friend1", "hi") == "taken"
        refused = await say(app, "stranger", "hi")

    assert refused.startswith("sender_not_taken: receive_from")
    assert "openfang agents edit shy" in refused


async def test_a_message_is_no_longer_than_the_manifest_says(tmp_path: Path) -> None:
    program = "async def run(message): return 'taken'"
    put(tmp_path, "curt", "[communication]\nmax_message_bytes = 10\n", program)
    async with node(tmp_path) as (app, _):
        assert await say(app, "curt", "ä" * 5) == "taken"
        for arguments in ({"message": "ä" * 6}, {"message": "a", "metadata": {"a": "long enough"}}):
            with pytest.raises(PolicyViolation) as caught:
                await app.call("agent:curt", **arguments)
            assert caught.value.rule == "message_too_large"


async def test_a_refusal_says_how_an_agent_is_granted_it(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    try:
        return (await context.call("web_fetch", {"url": "https://example.org/"})).text
    except context.Refused as refused:
        return refused.way_out
"""
    text = '[capabilities]\ntools = ["web_fetch"]\n[policy]\nproject = "default"\n'
    put(tmp_path, "reader", text, program)
    put(tmp_path, "adrift", text.partition("[policy]")[0], program)
    async with node(tmp_path) as (app, _):
        network, project = await say(app, "reader", "go"), await say(app, "adrift", "go")

    assert network == 'network = ["example.org"] in [capabilities]: openfang agents edit reader'
    assert project == 'project = "default" in [policy]: openfang agents edit adrift'


async def test_what_comes_with_a_message_is_there_for_a_program(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    return [context.message_id.startswith("call_"), list(context.parts), dict(context.metadata)]
"""
    put(tmp_path, "curious", program=program)
    async with node(tmp_path) as (app, _):
        with_all = await say(app, "curious", "hi", parts=[{"type": "text"}], metadata={"a": [1]})
        alone = await say(app, "curious", "hi")

    assert with_all == '[true, [{"type": "text"}], {"a": [1]}]'
    assert alone == "[true, [], {}]"


@pytest.mark.requirement("C9.1")
async def test_a_result_from_outside_does_not_come_with_a_message_as_if_it_were_said(
    tmp_path: Path,
) -> None:
    program = """
async def run(message, context):
    return [part.get("data") for part in context.parts]
"""
    put(tmp_path, "curious", program=program)
    async with node(tmp_path) as (app, _):
        until = app.parts.clock.time_ns() + 10**12
        kept = [
            put_blob(f"result_{labels.names[0]}", app.caller.id, b'"words"', labels, until)
            for labels in (Labels.USER_INPUT, Labels.EXTERNAL_NETWORK)
        ]
        await app.parts.writer.write(Unit(statements=tuple(kept)))
        names = ("result_user_input", "result_external_network")
        sent = [{"type": "data", "blob": name} for name in names]
        assert await say(app, "curious", "hi", parts=sent) == '["words", null]'


class Person:
    """A client whose person answers by a table."""

    key = connection = "me"
    level = ""
    patience = 0.0
    """How long the person thinks."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]], **capabilities: Any) -> None:
        self.capabilities = capabilities
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._answers = answers

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        del name
        self.asked.append((method, params))
        await anyio.sleep(self.patience)
        return text_result("", structured=self._answers[params["message"]])

    def together(self, count: int) -> Callable[[], None]:
        del count
        return lambda: None

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        del method, params


ASKS = """
async def run(message, context):
    try:
        return "You said " + await context.ask(message)
    except context.Refused as refused:
        return refused.code
"""


async def test_a_question_reaches_the_person_as_a_call_and_the_time_of_the_run_stands_still(
    tmp_path: Path,
) -> None:
    put(tmp_path, "asks", "[limits]\ndeadline_secs = 1\n", ASKS)
    person = Person(
        {
            "Really?": {"action": "accept", "content": {"answer": "yes"}},
            "Now?": {"action": "decline"},
        },
        elicitation={},
    )
    async with node(tmp_path) as (app, agents):
        spec = agents.find("asks").spec
        put(tmp_path, "asks", "", ASKS)
        await agents.load()
        await say(app, "asks", "warm")
        agents.find("asks").spec = spec

        async def ask(question: str, client: Person | None) -> str:
            call = app.make("agent:asks", {"message": question}, client=client)
            return (await app.invoke(call)).text

        person.patience = 1.1  # longer than the run may take: its time stands still
        assert await ask("Really?", person) == "You said yes"
        person.patience = 0
        assert await ask("Now?", person) == "question_declined"
        assert await ask("Really?", Person({}, elicitation={"url": {}})) == "nobody_to_ask"
        assert await ask("Really?", Person({})) == "nobody_to_ask"
        assert await ask("Really?", None) == "nobody_to_ask"
        events = await app.events()

    method, params = person.asked[0]
    assert method == "elicitation/create"
    assert list(params["requestedSchema"]["properties"]) == ["answer"]
    asked = [
        event.context["caller"]
        for event in events
        if event.event_type == "tool_invocation_start"
        and event.context["tool"] == "client:me:elicitation/create"
    ]
    assert asked == ["agent:asks"] * 2


async def test_an_agent_can_ask_through_its_own_questions_alone(tmp_path: Path) -> None:
    program = """
async def run(message, context):
    try:
        return (await context.call("client:me:elicitation/create", {"message": message})).text
    except context.Refused as refused:
        return refused.code
"""
    put(tmp_path, "sly", program=program)
    async with node(tmp_path) as (app, _):
        person = Person({}, elicitation={})
        call = app.make("agent:sly", {"message": "Really?"}, client=person)
        assert (await app.invoke(call)).text == "unknown_tool"


@pytest.mark.parametrize("sandbox", ["required", "auto", "off"])
async def test_a_program_is_not_started_without_its_sandbox_unless_its_manifest_says_so(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    file = tmp_path / "agents" / "a" / "agent.py"
    program = Program(file=file, sandbox=sandbox)
    spec = AgentSpec(name="a", does=program, workspace=tmp_path / "w")
    confiner = Confiner(tmp_path, tmp_path, Missing("bubblewrap is not installed"))
    start = to_start(recipe_of(spec), file, None)
    if sandbox == "required":
        with pytest.raises(SourceFailed) as caught:
            await confiner.program(start, AsyncExitStack())
        assert "bubblewrap is not installed" in caught.value.message
        assert 'sandbox = "auto" in its manifest' in caught.value.way_out
    else:
        assert (await confiner.program(start, AsyncExitStack())).argv == start.argv
        assert await confiner.layers(start, 1) == ()


async def test_the_node_says_how_programs_are_confined_and_shows_what_holds_them(
    tmp_path: Path,
) -> None:
    program = "async def run(message): return 'here'"
    put(tmp_path, "usual", program=program)
    put(tmp_path, "own", 'sandbox = "required"\n', program)
    admin = Caller(id="key:admin", grants=EVERYTHING)
    async with node(tmp_path) as (app, agents):
        config = app.parts.config
        usual = config.agents.model_copy(update={"sandbox": "auto"})
        app.parts.config = config.model_copy(update={"agents": usual})
        await agents.load()
        before = {card["name"]: card for card in agents.cards(admin)}
        await say(app, "own", "go")
        after = {card["name"]: card for card in agents.cards(admin)}

    assert (before["usual"]["sandbox"], before["own"]["sandbox"]) == ("auto", "required")
    assert before["assistant"]["sandbox"] is None
    assert before["own"]["layers"] == []
    assert {"files", "processes", "network"} <= set(after["own"]["layers"])


async def test_a_module_in_a_subfolder_sees_the_agents_whole_folder(tmp_path: Path) -> None:
    place = tmp_path / "agents" / "deep"
    put(tmp_path, "deep")
    (place / "src").mkdir()
    (place / "agent.toml").write_text('name = "deep"\nmodule = "python:src/agent.py"\n')
    (place / "words.txt").write_text("beside it")
    (place / "src" / "agent.py").write_text(
        "from pathlib import Path\n"
        "async def run(message):\n"
        "    return (Path(__file__).parent.parent / 'words.txt').read_text()\n"
    )
    async with node(tmp_path) as (app, _):
        assert await say(app, "deep", "go") == "beside it"


async def test_a_start_that_nobody_waits_for_is_not_lost_and_counts_as_time(
    tmp_path: Path,
) -> None:
    """The file is loaded when somebody lets it; who came first had gone by then."""
    program = """
import os, time
while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
    time.sleep(0.01)
async def run(message): return str(os.getpid()) + " " + str(time.monotonic())
"""
    put(tmp_path, "late", "[limits]\ndeadline_secs = 0.3\n", program)
    async with node(tmp_path) as (app, agents):
        first = await app.call("agent:late", message="hi")
        assert agents.programs.opened is not None
        keeper = agents.programs.opened._keepers["late"]
        start = keeper._start
        assert first.structured["ending"] == Ending.TIME.value
        assert start is not None
        await to_thread.run_sync((tmp_path / "agents" / "late" / "go").touch)
        with anyio.fail_after(30):
            await start.done.wait()
        warm = keeper._warm
        agent = agents.find("late")
        agent.spec = replace(agent.spec, budget=Budget())
        second = await app.call("agent:late", message="hi")
        assert second.structured["ending"] == Ending.ANSWERED.value
        assert agents.programs.opened._keepers["late"] is keeper
        assert keeper._warm is warm
