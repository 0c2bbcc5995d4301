"""Who gets to see pages: sign-in by key, the cookie, and forms that only our own pages send."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.edges.live import live
from tests.edges.web.browsing import Browser, signed_in, text_of

from openfang.edges.web.addresses import PUBLIC, ROUTES
from openfang.edges.web.pages import PAGES
from openfang.edges.web.signed import SignedIn
from openfang.guard.rate import Quota
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C19.2")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HOUR = 3600


def plain(route: str) -> str:
    """An address of a route, with a name of nothing in it."""
    return "/".join("nothing" if part.startswith("{") else part for part in route.split("/"))


async def test_whoever_is_not_signed_in_is_led_to_the_door_from_every_page(shared: Live) -> None:
    for route in sorted(set(ROUTES) - PUBLIC):
        reply = await Browser(shared).get(plain(route))
        where = reply.headers.get("Location", "")
        assert (route, reply.status in {303, 405}) == (route, True)
        if reply.status == 303:
            assert (route, where.startswith("/login?next=%2F")) == (route, True)


def test_every_address_has_its_page_and_is_described() -> None:
    assert {*PAGES, *PUBLIC, "/logout", "/theme"} == set(ROUTES)
    told = (Path(__file__).parents[3] / "docs/web.md").read_text()
    shown = {route for route in PAGES if not route.endswith(("/live", "/stream"))}
    assert {route for route in shown if f"`{route}`" not in told} == set()


async def test_the_door_leads_back_to_what_was_asked_for_and_never_elsewhere(shared: Live) -> None:
    browser = Browser(shared)
    reply = await browser.sign_in(path="/calls?verdict=deny")
    assert (reply.status, reply.headers["Location"]) == (303, "/calls?verdict=deny")
    for elsewhere in ("https://rebound.example/", "//rebound.example", "/\\rebound.example", "x"):
        reply = await Browser(shared).sign_in(path=elsewhere)
        assert reply.headers["Location"] == "/"


@pytest.mark.requirement("C12.1")
async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(shared: Live) -> None:
    browser = Browser(shared)
    kept = (await browser.sign_in()).headers["Set-Cookie"]
    name, _, rest = kept.partition("=")
    assert name == f"openfang_{shared.address[1]}"
    assert rest.partition(";")[2] == " Path=/; SameSite=Strict; HttpOnly"
    assert shared.admin not in kept


async def test_over_tls_the_cookie_is_for_tls_alone(tmp_path: Path, demo: Demo) -> None:
    config = 'public_url = "https://fang.example"\n'
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        browser = Browser(node)
        host = {"Host": "fang.example", "Origin": "https://fang.example"}
        await browser.get("/login", headers={"Host": "fang.example"})
        reply = await browser.send("/login", {"key": node.admin}, headers=host)
        assert reply.headers["Set-Cookie"].startswith("openfang=")
        assert reply.headers["Set-Cookie"].endswith("; HttpOnly; Secure")


async def test_every_page_is_under_the_strict_policy(shared: Live) -> None:
    browser = await signed_in(shared)
    for path in ("/", "/login", "/calls", "/calls/nothing", "/static/app.js", "/static/nothing"):
        reply = await browser.get(path)
        told = reply.headers
        assert told["Content-Security-Policy"] == POLICY
        assert told["X-Content-Type-Options"] == "nosniff"
        assert (told["X-Frame-Options"], told["Referrer-Policy"]) == ("DENY", "same-origin")
        if told["Content-Type"].startswith("text/html"):
            assert not re.search(rb" (style|on[a-z]+)=|<script>|javascript:", reply.body)


async def test_a_page_is_not_kept_and_a_file_is(shared: Live) -> None:
    browser = await signed_in(shared)
    assert (await browser.get("/")).headers["Cache-Control"] == "no-store"
    file = await Browser(shared).get("/static/app.css", headers={"Accept": "text/css,*/*;q=0.1"})
    assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert file.headers["Content-Type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "", "Origin": ""},
    ],
)
async def test_a_form_of_another_site_is_refused(shared: Live, headers: dict[str, str]) -> None:
    browser = await signed_in(shared)
    await browser.get("/")
    reply = await browser.send("/logout", {}, headers=headers)
    assert (reply.status, (await browser.get("/")).status) == (403, 200)


@pytest.mark.parametrize("origin", ["http://rebound.example", "null"])
async def test_a_foreign_origin_is_refused_before_anything_is_read(
    shared: Live, origin: str
) -> None:
    browser = await signed_in(shared)
    reply = await browser.send("/logout", {}, headers={"Origin": origin})
    assert (reply.status, (await browser.get("/")).status) == (403, 200)


async def test_a_form_without_the_token_of_its_session_is_refused(shared: Live) -> None:
    browser, other = await signed_in(shared), await signed_in(shared)
    await other.get("/")
    for token in ("", "0" * 64, other.token):
        assert (await browser.send("/logout", {"token": token})).status == 403
    assert (await browser.get("/")).status == 200
    assert (await browser.send("/logout", {})).status == 303


async def test_who_signs_out_is_out_whatever_the_browser_kept(shared: Live) -> None:
    browser = await signed_in(shared)
    kept = dict(browser.cookies)
    await browser.get("/")
    reply = await browser.send("/logout", {})
    assert "Max-Age=0" in reply.headers["Set-Cookie"]
    assert (await Browser(shared, cookies=kept).get("/")).status == 303


async def test_a_session_ends_with_its_key(shared: Live) -> None:
    browser = await signed_in(shared, await shared.key("short"))
    assert (await browser.get("/")).status == 200
    assert (await shared.ask("DELETE", "/api/keys/short")).status == 200
    for _ in range(2):
        assert (await browser.get("/calls")).headers["Location"].startswith("/login")
        await browser.get("/login")


async def test_a_session_ends_when_its_key_expires(tmp_path: Path, demo: Demo) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock, sources=[demo.source]) as node:
        browser = await signed_in(node, await node.key("short", ttl_secs=60))
        clock.advance(61)
        assert (await browser.get("/")).headers["Location"].startswith("/login")


async def test_a_session_ends_after_a_while_without_use_and_after_a_week_of_it() -> None:
    now = 0
    signed = SignedIn(lambda: now)
    idle, busy = await signed.begin("of_idle"), await signed.begin("of_busy")
    for _ in range(7 * 24 // 11):
        now += 11 * HOUR * 1_000_000_000
        assert signed.secret(busy) == "of_busy"
    assert signed.secret(idle) is None
    now += 11 * HOUR * 1_000_000_000
    assert signed.secret(busy) is None


async def test_what_is_kept_of_a_session_is_neither_its_name_nor_its_key() -> None:
    signed = SignedIn(lambda: 0)
    name = await signed.begin("of_the-secret-of-somebody")
    kept = repr([(mark, one.masked) for mark, one in signed._open.items()])
    assert name not in kept
    assert "the-secret" not in kept
    assert signed.secret(f"{name}x") is None


async def test_a_key_for_other_edges_opens_no_page(shared: Live) -> None:
    key = await shared.key("elsewhere", role="admin", edges=["api"])
    reply = await Browser(shared).sign_in(key)
    assert reply.status == 403
    assert "may not come in over web" in text_of(reply)
    assert "Set-Cookie" not in reply.headers


async def test_who_guesses_keys_is_slowed_down_and_on_record(tmp_path: Path) -> None:
    async with live(tmp_path / "home") as node:
        node.doors.failing = Quota(cells_per_minute=1, burst=3)
        browser = Browser(node)
        seen = [(await browser.sign_in(f"of_{number}")).status for number in range(5)]
        assert seen == [401, 401, 401, 429, 429]
        found = (await node.get("/api/audit?event=policy_violation")).json["records"]
        assert [one["payload"]["rule"] for one in found] == ["unauthenticated"] * 3


async def test_programs_find_at_these_addresses_what_they_found_before(shared: Live) -> None:
    for path in ("/", "/calls", "/login"):
        assert (await shared.get(path, key=None)).told == (401, "unauthenticated")
        assert (await shared.get(path)).told == (404, "route")
        assert (await shared.get(path, headers={"Accept": "text/html"})).told == (404, "route")


async def test_where_no_key_is_asked_for_the_page_is_of_who_calls_without_one(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[auth]\nrequire_key = false\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        browser = Browser(node)
        reply = await browser.get("/")
        assert (reply.status, "local-mcp" in text_of(reply)) == (200, True)
        assert (await browser.send("/theme", {"theme": "dark", "next": "/"})).status == 303
        assert 'data-theme="dark"' in (await browser.get("/")).body.decode()


async def test_the_first_page_is_made_once_however_many_ask(node: Live) -> None:
    replies = await asyncio.gather(*(Browser(node).get("/login") for _ in range(5)))
    assert [reply.status for reply in replies] == [200] * 5
