"""The official clients and the Inspector understand a server in both eras, over both transports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from tests.conformance.served.contents import ENUMS
from tests.conformance.served.resources import WATCHED
from tests.conformance.served.tools import EXTRA_TOOL, TOOLS
from tests.conformance.starting import ENVIRONMENT, command, fixture
from tests.peers.clients import Local, Seen, Task, Web, typescript
from tests.peers.inspector import inspect
from tests.peers.sdk_client import python
from tests.peers.servers import HANDSHAKE, MODERN

from mcp import Client

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from mcp.client.session import IncomingMessage
    from tests.peers.clients import Era, Target

pytestmark = pytest.mark.requirement("C3.10", "C4.5", "C4.6")

REVISION = {"legacy": HANDSHAKE, "modern": MODERN}
# Which client, over what, in which era: a server that a client starts takes long.
ALL = (
    ("typescript", "web", "legacy"),
    ("typescript", "web", "modern"),
    ("typescript", "stdio", "legacy"),
    ("python", "web", "legacy"),
    ("python", "web", "modern"),
    ("python", "stdio", "modern"),
)
ASKS = "test_input_required_result"


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "list": ("tools/list", {}),
    "text": call("test_simple_text"),
    "header": call("test_header", region="Ulm"),
    "failed": call("test_error_handling"),
    "unknown": call("no_such_tool"),
    "progress": call("test_tool_with_progress"),
    "all": call(f"{ASKS}_multiple_inputs"),
    "twice": call(f"{ASKS}_multi_round"),
    "choice": call("test_elicitation_sep1330_enums"),
    "prompt": ("prompts/get", {"name": f"{ASKS}_prompt"}),
    "resource": ("resources/read", {"uri": "test://template/7/data"}),
    "nothing": ("resources/read", {"uri": "test://nothing"}),
}
FORM = {"name": "Ada", "color": "red", "context": "figs"}


def started(*options: str) -> Local:
    program, *args = command("--stdio", *options)
    return Local(program, tuple(args), ENVIRONMENT)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with fixture() as found:
        yield found


@pytest.fixture(scope="module")
def older() -> Generator[str]:
    with fixture("--legacy") as found:
        yield found


async def use(client: str, task: Task) -> Seen:
    """Let one of the clients do it."""
    return await (to_thread.run_sync(typescript, task) if client == "typescript" else python(task))


@pytest.fixture(scope="module", params=ALL, ids="-".join)
async def talk(request: pytest.FixtureRequest, url: str) -> tuple[Era, Seen]:
    """What one of the clients has seen in one of the eras."""
    client, transport, era = request.param
    target: Target = Web(url) if transport == "web" else started()
    task = Task(target=target, era=era, requests=tuple(REQUESTS.values()), form=FORM)
    return era, await use(client, task)


def answer(seen: Seen, name: str) -> dict[str, Any]:
    return seen.answers[list(REQUESTS).index(name)]


def text(seen: Seen, name: str) -> str:
    (part,) = answer(seen, name)["result"]["content"]
    return part["text"]


async def test_the_era_is_the_one_that_was_wanted(talk: tuple[Era, Seen]) -> None:
    era, seen = talk
    assert seen.revision == REVISION[era]


async def test_every_tool_is_listed_with_all_of_its_schema(talk: tuple[Era, Seen]) -> None:
    _, seen = talk
    listed = {tool["name"]: tool["inputSchema"] for tool in answer(seen, "list")["result"]["tools"]}
    assert listed == {name: tool.input_schema for name, tool in TOOLS.items()}


async def test_a_tool_answers_or_fails_or_is_not_there(talk: tuple[Era, Seen]) -> None:
    _, seen = talk
    assert text(seen, "text") == "A simple text."
    assert text(seen, "header") == '{"region": "Ulm"}'
    assert answer(seen, "failed")["result"]["isError"] is True
    assert answer(seen, "unknown")["error"]["code"] == -32602


async def test_progress_is_told(talk: tuple[Era, Seen]) -> None:
    _, seen = talk
    told = [told["params"] for told in seen.told if told["params"].get("total") == 100]
    assert [params["progress"] for params in told] == [0, 50, 100]


async def test_everything_that_a_server_asks_is_answered(talk: tuple[Era, Seen]) -> None:
    _, seen = talk
    once = ["elicitation/create", "sampling/createMessage", "roots/list"]
    assert seen.questions == once + ["elicitation/create"] * 4
    form = '{"color": "red", "context": "figs", "name": "Ada"}'
    assert text(seen, "all") == f"an answer accept {form} file:///workspace"
    assert text(seen, "twice") == f"accept {form} accept {form}"
    (message,) = answer(seen, "prompt")["result"]["messages"]
    assert message["content"]["text"] == f"It is about this: accept {form}"


async def test_a_form_arrives_whole(talk: tuple[Era, Seen]) -> None:
    _, seen = talk
    forms = [asked["params"].get("requestedSchema", {}) for asked in seen.asked]
    assert ENUMS in [form.get("properties") for form in forms]


async def test_a_resource_is_read_or_is_not_there(talk: tuple[Era, Seen]) -> None:
    era, seen = talk
    (content,) = answer(seen, "resource")["result"]["contents"]
    assert content["text"] == '{"id": "7"}'
    error = answer(seen, "nothing")["error"]
    assert error["data"] == {"uri": "test://nothing"}
    # The TypeScript SDK shows the older code as the newer one.
    assert error["code"] in ({-32602} if era == "modern" else {-32602, -32002})


@pytest.mark.parametrize(("era", "code"), [("legacy", -32600), ("modern", -32021)])
async def test_who_cannot_answer_is_not_asked(url: str, era: Era, code: int) -> None:
    requests = (REQUESTS["all"], call(f"{ASKS}_capabilities"))
    seen = await python(Task(target=Web(url), era=era, requests=requests, answers=("roots",)))
    refused, possible = seen.answers
    assert refused["error"]["code"] == code
    assert set(refused["error"]["data"]["requiredCapabilities"]) == {"elicitation", "sampling"}
    assert possible["result"]["content"][0]["text"] == "Answered: nothing"
    assert not seen.asked


@pytest.mark.parametrize("client", ["typescript", "python"])
async def test_who_may_choose_takes_the_newest_that_there_is(
    url: str, older: str, client: str
) -> None:
    seen = [
        await use(client, Task(target=Web(address), requests=(REQUESTS["text"],)))
        for address in (url, older)
    ]
    assert [one.revision for one in seen] == [MODERN, HANDSHAKE]
    assert [one.answers[0]["result"]["content"] for one in seen] == [
        [{"type": "text", "text": "A simple text."}]
    ] * 2


async def test_who_is_older_is_told_of_changes_without_asking(url: str) -> None:
    told = anyio.Event()

    async def heard(message: IncomingMessage) -> None:
        assert not isinstance(message, Exception), message
        if message.method == "notifications/tools/list_changed":
            told.set()

    with anyio.fail_after(60):
        async with Client(url, mode="legacy", message_handler=heard) as client:
            await client.call_tool("test_trigger_tool_change")
            await told.wait()
            names = {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("test_trigger_tool_change")
    assert names - TOOLS.keys() == {EXTRA_TOOL}


async def test_who_is_newer_is_told_of_the_changes_that_it_listens_for(url: str) -> None:
    with anyio.fail_after(60):
        async with (
            Client(url, mode=MODERN) as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as changes,
        ):
            await client.call_tool("test_trigger_tool_change")
            first = await anext(aiter(changes))
            await client.call_tool("test_trigger_resource_change")
            second = await anext(aiter(changes))
            await client.call_tool("test_trigger_tool_change")
    assert [first, second] == [ToolsListChanged(), ResourceUpdated(WATCHED)]


@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
async def test_the_inspector_calls_a_tool(url: str, era: Era, tmp_path: Path) -> None:
    options = ("--tool-name", "test_header", "--tool-arg", "region=Ulm")
    found = await to_thread.run_sync(inspect, tmp_path, Web(url), era, "tools/call", *options)
    assert found["result"]["content"] == [{"type": "text", "text": '{"region": "Ulm"}'}]


async def test_the_inspector_starts_a_server(tmp_path: Path) -> None:
    found = await to_thread.run_sync(inspect, tmp_path, started(), "legacy", "tools/list")
    assert [tool["name"] for tool in found["result"]["tools"]] == list(TOOLS)
