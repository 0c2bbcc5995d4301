"""A browser without a screen: cookies, forms and redirects, as one sends and follows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.edges.live import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.edges.live import Live

_TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')
_TAG = re.compile(r"<[^>]+>")


@dataclass(slots=True)
class Browser:
    """One browser: what it was given to keep, and the page it is at."""

    node: Live
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    token: str = ""

    async def ask(self, method: str, path: str, **more: Any) -> Reply:
        """Ask for something; redirects are told, not followed."""
        kept = "; ".join(f"{name}={text}" for name, text in self.cookies.items())
        headers = {"Accept": "text/html", **({"Cookie": kept} if kept else {})}
        headers |= more.pop("headers", {})
        sent = {name: text for name, text in headers.items() if text}
        async with self.node.web.request(
            method, self.node.at(path), headers=sent, allow_redirects=False, **more
        ) as response:
            reply = Reply(response.status, response.headers, await response.read())
            for cookie in response.headers.getall("Set-Cookie", []):
                name, _, text = cookie.partition(";")[0].partition("=")
                self.cookies[name] = text
        if found := _TOKEN.search(reply.body.decode()):
            self.token = found[1]
        return reply

    async def get(self, path: str, **more: Any) -> Reply:
        return await self.ask("GET", path, **more)

    async def send(
        self, path: str, form: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a form of the page as it was last seen."""
        usual = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": self.node.url,
            "Sec-Fetch-Site": "same-origin",
        }
        body = urlencode({"token": self.token, **form})
        return await self.ask("POST", path, data=body, headers={**usual, **(headers or {})})

    async def sign_in(self, key: str = "", path: str = "/") -> Reply:
        """Sign in with a key, or as the administrator."""
        await self.get(f"/login?{urlencode({'next': path})}")
        return await self.send("/login", {"key": key or self.node.admin, "next": path})


async def signed_in(node: Live, key: str = "") -> Browser:
    """A browser that is signed in."""
    browser = Browser(node)
    reply = await browser.sign_in(key)
    assert (reply.status, reply.headers["Location"]) == (303, "/"), reply.body
    return browser


def text_of(reply: Reply) -> str:
    """What a person reads on a page, on one line."""
    return " ".join(unescape(_TAG.sub(" ", reply.body.decode())).split())
