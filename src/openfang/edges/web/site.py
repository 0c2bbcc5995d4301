"""The site: finds the page, sees that a form is one of ours, and sends what comes of it."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from openfang.core.bodies import status_of
from openfang.core.calls import Mode
from openfang.core.errors import NotFound, OpenFangError, Rejected
from openfang.core.keys import QuestionFilter
from openfang.edges.api.exchange import Answer, WrongMethod, read_body
from openfang.edges.api.mount import NOBODY
from openfang.edges.api.watch import Watch as Watching
from openfang.edges.web.addresses import LOGIN, LOGOUT, PUBLIC, ROUTES, STATIC, THEME, place_of
from openfang.edges.web.asking import Ask, Flow, Go, Page, fields_of, ours
from openfang.edges.web.cookies import THEME as THEME_COOKIE
from openfang.edges.web.cookies import THEMES, read_cookies, set_cookie
from openfang.edges.web.headers import HTML, KEPT, PROTECTED
from openfang.edges.web.pages import PAGES
from openfang.edges.web.rendering import Drawing, read_assets
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Session
    from openfang.edges.api.exchange import Headers
    from openfang.edges.api.mount import Came
    from openfang.edges.web.ports import Watch
    from openfang.edges.web.signed import SignedIn

_LARGEST_FORM: Final = 1_048_576
_LONGEST_KEY: Final = 4_096
_EDGE: Final = "web"
_ONE: Final = QuestionFilter(limit=1)
_FORM: Final = b"application/x-www-form-urlencoded"


class Site:
    """All pages of a node."""

    def __init__(self, watch: Watch, signed: SignedIn) -> None:
        self._watch = watch
        self._signed = signed
        self._assets = read_assets()
        self._drawing = Drawing(self._assets)

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        route, names = place_of(came.path)
        if came.method not in ROUTES[route].split(", "):
            raise WrongMethod(came.method, ROUTES[route])
        if route == STATIC:
            await self._send_asset(came, names["name"])
        elif came.caller is NOBODY and route != LOGIN:
            await self._send(came, Go(where=f"{LOGIN}?{urlencode({'next': _asked(came)})}"))
        else:
            form = await self._form(came, route) if came.method == "POST" else {}
            await self._serve(came, route, names, form)

    async def _serve(
        self, came: Came, route: str, names: Mapping[str, str], form: Mapping[str, str]
    ) -> None:
        if route == LOGIN:
            await self._send(came, await self._login(came, form))
        elif route == LOGOUT:
            await self._send(came, await self._logout(came))
        elif route == THEME:
            await self._send(came, _theme(came, form))
        else:
            await self._page(came, route, names, form)

    async def _page(
        self, came: Came, route: str, names: Mapping[str, str], form: Mapping[str, str]
    ) -> None:
        came.node.charge(came.caller, "health")
        ask = Ask(
            came=came,
            session=came.node.session(came.caller, came.chain, _EDGE),
            watch=self._watch,
            draw=self._drawing.draw,
            names=names,
            query=fields_of(came.query),
            form=form,
        )
        watching = Watching(came.receive)
        try:
            await self._send(came, await self._made(ask, route))
        except asyncio.CancelledError:
            if not watching.gone:
                raise
        finally:
            watching.end()

    async def _made(self, ask: Ask, route: str) -> Page | Go | Flow:
        try:
            return await PAGES[route](ask)
        except OpenFangError as error:
            section = route.split("/")[1]
            return Page(
                template="error.html",
                title="Not found" if isinstance(error, NotFound) else "Not done",
                section=section,
                values={"error": error, "verdicts": getattr(error, "verdicts", ())},
                status=status_of(error),
            )

    async def _form(self, came: Came, route: str) -> dict[str, str]:
        """Take in a form, if it is one of our own pages that sends it."""
        _check_site(came.headers)
        kind = came.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != _FORM:
            raise Rejected("This is no form.", status=415, rule="content_type")
        unread = route in PUBLIC or self._name(came) is None
        body = await read_body(came.receive, came.headers, _LARGEST_FORM) if unread else came.body
        form = fields_of(body)
        if not hmac.compare_digest(form.pop("token", "").encode(), self._token(came).encode()):
            raise Rejected(
                "The form is not from a page of this session.",
                status=403,
                rule="form_token",
                way_out="open the page anew, then send it again",
            )
        return form

    def _name(self, came: Came) -> str | None:
        """Return the name of the browser, if it is signed in."""
        name = read_cookies(came.headers).get(self._signed.cookie(came.headers))
        return name if name and self._signed.secret(name) is not None else None

    def _token(self, came: Came) -> str:
        return self._signed.token(self._name(came) or "")

    async def _login(self, came: Came, form: Mapping[str, str]) -> Page | Go:
        wanted = form.get("next") or fields_of(came.query).get("next", "/")
        if came.method != "POST":
            await self._forget_ended(came)
            return _sign_in(wanted)
        secret = form.get("key", "").strip()
        try:
            if not secret or len(secret) > _LONGEST_KEY or not secret.isascii():
                raise Rejected("This is no key.", status=422, rule="key")
            await came.enter(secret)
        except OpenFangError as error:
            return _sign_in(wanted, error)
        if (old := self._name(came)) is not None:
            await self._signed.end(old)
        cookie = self._cookie(came, await self._signed.begin(secret))
        return Go(where=ours(wanted), cookies=(cookie,))

    async def _forget_ended(self, came: Came) -> None:
        """End the session of a key that is no longer in force."""
        name = self._name(came)
        secret = self._signed.secret(name) if name else None
        if name and secret is not None and await came.node.who(secret, _EDGE) is None:
            await self._signed.end(name)

    async def _logout(self, came: Came) -> Go:
        if (name := self._name(came)) is not None:
            await self._signed.end(name)
        return Go(where=LOGIN, cookies=(self._cookie(came, ""),))

    def _cookie(self, came: Came, text: str) -> tuple[bytes, bytes]:
        return set_cookie(self._signed.cookie(came.headers), text, secure=_secure(came))

    async def _send(self, came: Came, made: Page | Go | Flow) -> None:
        match made:
            case Page():
                await came.answer(await self._answer(came, made))
            case Go():
                where = (b"location", quote(made.where, safe="/?&=%#:,+~.-_").encode())
                headers = (where, *made.cookies, *PROTECTED)
                await came.answer(Answer(body=b"", status=303, content_type=HTML, headers=headers))
            case Flow():
                await _send_flow(came, made)

    async def _answer(self, came: Came, page: Page) -> Answer:
        values = {**await self._frame(came, page), **page.values}
        text = self._drawing.draw(page.template, values)
        return Answer(
            body=text.encode(errors="xmlcharrefreplace"),
            status=page.status,
            content_type=HTML,
            headers=PROTECTED,
        )

    async def _frame(self, came: Came, page: Page) -> dict[str, Any]:
        """What stands around every page."""
        caller, known = came.caller, came.caller is not NOBODY
        session = came.node.session(caller, came.chain, _EDGE)
        theme = read_cookies(came.headers).get(THEME_COOKIE, "")
        return {
            "title": page.title,
            "section": page.section,
            "crumbs": page.crumbs,
            "caller": caller,
            "signed": self._name(came) is not None,
            "token": self._token(came),
            "theme": theme if theme in THEMES else "",
            "here": _asked(came),
            "planning": caller.mode is Mode.PLANNING,
            "waiting": await _waiting(session) if known else 0,
            "version": __version__,
            "state": came.node.state,
            "routes": ROUTES,
        }

    async def _send_asset(self, came: Came, name: str) -> None:
        asset = self._assets.get(name)
        if asset is None:
            raise Rejected("There is no such file.", status=404, rule="route")
        send = came.begin(200)
        headers = [
            (b"content-type", asset.content_type),
            (b"content-length", b"%d" % len(asset.body)),
            (b"x-content-type-options", b"nosniff"),
            KEPT,
            *PROTECTED,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = b"" if came.method == "HEAD" else asset.body
        await send({"type": "http.response.body", "body": body})


async def _waiting(session: Session) -> int:
    return (await session.questions(_ONE)).total


def _sign_in(wanted: str, error: OpenFangError | None = None) -> Page:
    return Page(
        template="login.html",
        title="Sign in",
        section="",
        values={"error": error, "next": ours(wanted)},
        status=200 if error is None else status_of(error),
    )


def _theme(came: Came, form: Mapping[str, str]) -> Go:
    theme = form.get("theme", "")
    cookie = set_cookie(
        THEME_COOKIE, theme if theme in THEMES else "", secure=_secure(came), script=True
    )
    return Go(where=ours(form.get("next", "/")), cookies=(cookie,))


def _secure(came: Came) -> bool:
    """Whether the browser came over TLS, as far as the public address says."""
    origin = came.node.public_origin() or ""
    host = came.headers.get(b"host", b"").decode("latin-1").lower()
    return origin == f"https://{host}"


def _asked(came: Came) -> str:
    query = f"?{came.query.decode('latin-1')}" if came.query else ""
    return ours(f"{came.path}{query}") if came.method != "POST" else "/"


def _check_site(headers: Headers) -> None:
    """Refuse a form that another site sends; where the browser does not say, its origin does."""
    site = headers.get(b"sec-fetch-site")
    if site == b"same-origin" or (site is None and b"origin" in headers):
        return
    raise Rejected(
        "Only a page of this node may send this.",
        status=403,
        rule="origin",
        way_out="open the page here, then send it again",
    )


async def _send_flow(came: Came, flow: Flow) -> None:
    first = await anext(flow.pieces, b"")  # what refuses does so before an answer has begun
    send = came.begin(200)
    kept = f'attachment; filename="{flow.name}"'.encode()
    headers = [
        (b"content-type", flow.content_type),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *(((b"content-disposition", kept),) if flow.name else ()),
        *PROTECTED,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async with aclosing(flow.pieces) as pieces:
        if came.method != "HEAD":
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
