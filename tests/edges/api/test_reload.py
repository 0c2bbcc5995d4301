"""Another configuration without a restart: calls in flight go on, a bad file changes nothing."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.edges.live import live
from tests.edges.sse import listening

from openfang.app.logs.log import open_logs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C2.9", "C12.1")

RAISED = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"


async def write(node: Live, text: str) -> None:
    await to_thread.run_sync(node.config_file.write_text, text)


async def reload(node: Live, text: str) -> Reply:
    await write(node, text)
    return await node.post("/api/config/reload")


async def state(node: Live) -> dict[str, Any]:
    return (await node.get("/api/status")).json["config"]


async def test_what_changed_is_in_force_at_once_and_on_record(node: Live) -> None:
    reply = await reload(node, '[limits]\nburst = 777\n[policy]\nblacklist = ["fs.write"]\n')
    assert reply.status == 200
    assert (reply.json["state"]["state"], reply.json["state"]["problems"]) == ("in force", [])
    assert (await node.call("mcp:demo:write")).told == (403, "side_effect_blacklisted")
    assert int((await node.get("/api/health")).headers["RateLimit-Remaining"]) < 777
    shown = (await node.get("/api/config")).json
    assert shown["config"]["limits"]["burst"] == 777
    records = (await node.get("/api/audit?event=config_reloaded")).json["records"]
    assert [record["payload"]["changed"] for record in records] == [["limits", "policy"]]


async def test_nothing_changed_is_nothing_on_record(node: Live) -> None:
    for _ in range(3):
        assert (await node.post("/api/config/reload")).status == 200
    assert (await node.get("/api/audit?event=config_reloaded")).json["total"] == 0


async def test_a_file_that_changes_is_noticed(node: Live) -> None:
    async with listening(node) as stream:
        await write(node, RAISED + '[tools]\ndisabled = ["system_time"]\n')
        with anyio.fail_after(30):
            event = await stream.next()
    assert event is not None
    assert event.data["event_type"] == "config_reloaded"
    assert (await node.call("system_time")).told == (403, "tool_disabled")


async def test_a_bad_file_is_noticed_too_and_changes_nothing(node: Live) -> None:
    await write(node, RAISED + "nonsense = 1\n")
    with anyio.fail_after(30):
        while (told := await state(node))["state"] == "in force":
            await anyio.lowlevel.checkpoint()
    assert told["problems"][0]["key"] == "limits.nonsense"
    assert (await node.call("mcp:demo:echo")).status == 200
    await write(node, RAISED)
    with anyio.fail_after(30):
        while (told := await state(node))["state"] != "in force":
            await anyio.lowlevel.checkpoint()
    assert told["problems"] == []


async def test_a_file_that_is_being_written_is_left_until_it_is_whole(node: Live) -> None:
    """It is empty nearly all the time; nothing of that is ever in force."""
    text = RAISED + '[tools]\ndisabled = ["system_time"]\n'
    await write(node, text)
    assert (await node.post("/api/config/reload")).status == 200
    for _ in range(24):
        await write(node, "")
        await anyio.sleep(0.09)  # as long as a slow writer takes
        await write(node, text)
        assert (await node.call("system_time")).told == (403, "tool_disabled")


MISTAKES = {
    'log_level = "info"\nlog_level = "debug"\n': (2, ""),
    "[limits]\n\nburst = 0\n": (3, "limits.burst"),
    "\n\nno_such_key = true\n": (3, "no_such_key"),
    '[policy]\nblacklist = ["no.such_tag"]\n': (2, "policy.blacklist[0]"),
    "[[mcp_servers]]\nname = 7\n": (1, "mcp_servers"),
}


async def test_a_bad_file_leaves_the_old_one_in_force_and_is_named(node: Live) -> None:
    for text, (line, key) in MISTAKES.items():
        reply = await reload(node, text)
        assert reply.told == (422, "config")
        told = await state(node)
        assert told["state"] == "rejected"
        problem = told["problems"][0]
        assert (problem["file"], problem["line"]) == ("config.toml", line)
        assert problem["key"].startswith(key)
        assert problem["message"] in reply.problem["detail"]
        assert f"config.toml:{line}" in reply.problem["detail"]
        assert (await node.get("/api/config")).json["state"] == told
        assert (await node.get("/api/config")).json["config"]["limits"]["burst"] == 100_000_000
    reply = await reload(node, RAISED)
    assert (reply.status, (await state(node))["problems"]) == (200, [])


async def test_a_file_that_is_no_file_is_a_bad_file(node: Live) -> None:
    def make_folder() -> None:
        node.config_file.unlink()
        node.config_file.mkdir()

    await to_thread.run_sync(make_folder)
    assert (await node.post("/api/config/reload")).told == (422, "config")
    await to_thread.run_sync(node.config_file.rmdir)
    await to_thread.run_sync(node.config_file.write_bytes, b"\xff\xfe\x00")
    assert (await node.post("/api/config/reload")).told == (422, "config")
    assert (await node.call("mcp:demo:echo")).status == 200


async def test_a_file_that_is_gone_leaves_what_it_said_in_force(node: Live) -> None:
    before = (await node.get("/api/config")).json["config"]
    assert (await reload(node, RAISED)).status == 200
    await to_thread.run_sync(node.config_file.unlink)
    assert (await node.post("/api/config/reload")).status == 422
    assert (await state(node))["state"] == "rejected"
    assert (await node.get("/api/config")).json["config"]["limits"] == before["limits"]


async def test_keys_that_need_a_restart_are_named_and_wait_for_it(node: Live) -> None:
    text = RAISED + '[plugins]\ngates = []\n[audit]\nfsync = true\n[storage]\nurl = "sqlite:b.db"\n'
    reply = await reload(node, 'api_listen = "127.0.0.1:9"\nlog_level = "error"\n' + text)
    assert reply.json["state"]["needs_restart"] == ["api_listen", "audit", "storage"]
    shown = (await node.get("/api/config")).json["config"]
    assert (shown["api_listen"], shown["audit"]["fsync"]) == ("127.0.0.1:50051", False)
    assert shown["log_level"] == "error"
    assert (await state(node))["needs_restart"] == ["api_listen", "audit", "storage"]
    assert (await reload(node, RAISED)).json["state"]["needs_restart"] == []


async def test_two_hundred_calls_in_flight_survive_every_change(node: Live, demo: Demo) -> None:
    replies: list[Reply] = []

    async def call() -> None:
        replies.append(await node.call("mcp:demo:wait"))

    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(call)
        with anyio.fail_after(30):
            while demo.waiting < 200:
                await anyio.lowlevel.checkpoint()
        for text in (
            RAISED + '[policy]\nprofile = "seed"\nblacklist = ["fs.write"]\n',
            RAISED + '[tools]\ndisabled = ["system_time"]\ntimeout_secs = 1\n',
            RAISED.replace("100_000_000", "50_000_000") + "[guard]\nmax_depth = 1\n",
            "broken",
            RAISED + "[results]\nmax_chars = 3\n",
        ):
            assert (await reload(node, text)).status == (422 if text == "broken" else 200)
        assert (await node.call("mcp:demo:echo", {"text": "12345"})).json["content"][0] == {
            "type": "text",
            "text": "123",
        }
        assert replies == []
        demo.released.set()
    assert [reply.status for reply in replies] == [200] * 200
    assert {reply.json["outcome"] for reply in replies} == {"ok"}
    assert demo.source.reached == 201
    endings = [e for e in await node.events() if e.event_type == "tool_invocation_end"]
    assert len(endings) == 201
    assert (await node.get("/api/audit/verify")).json["intact"]


async def test_a_changed_policy_holds_for_the_next_call(node: Live) -> None:
    for blacklist, status in ((["fs.write"], 403), ([], 200), (["fs.write"], 403)):
        await reload(node, RAISED + f"[policy]\nblacklist = {json.dumps(blacklist)}\n")
        assert (await node.call("mcp:demo:write")).status == status


@pytest.mark.requirement("C18.1")
async def test_the_key_of_the_configuration_ends_with_its_line(node: Live) -> None:
    for old, new in (("first-key", "second-key"), ("second-key", "third-key")):
        assert (await reload(node, f'api_key = "{new}"\n{RAISED}')).status == 200
        assert (await node.get("/api/version", key=new)).status == 200
        assert (await node.get("/api/version", key=old)).status == 401


@pytest.fixture
async def wide(tmp_path: Path) -> AsyncGenerator[Live]:
    """A node that was started for other machines to reach, by what its file says."""
    config = 'api_listen = "192.168.0.7:50051"\n'
    async with live(tmp_path / "home", config=config) as node:
        yield node


async def test_a_reload_never_opens_the_door_of_a_node_that_others_reach(wide: Live) -> None:
    here = 'api_listen = "127.0.0.1:50051"\n'
    reply = await reload(wide, f"{here}[auth]\nrequire_key = false\n{RAISED}")
    assert reply.told == (422, "config")
    assert "auth.require_key" in reply.problem["detail"]
    assert (await wide.get("/api/version", key=None)).status == 401
    assert (await state(wide))["state"] == "rejected"
    reply = await reload(wide, here + RAISED)
    assert reply.json["state"]["needs_restart"] == ["api_listen"]
    # It still listens where it did, so that is still its name.
    named = {"Host": "192.168.0.7:50051"}
    assert (await wide.get("/api/version", headers=named)).status == 200


@pytest.mark.requirement("C7.10")
async def test_what_cannot_be_recorded_is_not_put_in_force(node: Live) -> None:
    await node.call("mcp:demo:echo")
    await to_thread.run_sync(node.app.file.path.unlink)
    reply = await reload(node, RAISED + '[policy]\nblacklist = ["fs.write"]\n')
    assert reply.told == (503, "audit_unavailable")
    assert (await node.get("/api/config")).json["config"]["policy"]["blacklist"] == []
    assert (await state(node))["state"] == "rejected"


async def test_an_included_file_is_watched_as_well(node: Live) -> None:
    more = node.config_file.with_name("more.toml")
    await to_thread.run_sync(more.write_text, "[policy]\nblacklist = []\n")
    assert (await reload(node, f'include = ["more.toml"]\n{RAISED}')).status == 200
    async with listening(node) as stream:
        await to_thread.run_sync(more.write_text, '[policy]\nblacklist = ["fs.write"]\n')
        with anyio.fail_after(30):
            event = await stream.next()
    assert event is not None
    assert (await node.call("mcp:demo:write")).status == 403


@pytest.mark.requirement("C14.2")
async def test_the_log_level_changes_what_is_logged(node: Live, tmp_path: Path) -> None:
    file = tmp_path / "node.log"
    logs = await to_thread.run_sync(partial(open_logs, "info", file=file, redact=str))
    try:
        for level in ("warning", "info", "error", "debug"):
            await reload(node, f'log_level = "{level}"\n{RAISED}')
            assert (await node.call("mcp:demo:echo", context={"task_id": level})).status == 200
    finally:
        await to_thread.run_sync(logs.close)
    lines = (await to_thread.run_sync(file.read_text)).splitlines()
    invoked = [json.loads(line) for line in lines if "Tool invoked" in line]
    reloads = [json.loads(line) for line in lines if "The configuration was loaded" in line]
    assert (len(invoked), len(reloads)) == (2, 2)


@pytest.mark.requirement("C14.2")
async def test_a_file_that_is_repaired_is_told_of(
    node: Live, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "openfang.config")
    await reload(node, "nonsense = 1\n")
    assert "good again" not in caplog.text
    for _ in range(2):
        assert (await reload(node, RAISED)).status == 200
    assert caplog.messages.count("The configuration is good again") == 1
