"""A real browser: Debian's Chromium, driven by Playwright, that minds what goes wrong in a page."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import async_playwright
from tests.edges.web.browsing import signed_in

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
async def opened(
    browser: Browser, *, width: int = 1440, judged: bool = False, **more: Any
) -> AsyncGenerator[tuple[Page, list[str]]]:
    """Open a page in a context of one's own; gives it, and all that goes wrong there.

    A page that is to be `judged` has axe with it.
    """
    size: Any = {"width": width, "height": more.pop("height", 900)}
    context = await browser.new_context(viewport=size, **more)
    context.set_default_timeout(PATIENCE)
    if judged:
        await context.add_init_script(path=AXE)
    wrong = list[str]()
    try:
        page = await context.new_page()
        page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: wrong.append(str(one)))
        yield page, wrong
    finally:
        await context.close()


@asynccontextmanager
async def screen(
    browser: Browser, node: Live, key: str = "", **more: Any
) -> AsyncGenerator[tuple[Page, list[str]]]:
    """Open a page of somebody who has signed in."""
    cookies = (await signed_in(node, key)).cookies
    async with opened(browser, **more) as (page, wrong):
        await page.context.add_cookies(
            [{"name": name, "value": text, "url": node.url} for name, text in cookies.items()]
        )
        yield page, wrong


async def violations(page: Page, within: str = "html") -> list[str]:
    """Let axe judge the page as it is, or a part of it."""
    found: list[Any] = await page.evaluate(
        "async ([part, more]) => (await axe.run(part, more)).violations",
        [within, {"runOnly": RULES, "resultTypes": ["violations"], "preload": False}],
    )
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
