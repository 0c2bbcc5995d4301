"""The pages in a real browser: live, by the keyboard, for everybody, and without a script."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from playwright.async_api import expect
from tests.edges.a2a.front import write_agents
from tests.edges.api.test_definitions import (
    HONEST,
    POISON,
    changed,
    config,
    held,
    says,
    settled,
    until,
)
from tests.edges.demo import Demo
from tests.edges.live import live
from tests.edges.web.conftest import LONG
from tests.edges.web.screen import PATIENCE, opened, screen, violations

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from playwright.async_api import Browser, Route
    from tests.edges.live import Live

pytestmark = [pytest.mark.requirement("C19.2"), pytest.mark.needs("chromium")]
LONG_NAME, LONG_TEXT = "n" * 190, "t" * 3000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
async def furnished(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[Live, Path]]:
    """A node with something on every page; and the file in which its server's words stand."""
    folder = tmp_path_factory.mktemp("house")
    told = folder / "said.json"
    await says(told, HONEST)
    written = f"{config(told)}\n[a2a]\nenabled = true\n"
    async with live(folder / "home", config=written, sources=[Demo().source], seconds=LONG) as node:
        await settled(node)
        await node.call("mcp:demo:rain", {})
        await node.call("mcp:demo:strict", {"number": "x"})
        await node.call("mcp:demo:deploy", {"text": "to\u202eday", LONG_NAME: LONG_TEXT})
        await node.call("mcp:demo:write", {LONG_NAME: LONG_TEXT})
        await node.call(f"mcp:demo:{LONG_NAME}", {})
        await node.post("/api/a2a/tasks", {"agent": "assistant", "message": "what time is it?"})
        yield node, told


@pytest.fixture
async def house(furnished: tuple[Live, Path]) -> Live:
    """That node, with a tool that changed and that nobody has accepted yet."""
    node, told = furnished
    if not held(node):
        await says(told, changed(tools=f"{POISON} Number {len(await node.events())}."))
        assert (await node.call("mcp:coat:turn", {"tell": True})).status == 200
        await until(lambda: held(node) == {"mcp:coat:note"})
    return node


async def test_a_call_appears_while_one_watches_and_is_opened_with_its_chain(
    node: Live, browser: Browser
) -> None:
    async with screen(browser, node) as (page, wrong):
        await page.goto(f"{node.url}/calls")
        await expect(page.locator("#live")).to_have_text("Live")
        await node.post("/api/agents/assistant/message", {"message": "what time is it?"})
        row = page.locator("#rows tr", has_text="builtin:system_time")
        await expect(row).to_contain_text("Allowed")
        await row.get_by_role("link").first.click()
        await expect(page.locator("h1")).to_have_text("builtin:system_time")
        await expect(page.locator("svg.chain a")).to_have_count(2)
        await page.wait_for_load_state()
        await page.keyboard.press("[")
        await expect(page.locator("h1")).to_have_text("agent:assistant")
        assert wrong == []


async def test_new_rows_wait_while_one_reads_and_come_when_one_goes_on(
    node: Live, browser: Browser
) -> None:
    await node.call("mcp:demo:echo", {})
    async with screen(browser, node) as (page, wrong):
        await page.goto(f"{node.url}/calls")
        await expect(page.locator("#live")).to_have_text("Live")
        await page.keyboard.press("p")
        await node.call("mcp:demo:rain", {})
        await expect(page.locator("#live")).to_have_text("Paused, 1 new")
        await expect(page.locator("#rows tr")).to_have_count(1)
        await page.keyboard.press("p")
        await expect(page.locator("#rows tr")).to_have_count(2)
        await expect(page.locator("#live")).to_have_text("Live")
        assert wrong == []


async def test_a_page_is_live_however_late_its_scripts_come(node: Live, browser: Browser) -> None:
    async with screen(browser, node) as (page, wrong):

        async def late(route: Route) -> None:
            await page.wait_for_function("window.htmx")
            await page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")
            await route.continue_()

        await page.route("**/htmx-sse.js*", late)
        await page.goto(f"{node.url}/calls", wait_until="commit")
        await expect(page.locator("#live")).to_have_text("Live")
        await node.call("mcp:demo:rain", {})
        await expect(page.locator("#rows tr")).to_have_count(1)
        assert wrong == []


async def test_a_tool_is_tried_and_a_parked_call_goes_on_when_it_is_allowed(
    node: Live, browser: Browser
) -> None:
    async def call() -> Any:
        return await node.call("mcp:demo:deploy", {"text": "now"}, headers={"Prefer": "wait=60"})

    async with screen(browser, node) as (page, wrong):
        await page.goto(f"{node.url}/tools/mcp:demo:strict")
        await page.get_by_label("number").fill("7")
        await page.get_by_role("button", name="Explain").click()
        await expect(page.get_by_text("Would be allowed")).to_be_visible()
        await page.get_by_role("button", name="Call it once").click()
        await expect(page.get_by_text("Ran once")).to_be_visible()
        waiting = asyncio.ensure_future(call())
        await page.goto(f"{node.url}/approvals")
        await expect(page.locator("#h-q")).to_contain_text("mcp:demo:deploy")
        await page.keyboard.press("a")  # of a high risk: it moves there, and answers nothing
        await expect(page.get_by_role("button", name="Allow this one call")).to_be_focused()
        assert not waiting.done()
        await page.get_by_role("button", name="Allow this one call").click()
        await expect(page.locator("article .v.lg")).to_have_text(re.compile("Allowed"))
        with anyio.fail_after(20):
            assert (await waiting).json["content"][0]["text"] == "now"
        assert wrong == []


async def test_one_talks_with_an_agent_and_sees_its_calls(node: Live, browser: Browser) -> None:
    async with screen(browser, node) as (page, wrong):
        await page.goto(f"{node.url}/agents/assistant")
        await page.get_by_label("Message to assistant").fill("what time is it?")
        await page.keyboard.press("Enter")
        tool = page.locator(".tool", has_text="system_time")
        await expect(tool).to_contain_text("Allowed")
        await expect(page.locator(".turn .say").last).to_contain_text("20")
        await expect(page.get_by_role("button", name="Send")).to_be_enabled()
        await page.reload()
        await page.get_by_role("link", name="what time is it?").first.click()
        await expect(page.locator(".turn")).not_to_have_count(0)
        assert wrong == []


async def test_a_changed_tool_is_accepted_by_its_diff_and_a_key_is_made(
    house: Live, browser: Browser
) -> None:
    async with screen(browser, house) as (page, wrong):
        await page.goto(house.url)
        await page.get_by_role("link", name="See the diff").first.click()
        await expect(page.locator(".diff")).to_contain_text("Ignore all previous")
        await page.get_by_role("button", name="Accept as it is now").first.click()
        await expect(page.locator("#held")).to_have_count(0)
        assert not held(house)
        await page.goto(f"{house.url}/keys")
        await page.get_by_label("Name").fill("fresh")
        await page.get_by_role("button", name="Make the key").click()
        await expect(page.locator("#secret")).to_contain_text("of_")
        assert wrong == []


@pytest.mark.requirement("C5.7")
async def test_a_task_that_runs_is_cancelled_and_ends(
    tmp_path: Path, demo: Demo, browser: Browser
) -> None:
    home = tmp_path / "home"
    await to_thread.run_sync(write_agents, home, ["waiter"])
    async with live(home, config="[a2a]\nenabled = true\n", sources=[demo.source]) as node:
        sent = await node.post("/api/a2a/tasks", {"agent": "waiter", "message": "go"})
        await demo.begun.wait()
        async with screen(browser, node) as (page, wrong):
            await page.goto(f"{node.url}/tasks")
            await page.get_by_role("link", name=sent.json["id"][-12:]).click()
            await expect(page.locator(".v.lg")).to_have_text("Working")
            cancel = page.get_by_role("button", name="Cancel this task")
            await cancel.focus()
            await page.evaluate("again()")  # what is read again leaves the focus where it was
            await expect(cancel).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator(".v.lg")).to_have_text("Cancelled")
            await expect(cancel).to_have_count(0)
            with anyio.fail_after(20):
                await demo.cancelled.wait()
            assert wrong == []
        ends = [one for one in await node.events() if one.event_type == "tool_invocation_end"]
        ended = {one.context["tool"]: one.payload["outcome"] for one in ends}
        assert ended["mcp:demo:wait"] == ended["agent:waiter"] == "cancelled"
        assert ended["agent:waiter:tasks/cancel"] == "ok"


async def test_everything_is_reached_by_the_keyboard(node: Live, browser: Browser) -> None:
    for number in range(3):
        await node.call("mcp:demo:echo", {"text": str(number)})
    async with opened(browser) as (page, wrong):
        await page.goto(node.url)
        await page.get_by_label("Key").focus()
        await page.keyboard.type(node.admin)
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_contain_text("Overview")
        await page.wait_for_load_state()
        for letter, heading in {
            "c": "Calls", "t": "Tasks", "a": "Approvals", "l": "Tools", "s": "Servers",
            "p": "Policy", "u": "Audit", "n": "Talk to assistant", "o": "Overview",
        }.items():  # fmt: skip
            await page.keyboard.press("g")
            await page.keyboard.press(letter)
            await expect(page.locator("h1")).to_contain_text(heading)
            await page.wait_for_load_state()  # a key before that is heard by nobody
        await page.keyboard.press("?")
        await expect(page.locator("#keys-help")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("#keys-help")).to_be_hidden()
        await page.keyboard.press("/")
        await expect(page.locator("#jump")).to_be_focused()
        await page.keyboard.press("g")  # letters in a field are letters
        await expect(page.locator("#jump")).to_have_value("g")
        await page.goto(f"{node.url}/calls")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await expect(page.locator("#rows tr").nth(1).locator("a.open")).to_be_focused()
        await page.keyboard.press("k")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("mcp:demo:echo")
        await page.goto(f"{node.url}/settings")
        await page.get_by_role("button", name="Switch them off").click()
        await expect(page.get_by_text("shortcuts are off")).to_be_visible()
        await page.wait_for_load_state()
        await page.keyboard.press("g")
        await page.keyboard.press("c")
        await expect(page.locator("h1")).to_have_text("Settings")
        assert wrong == []


async def test_without_a_script_links_and_forms_carry_the_page(
    node: Live, browser: Browser
) -> None:
    question = (await node.call("mcp:demo:deploy", {})).json["approval"]
    await node.call("mcp:demo:rain", {})
    async with screen(browser, node, java_script_enabled=False) as (page, _):
        await page.goto(f"{node.url}/calls")
        await page.get_by_label("Failed").check(force=True)
        await page.get_by_role("button", name="Filter").click()
        await expect(page.locator("#rows tr")).to_have_count(1)
        await page.goto(f"{node.url}/")
        await page.locator("summary", has_text="As a table").first.click()
        await expect(page.locator(".plot table").first).to_be_visible()
        await page.goto(f"{node.url}/approvals")
        await page.get_by_role("button", name="Deny").click()
        await expect(page.locator("article .v.lg")).to_have_text(re.compile("Denied"))
        await page.get_by_role("button", name="Switch light and dark").click()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert (await node.get(f"/api/approvals/{question}")).json["state"] == "denied"


async def addresses(node: Live) -> dict[str, str]:
    """An address of each kind of page, with something on it."""
    calls = {one.context["tool"]: one.call_id for one in await node.events()}
    [question] = (await node.get("/api/approvals")).json["approvals"]
    [task] = (await node.get("/api/a2a/tasks")).json["tasks"]
    return {
        "overview": "/",
        "calls": "/calls",
        "call": f"/calls/{calls['mcp:demo:write']}",
        "unknown": f"/calls/{calls[f'mcp:demo:{LONG_NAME}']}",
        "tasks": "/tasks",
        "task": f"/tasks/{task['id']}",
        "approvals": f"/approvals/{question['id']}",
        "agents": "/agents/assistant",
        "tools": "/tools?q=demo",
        "tool": "/tools/mcp:demo:strict",
        "servers": "/servers",
        "server": "/servers/coat",
        "policy": "/policy",
        "audit": "/audit?event=tool_invocation_end",
        "keys": "/keys",
        "settings": "/settings",
    }


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 360)])
async def test_nobody_is_shut_out_of_any_page_and_nothing_goes_wrong_on_it(
    house: Live, browser: Browser, theme: Any, width: int
) -> None:
    async with screen(browser, house, color_scheme=theme, width=width, judged=True) as (
        page,
        wrong,
    ):
        found, wide = dict[str, list[str]](), dict[str, int]()
        for name, path in (await addresses(house)).items():
            await page.goto(f"{house.url}{path}")
            await expect(page.locator("main")).to_be_visible()
            # What stands around a page is the same on all of them, and was seen in the light.
            frame = theme == "light" or name == "overview"
            found[name] = await violations(page, "html" if frame else "main")
            wide[name] = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert {name: told for name, told in found.items() if told} == {}
        assert {name: more for name, more in wide.items() if more} == {}
        assert wrong == []
