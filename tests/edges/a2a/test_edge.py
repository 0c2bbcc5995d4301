"""The addresses of A2A over a socket: what is where, for whom, and nothing while it is off."""

from __future__ import annotations

import sys
import threading
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import A2ACardResolver
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_signature_verifier
from anyio import run_process, to_thread
from httpx import AsyncClient
from jwt import PyJWK
from tests.edges.a2a.seeding import ENABLED, PROGRAMS, message, refusal, rpc, send, served, to
from tests.edges.live import live
from tests.sources.a2a.speaking import message as said
from tests.sources.a2a.speaking import wired

from openfang.core.errors import SourceFailed
from openfang.core.tasks import TaskState
from openfang.edges.a2a import bodies
from openfang.edges.a2a.versions import LARGE
from openfang.sources.a2a.card import read_card
from openfang.sources.a2a.client import open_client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C5.1", "C5.4", "C12.1")

CARDS = ("/.well-known/agent.json", "/.well-known/agent-card.json")
STARTERS = ("assistant", "echo")
NAMES = sorted((*PROGRAMS, *STARTERS))
V1 = {"A2A-Version": "1.0"}
SEND = {
    "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "x"}]},
}
SEND_03 = {
    "message": {
        "kind": "message",
        "messageId": "m-2",
        "role": "user",
        "parts": [{"kind": "text", "text": "x"}],
    },
}


async def test_the_primary_agents_card_is_public_and_says_where_it_is(peer: Live) -> None:
    seed = await peer.get(CARDS[0], key=None)
    assert (seed.status, seed.headers["Content-Type"]) == (200, "application/json")
    assert seed.json == {
        "name": "code-reviewer",
        "description": "The agent code-reviewer",
        "url": f"{peer.url}/a2a",
        "version": "0.1.0",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "stateTransitionHistory": True,
        },
        "skills": [
            {
                "id": name,
                "name": name.replace("_", " "),
                "description": f"Can use the {name} tool",
                "tags": ["tool"],
                "examples": [],
            }
            for name in ("mcp:demo:wait", "file_read")
        ],
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
    }
    current = (await peer.get(CARDS[1], key=None)).json
    assert current["supportedInterfaces"][0]["url"] == f"{peer.url}/a2a/agents/code-reviewer"
    assert (current["protocolVersion"], current["name"]) == ("0.3", "code-reviewer")
    own = await peer.get(f"/a2a/agents/code-reviewer{CARDS[1]}", key=None)
    assert own.json == current


async def test_the_official_resolver_finds_every_card_and_its_signature_holds(peer: Live) -> None:
    keys = (await peer.get("/.well-known/jwks.json", key=None)).json["keys"]

    def key_of(kid: str | None, jku: str | None) -> PyJWK:
        assert jku == f"{peer.url}/.well-known/jwks.json"
        return PyJWK(next(key for key in keys if key["kid"] == kid))

    verify = create_signature_verifier(key_of, ["EdDSA"])
    async with AsyncClient(headers=peer.headers()) as web:
        for base in (peer.url, *(f"{peer.url}/a2a/agents/{name}" for name in PROGRAMS)):
            card = await A2ACardResolver(web, base).get_agent_card()
            verify(card)
            assert card.supported_interfaces[0].protocol_version == "1.0"


async def test_a_card_that_is_known_is_not_told_again(peer: Live) -> None:
    for path in (*CARDS, "/.well-known/jwks.json", "/a2a/agents", "/a2a/agents?format=1.0"):
        first = await peer.get(path)
        tag = first.headers["ETag"]
        assert "no-store" not in first.headers["Cache-Control"]
        for known in (tag, f'"x", W/{tag}', "*"):
            again = await peer.get(path, headers={"If-None-Match": known})
            assert (again.status, again.body) == (304, b"")
            assert (again.headers["ETag"], "Content-Length" in again.headers) == (tag, False)
        other = await peer.get(path, headers={"If-None-Match": '"x"'})
        assert (other.status, other.body) == (200, first.body)
        head = await peer.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Length"] == str(len(first.body))


async def test_a_wrong_key_does_not_hide_what_is_public(peer: Live) -> None:
    for path in (*CARDS, "/.well-known/jwks.json"):
        assert (await peer.get(path, key="of_wrong")).status == 200
    card = f"/a2a/agents/code-reviewer{CARDS[1]}"
    assert (await peer.get(card, key="of_wrong")).told == (401, "unauthenticated")


async def test_the_list_has_the_cards_of_those_that_the_caller_may_call(peer: Live) -> None:
    listed = (await peer.get("/a2a/agents")).json
    assert [card["name"] for card in listed["agents"]] == NAMES
    assert listed["total"] == len(NAMES)
    urls = {card["name"]: card["url"] for card in listed["agents"]}
    assert urls.pop("code-reviewer") == f"{peer.url}/a2a"
    assert urls == {name: f"{peer.url}/a2a/agents/{name}/seed" for name in urls}
    assert (await peer.get("/a2a/agents", key=None)).told == (401, "unauthenticated")
    current = (await peer.get("/a2a/agents?format=1.0")).json
    cards = [parse_agent_card(card) for card in current["agents"]]
    where = [card.supported_interfaces[0].url.rpartition("/")[2] for card in cards]
    assert (where, {card.name for card in cards} > {"Assistant", "maker"}) == (NAMES, True)
    assert (await peer.get("/a2a/agents?format=2.0")).told == (422, "query")
    few = await peer.key("few", tools=["agent:maker"])
    assert [card["name"] for card in (await peer.get("/a2a/agents", key=few)).json["agents"]] == [
        "maker"
    ]


async def test_an_agent_that_the_caller_may_not_call_is_not_there(peer: Live) -> None:
    few = await peer.key("few", tools=["agent:maker"])
    for name in ("asker", "nobody"):
        where = f"/a2a/agents/{name}"
        reply = await peer.post(where, {"id": 7}, key=few, headers=V1)
        assert refusal(reply) == (404, -32001, "not_found")
        for method, path in (
            ("POST", f"{where}/rest/message:send"),
            ("GET", f"{where}/rest/tasks/x"),
            *(("GET", f"{where}{card}") for card in CARDS),
        ):
            reply = await peer.ask(method, path, key=few, headers=V1)
            assert (path, reply.told) == (path, (404, "not_found"))
            assert reply.problem["detail"] == f"No agent {name} is there."
    assert (await peer.get(f"/a2a/agents/maker{CARDS[0]}", key=few)).json["name"] == "maker"
    # The one that answers by default is another: for this caller nobody does.
    assert (await peer.post("/a2a/tasks/send", message("x"), key=few)).told == (404, "not_found")
    reply = await rpc(peer, "SendMessage", SEND, key=few, headers=V1)
    assert (reply.json["id"], refusal(reply)) == (7, (404, -32001, "not_found"))


async def test_cards_of_agents_that_are_not_published_need_a_key(peer: Live) -> None:
    for name in ("maker", "nobody"):
        for card in CARDS:
            reply = await peer.get(f"/a2a/agents/{name}{card}", key=None)
            assert reply.told == (401, "unauthenticated")
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")
    told = await peer.get(f"/a2a/agents/maker{CARDS[1]}")
    assert (told.json["name"], told.headers["Cache-Control"]) == ("maker", "private, no-cache")


async def test_the_operator_publishes_more_cards(tmp_path: Path, demo: Demo) -> None:
    config = f'{ENABLED}publish = ["maker"]\n'
    async with served(tmp_path / "home", demo, config) as node:
        for name, status in (("maker", 200), ("code-reviewer", 200), ("asker", 401)):
            reply = await node.get(f"/a2a/agents/{name}{CARDS[1]}", key=None)
            assert (name, reply.status) == (name, status)
        assert (await node.get("/a2a/agents", key=None)).status == 401


@pytest.mark.requirement("C2.5", "C8.1")
async def test_the_operator_demands_that_chains_are_told(tmp_path: Path, demo: Demo) -> None:
    async with served(tmp_path / "home", demo, f"{ENABLED}require_chain = true\n") as node:
        [said] = (await node.get(CARDS[1], key=None)).json["capabilities"]["extensions"]
        assert said["required"] is True
        reply = await rpc(node, "SendMessage", SEND, headers=V1)
        assert reply.json["error"]["code"] == -32008
        reply = await rpc(node, "SendMessage", SEND, headers={**V1, "A2A-Extensions": said["uri"]})
        assert (reply.headers["A2A-Extensions"], "result" in reply.json) == (said["uri"], True)
        assert (await send(node, message("x")))["status"] == "completed"


@pytest.mark.requirement("C5.3")
async def test_a_later_dialect_is_heard_at_the_first_ones_address(peer: Live) -> None:
    async def state(method: str, params: dict[str, Any], path: str = "/a2a", **more: Any) -> str:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        result = (await peer.post(path, body, **more)).json["result"]
        return result.get("task", result)["status"]["state"]

    assert await state("SendMessage", SEND, headers=V1) == "TASK_STATE_COMPLETED"
    assert await state("message/send", SEND_03) == "completed"
    other = {"message": {**SEND["message"], "messageId": "m-3"}}
    assert await state("SendMessage", other, "/a2a?A2A-Version=1.0") == "TASK_STATE_COMPLETED"
    own = "/a2a/agents/code-reviewer"
    third = {"message": {**SEND["message"], "messageId": "m-4"}}
    assert await state("SendMessage", third, own, headers=V1) == "TASK_STATE_COMPLETED"
    reply = await peer.post(f"{own}/rest/message:send", SEND, headers=V1)
    assert (reply.status, reply.json["task"]["status"]["state"]) == (200, "TASK_STATE_COMPLETED")
    task = await send(peer, message("x"))
    assert await state("tasks/get", {"id": task["id"]}, own) == "completed"
    assert await state("GetTask", {"id": task["id"]}, own, headers=V1) == "TASK_STATE_COMPLETED"
    read = await peer.get(f"{own}/rest/tasks/{task['id']}", headers=V1)
    assert (read.status, read.json["id"]) == (200, task["id"])
    assert read.json["contextId"] == task["sessionId"]


@pytest.mark.requirement("C5.2", "C5.8")
async def test_our_own_client_reaches_each_agent_by_its_card_of_the_first_dialect(
    peer: Live,
) -> None:
    async with wired(peer.url, auth=f"Bearer {peer.admin}") as wire:
        clients = {
            name: await open_client(wire, read_card((await peer.get(path)).json, path))
            for name in ("asker", "code-reviewer", "maker")
            for path in (f"/a2a/agents/{name}{CARDS[0]}",)
        }
        tasks = {name: await client.send(said("x")) for name, client in clients.items()}
        words = {name: task.status and task.status.text for name, task in tasks.items()}
        assert words == {
            "asker": "Which one?",
            "code-reviewer": "I found 2 potential issues...",
            "maker": "made",
        }
        asked = tasks["asker"].id
        assert (await clients["asker"].get(asked)).state is TaskState.INPUT_REQUIRED
        for ask in (clients["maker"].get, clients["maker"].cancel):
            with pytest.raises(SourceFailed, match=f"maker has no task {asked}"):
                await ask(asked)
        assert (await clients["asker"].cancel(asked)).state is TaskState.CANCELED


@pytest.mark.requirement("C5.2")
async def test_at_an_agents_address_of_the_first_dialect_there_is_no_other(peer: Live) -> None:
    where, few = "/a2a/agents/maker/seed", await peer.key("few", tools=["agent:maker"])
    reply = await peer.post(where, to("asker", "x"), key=few)
    assert refusal(reply) == (200, -32602, "invalid_message")
    assert (await peer.post(where, to("maker", "x"), key=few)).json["result"]["messages"]
    for name in ("asker", "nobody"):
        reply = await peer.post(f"/a2a/agents/{name}/seed", message("x"), key=few)
        assert refusal(reply) == (404, -32001, "not_found")
    asked = (await peer.post("/a2a/agents/asker/seed", message("x"))).json["result"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": asked}
    assert (await peer.post(where, body)).json["error"]["code"] == -32001
    assert (await peer.app.parts.tasks.store.counts())[0] == 2


@pytest.mark.requirement("C12.1")
async def test_a_body_is_read_once_and_a_large_one_beside_the_others(
    peer: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[bool] = []
    parse = bodies.parse_json

    def counted(body: bytes) -> Any:
        beside.append(threading.current_thread() is not threading.main_thread())
        return parse(body)

    monkeypatch.setattr(bodies, "parse_json", counted)
    large = {"message": {**SEND["message"], "messageId": "m-5", "parts": [{"text": "x" * LARGE}]}}
    for path, method, params, told in (
        ("/a2a", "tasks/get", {"id": "x"}, 200),
        ("/a2a", "SendMessage", SEND, 200),
        ("/a2a", "SendMessage", large, 200),
        ("/a2a/agents/maker", "SendMessage", large, 200),
        ("/a2a/agents/nobody", "SendMessage", large, 404),
        ("/a2a/agents/maker/seed", "tasks/send", {"message": "x" * LARGE}, 200),
        ("/a2a/tasks/send", "tasks/send", {"message": "x" * LARGE}, 422),
    ):
        beside.clear()
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        assert (path, (await peer.post(path, body, headers=V1)).status) == (path, told)
        assert (path, beside) == (path, [len(str(params)) > LARGE])


@pytest.mark.requirement("C7.5")
async def test_who_sends_too_much_is_told_so_in_the_dialect_of_the_address(peer: Live) -> None:
    async def told(path: str, **headers: str) -> Reply:
        kind = {"Content-Type": "application/json", **headers}
        reply = await peer.ask("POST", path, data=BytesIO(bytes(10_000_001)), headers=kind)
        assert (path, reply.status) == (path, 413)
        return reply

    for path in ("/a2a", "/a2a/agents/maker", "/a2a/agents/maker/seed"):
        reply = await told(path)
        assert (reply.json["id"], refusal(reply)) == (None, (413, -32600, "body_too_large"))
    rest = "/a2a/agents/maker/rest"
    current = await told(f"{rest}/message:send", **V1)
    assert current.headers["Content-Type"] == "application/a2a+json"
    status = current.json["error"]
    assert (status["code"], status["status"]) == (413, "INVALID_ARGUMENT")
    assert status["details"][0]["reason"] == "BODY_TOO_LARGE"
    older = (await told(f"{rest}/v1/message:send")).json
    assert (older["code"], older["error"]["code"]) == (-32600, 413)
    assert (await told("/a2a/tasks/send")).told == (413, "body_too_large")


OTHERS = [
    ("POST", "/.well-known/agent.json", "GET, HEAD"),
    ("DELETE", "/.well-known/agent-card.json", "GET, HEAD"),
    ("POST", "/.well-known/jwks.json", "GET, HEAD"),
    ("GET", "/a2a", "POST"),
    ("POST", "/a2a/agents", "GET, HEAD"),
    ("GET", "/a2a/agents/maker", "POST"),
    ("GET", "/a2a/agents/maker/seed", "POST"),
    ("GET", "/a2a/tasks/send", "POST"),
    ("DELETE", "/a2a/tasks/x", "GET, HEAD"),
    ("GET", "/a2a/tasks/x/cancel", "POST"),
    ("POST", "/a2a/tasks/x/history", "GET, HEAD"),
]


async def test_another_method_is_told_which_ones_there_are(peer: Live) -> None:
    for method, path, allowed in OTHERS:
        reply = await peer.ask(method, path)
        assert (path, reply.told, reply.headers["Allow"]) == (path, (405, "method"), allowed)


async def test_what_is_at_no_address_of_a2a_is_not_there(peer: Live) -> None:
    for path in ("/a2a/", "/a2a/x", "/a2a/agents/", "/a2a/agents/maker/x", "/a2a/tasks/x/y"):
        assert (await peer.get(path, key=None)).told == (401, "unauthenticated")
        assert (await peer.get(path)).told == (404, "route")
    assert (await peer.get("/a2ax")).told == (404, "route")


async def test_a_key_for_other_edges_opens_nothing_here(peer: Live) -> None:
    elsewhere = await peer.key("elsewhere", edges=["mcp", "api"])
    assert (await peer.get("/a2a/agents", key=elsewhere)).told == (403, "edge")
    here = await peer.key("here", edges=["a2a"])
    assert (await peer.get("/a2a/agents", key=here)).status == 200


@pytest.mark.requirement("C2.5")
async def test_until_it_is_enabled_nothing_of_it_is_there(tmp_path: Path, demo: Demo) -> None:
    async with served(tmp_path / "home", demo, "[a2a]\nenabled = false\n") as node:
        # What nodes sign for each other needs no A2A.
        assert (await node.get("/.well-known/jwks.json", key=None)).json["keys"]
        for path in CARDS:
            reply = await node.get(path, key=None)
            assert reply.told == (404, "a2a_disabled")
            assert "a2a.enabled" in reply.problem["detail"]
        assert (await node.get("/a2a/agents")).told == (404, "a2a_disabled")
        for path in ("/a2a/tasks/send", "/a2a", "/a2a/agents/maker"):
            assert (await node.post(path, message("x"))).told == (404, "a2a_disabled")
            assert (await node.post(path, key=None)).told == (401, "unauthenticated")
        assert await node.app.parts.tasks.store.counts() == (0, 0)
        await to_thread.run_sync(node.config_file.write_text, "[a2a]\nenabled = true\n")
        assert (await node.post("/api/config/reload")).status == 200
        assert (await node.get(CARDS[0], key=None)).json["name"] == "asker"
        assert (await node.post("/a2a/tasks/send", message("x"))).json["status"] == "inputRequired"


@pytest.mark.requirement("C2.5")
async def test_the_operator_chooses_path_primary_agent_and_kind_of_card(
    tmp_path: Path, demo: Demo
) -> None:
    config = (
        '[a2a]\nenabled = true\nlisten_path = "/deep/er"\nprimary_agent = "maker"\n'
        'card = "strict"\n'
    )
    async with served(tmp_path / "home", demo, config) as node:
        seed, current = [(await node.get(path, key=None)).json for path in CARDS]
        assert (seed["url"], seed["name"]) == (f"{node.url}/deep/er", "maker")
        own = f"{node.url}/deep/er/agents/maker"
        assert current["supportedInterfaces"][0]["url"] == own
        assert "url" not in current
        reply = await node.post("/deep/er/tasks/send", message("x"))
        assert (reply.status, len(reply.json["artifacts"])) == (200, 3)
        assert (await node.get(f"/deep/er/tasks/{reply.json['id']}")).json == reply.json
        for path in ("/a2a", "/a2a/agents", "/deep", "/deeper"):
            assert (await node.get(path)).told == (404, "route")


@pytest.mark.requirement("C5.2")
async def test_where_no_agent_is_the_card_is_a_placeholder_and_messages_find_nobody(
    tmp_path: Path,
) -> None:
    config = '[a2a]\nenabled = true\nprimary_agent = "gone"\n'
    async with live(tmp_path / "home", config=config) as node:
        for path in CARDS:
            card = (await node.get(path, key=None)).json
            assert (card["name"], card["skills"]) == ("openfang", [])
            assert set(card["capabilities"].values()) == {False}
        assert (await node.get("/a2a/agents")).json["total"] == len(STARTERS)
        assert (await node.post("/a2a/tasks/send", message("x"))).told == (404, "not_found")
        assert (await node.post("/a2a", message("x"))).json["error"]["code"] == -32001
        reply = await rpc(node, "SendMessage", SEND, headers=V1)
        assert (reply.json["id"], refusal(reply)) == (7, (404, -32001, "not_found"))


async def test_without_require_key_this_machine_sees_all_agents(tmp_path: Path, demo: Demo) -> None:
    config = f"{ENABLED}[auth]\nrequire_key = false\n"
    async with served(tmp_path / "home", demo, config) as node:
        assert (await node.get("/a2a/agents", key=None)).json["total"] == len(NAMES)
        assert (await node.get(f"/a2a/agents/maker{CARDS[1]}", key=None)).status == 200
        assert (await node.get(f"/a2a/agents/nobody{CARDS[1]}", key=None)).status == 404
        assert (await send(node, message("x"), key=None))["status"] == "completed"


@pytest.mark.requirement("C12.3")
async def test_a_public_card_is_paid_for_by_its_address(tmp_path: Path) -> None:
    config = "[a2a]\nenabled = true\n[limits]\ncells_per_minute = 60\nburst = 5\n"
    async with live(tmp_path / "home", config=config) as node:
        statuses = [(await node.get(CARDS[0], key=None)).status for _ in range(6)]
        assert statuses == [200] * 5 + [429]


@pytest.mark.requirement("C2.5")
async def test_the_library_is_not_loaded_before_a2a_is_used() -> None:
    heavy = {"a2a", "joserfc", "google.protobuf"}
    program = (
        "import sys, openfang.app.daemon.server, openfang.edges.a2a.edge; "
        f"print(*({heavy!r} & set(sys.modules)))"
    )
    done = await run_process([sys.executable, "-c", program])
    assert done.stdout.split() == []
