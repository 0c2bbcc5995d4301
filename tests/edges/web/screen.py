"""A real browser: Debian's Chromium, driven by Playwright, that minds what goes wrong in a page."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Browser, Page
    from tests.edges.live import Live

AXE = Path(sys.prefix) / "peers/node-web/node_modules/axe-core/axe.min.js"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PATIENCE = 15_000


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """Start a browser."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def screen(
    browser: Browser, node: Live, key: str = "", **more: Any
) -> AsyncGenerator[tuple[Page, list[str]]]:
    """Sign in with a browser of one's own; gives its page, and all that went wrong there."""
    size = {"width": more.pop("width", 1440), "height": 900}
    context = await browser.new_context(viewport=size, **more)  # pyright: ignore[reportArgumentType]
    context.set_default_timeout(PATIENCE)
    wrong = list[str]()
    try:
        page = await context.new_page()
        page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: wrong.append(str(one)))
        await page.goto(f"{node.url}/login")
        await page.get_by_label("Key").fill(key or node.admin)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Overview").wait_for()
        yield page, wrong
    finally:
        await context.close()


async def violations(page: Page) -> list[str]:
    """Let axe judge the page as it is."""
    source = await to_thread.run_sync(AXE.read_text)
    await page.evaluate(source)
    found: list[Any] = await page.evaluate(
        "async (rules) => (await axe.run(document, {runOnly: rules})).violations", RULES
    )
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
