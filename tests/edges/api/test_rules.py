"""The operator's rules over HTTP and MCP: refused, asked, allowed, hidden, watched, reloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.edges.mcp.talking import greet, modern

from openfang.core.labels import Labels

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C7.8", "C7.13", "C7.14")

ECHO = "mcp:demo:echo"
NO_SHOUTING = """
[[rules]]
name = "no-shouting"
effect = "deny"
callers = ["key:*"]
tools = ["mcp:demo:*"]
condition = "has(args.text) && args.text == args.text.upperAscii()"
reason = "Nobody shouts here"
way_out = "say it in small letters"
"""


async def put(node: Live, rules: str, config: str = "") -> Reply:
    """Put rules in force."""

    def write() -> None:
        (node.app.parts.home.path / "policy.toml").write_text(rules)
        if config:
            node.config_file.write_text(config)

    await to_thread.run_sync(write)
    return await node.post("/api/config/reload")


async def decision(node: Live) -> Any:
    records = (await node.get("/api/audit?event=policy_decision")).json["records"]
    return next(one for one in records[-1]["payload"]["gates"] if one["gate"] == "rules")


async def test_a_rule_refuses_by_arguments_over_http_and_mcp_in_the_same_words(node: Live) -> None:
    assert (await put(node, NO_SHOUTING)).json["state"]["problems"] == []
    assert (await node.get("/api/status")).json["rules"] == 1
    assert (await node.call(ECHO, {"text": "hello"})).status == 200
    assert await decision(node) == {"gate": "rules", "verdict": "allow"}
    reply = await node.call(ECHO, {"text": "HELLO"})
    assert reply.told == (403, "rule:no-shouting")
    assert reply.json["detail"] == "Policy violation: Nobody shouts here"
    assert reply.json["way_out"] == "say it in small letters"
    assert reply.json["gates"][-1]["rules"] == ["no-shouting"]
    told = await modern(
        node, "tools/call", {"name": "mcp_demo_echo", "arguments": {"text": "HELLO"}}
    )
    result = told.json["result"]
    assert result["isError"]
    assert "Nobody shouts here" in result["content"][0]["text"]
    assert (await decision(node))["rules"] == ["no-shouting"]
    violation = (await node.get("/api/audit?event=policy_violation")).json["records"][-1]
    assert violation["payload"]["rule"] == "rule:no-shouting"
    assert violation["payload"]["gate"] == "rules"


async def test_explain_shows_the_rules_and_changes_nothing(node: Live) -> None:
    await put(node, NO_SHOUTING)
    body = {"arguments": {"text": "HELLO"}}
    told = (await node.post(f"/api/tools/{ECHO}/explain", body)).json
    assert told["outcome"] == "deny"
    rules = next(one for one in told["gates"] if one["gate"] == "rules")
    assert (rules["verdict"], rules["code"]) == ("deny", "rule:no-shouting")


async def test_a_rule_that_asks_parks_the_call_until_a_person_says_yes(node: Live) -> None:
    rule = f'[[rules]]\nname = "careful"\neffect = "ask"\ntools = ["{ECHO}"]\n'
    await put(node, rule)
    reply = await node.call(ECHO, {"text": "a"})
    assert (reply.status, reply.json["rule"]) == (202, "rule:careful")
    question = reply.json["approval"]
    await node.post(f"/api/approvals/{question}", {"answer": "approve"})
    assert (await node.call(ECHO, {"text": "a"})).status == 200
    assert (await node.call(ECHO, {"text": "b"})).status == 202


async def test_a_rule_says_yes_in_a_persons_place_and_never_lifts_a_refusal(node: Live) -> None:
    deploy = "mcp:demo:deploy"
    key = await node.key("ci", tools=["*"], projects=["default"])
    assert (await node.call(deploy, key=key)).status == 202
    rule = '[[rules]]\nname = "ci-deploys"\neffect = "allow"\ncallers = ["key:ci"]\n'
    rule += 'tools = ["mcp:demo:*"]\n'
    await put(node, rule)
    assert (await node.call(deploy, key=key)).status == 200
    other = await node.key("other", tools=["*"], projects=["default"])
    assert (await node.call(deploy, key=other)).status == 202
    context = {"mode": "planning"}
    assert (await node.call(deploy, key=key, context=context)).told == (403, "planning_mode")
    homeless = await node.key("ci2", tools=["*"], projects=[])
    assert (await node.call(deploy, key=homeless)).status in {202, 403}
    await put(node, rule, '[policy]\nprofile = "seed"\n')
    assert (await node.call(deploy, key=key)).told == (403, "spec_not_frozen")


async def test_a_rule_that_allows_lets_no_secret_out(node: Live) -> None:
    await put(node, '[[rules]]\nname = "all"\neffect = "allow"\ncallers = ["*"]\ntools = ["*"]\n')
    given = {"url": "https://example.com/?k=AKIAIOSFODNN7EXAMPLE"}
    assert (await node.call("web_fetch", given)).json["type"].endswith(":flow")


async def test_rules_read_what_a_run_holds(node: Live) -> None:
    rule = (
        '[[rules]]\nname = "tainted"\neffect = "deny"\ntools = ["mcp:demo:echo"]\n'
        'labels = { any = ["external_network"] }\n'
    )
    await put(node, rule)
    call = node.app.make(ECHO, {}, run="r")
    held = node.app.parts.pipeline.runs.absorb(call, Labels.NONE, Labels.EXTERNAL_NETWORK)
    await node.app.parts.broker.append([], held)
    clean = await node.app.invoke(node.app.make(ECHO, {}, run="another"))
    assert not clean.is_error
    with pytest.raises(Exception, match="tainted"):
        await node.app.invoke(node.app.make(ECHO, {}, run="r"))


async def test_what_a_rule_hides_is_in_no_list_and_as_unknown_as_what_is_not_there(
    node: Live,
) -> None:
    key = await node.key("ci", tools=["*"])
    session = await greet(node, key=key)
    listed = {one["name"] for one in (await session.ask("tools/list"))["result"]["tools"]}
    assert "mcp_demo_echo" in listed
    hide = f'[[rules]]\nname = "h"\neffect = "hide"\ncallers = ["key:ci"]\ntools = ["{ECHO}"]\n'
    await put(node, hide)
    listed = {one["name"] for one in (await session.ask("tools/list"))["result"]["tools"]}
    assert "mcp_demo_echo" not in listed
    assert "mcp_demo_rain" in listed
    hidden, absent = await node.call(ECHO, key=key), await node.call("mcp:demo:no", key=key)
    assert hidden.told == absent.told == (404, "unknown_tool")
    assert hidden.body.replace(b"echo", b"no") == absent.body
    tools = (await node.get("/api/tools", key=key)).json["tools"]
    assert ECHO not in {one["id"] for one in tools}
    assert (await node.call(ECHO)).status == 200
    last = (await node.get("/api/audit?event=policy_violation")).json["records"]
    assert [one["payload"].get("hidden") for one in last] == ["true", None]


@pytest.mark.parametrize("whole", [False, True], ids=["rule", "file"])
async def test_a_shadow_is_on_record_and_changes_nothing(node: Live, *, whole: bool) -> None:
    rule = f'[[rules]]\nname = "trial"\neffect = "deny"\ntools = ["{ECHO}"]\n'
    shadow = "" if whole else "shadow = true\n"
    await put(node, rule + shadow, "[policy]\nshadow = true\n" if whole else "")
    assert (await node.call(ECHO)).status == 200
    assert await decision(node) == {
        "gate": "rules",
        "verdict": "allow",
        "shadow": {"trial": "deny"},
    }


async def test_another_file_can_be_named(node: Live) -> None:
    def write() -> None:
        (node.app.parts.home.path / "strict.toml").write_text(NO_SHOUTING)

    await to_thread.run_sync(write)
    await put(node, "", '[policy]\nfile = "strict.toml"\n')
    assert (await node.call(ECHO, {"text": "HELLO"})).told == (403, "rule:no-shouting")
    reply = await put(node, "", '[policy]\nfile = "absent.toml"\n')
    assert reply.status == 422
    assert "absent.toml" in reply.json["detail"]
    assert (await node.call(ECHO, {"text": "HELLO"})).status == 403


@pytest.mark.requirement("C2.9")
async def test_a_bad_file_leaves_the_old_rules_in_force_and_shows_in_the_status(node: Live) -> None:
    await put(node, NO_SHOUTING)
    reply = await put(node, NO_SHOUTING.replace("args.text ==", "args.text =!"))
    assert reply.status == 422
    assert (await node.call(ECHO, {"text": "HELLO"})).status == 403
    state = (await node.get("/api/status")).json["config"]
    assert state["state"] == "rejected"
    [problem] = state["problems"]
    assert (problem["file"], problem["line"]) == ("policy.toml", 7)
    assert problem["key"] == "rules.no-shouting.condition"
    assert (await put(node, NO_SHOUTING)).status == 200
    assert (await node.get("/api/status")).json["config"]["state"] == "in force"


@pytest.mark.requirement("C2.9")
async def test_a_file_that_appears_and_goes_is_noticed(node: Live) -> None:
    path = node.app.parts.home.path / "policy.toml"

    async def until(status: int) -> None:
        with anyio.fail_after(20):
            while (await node.call(ECHO, {"text": "HELLO"})).status != status:
                await anyio.lowlevel.checkpoint()

    await to_thread.run_sync(path.write_text, NO_SHOUTING)
    await until(403)
    await to_thread.run_sync(path.unlink)
    await until(200)


@pytest.mark.requirement("C2.9")
async def test_rules_change_under_calls_and_each_call_is_decided_by_one_of_them(
    node: Live, demo: Demo
) -> None:
    rules = [NO_SHOUTING, NO_SHOUTING.replace("no-shouting", "silence"), ""]
    seen: set[str] = set()
    done = anyio.Event()
    replies: list[Reply] = []

    async def calling() -> None:
        while not done.is_set():
            reply = await node.call(ECHO, {"text": "HELLO"})
            seen.add("" if reply.status == 200 else reply.json["rule"])

    async def waiting() -> None:
        replies.append(await node.call("mcp:demo:wait"))

    async with anyio.create_task_group() as group:
        group.start_soon(waiting)
        with anyio.fail_after(30):
            await demo.begun.wait()
        for _ in range(8):
            group.start_soon(calling)
        for turn in range(12):
            assert (await put(node, rules[turn % 3])).status == 200
            for _ in range(3):
                await node.call("mcp:demo:rain")
        done.set()
        demo.released.set()
    assert seen == {"", "rule:no-shouting", "rule:silence"}
    assert [reply.status for reply in replies] == [200]
