"""The web page as an edge of the node: who asks with a browser, and for what.

It is light: what makes pages is imported, and its templates are read, when the first is asked for.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

import anyio
from anyio import to_thread

from openfang.core.bodies import status_of
from openfang.core.errors import OpenFangError, Rejected, Unauthenticated
from openfang.core.trace import CURRENT_TRACE
from openfang.edges.api.exchange import Answer
from openfang.edges.web.addresses import LOGIN, PUBLIC, STATIC, place_of
from openfang.edges.web.cookies import read_cookies
from openfang.edges.web.headers import HTML, PROTECTED
from openfang.edges.web.signed import SignedIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.edges.api.exchange import Headers
    from openfang.edges.api.mount import Came
    from openfang.edges.web.ports import Watch
    from openfang.edges.web.signed import Browsers
    from openfang.edges.web.site import Site

_log = logging.getLogger("openfang.web")
_PAGE: Final = b"text/html"
_SEE_OTHER: Final = 303


class WebEdge:
    """Serves pages to browsers."""

    edge: ClassVar[str] = "web"

    def __init__(
        self,
        watch: Callable[[], Watch],
        now: Callable[[], int],
        browsers: Browsers | None = None,
    ) -> None:
        self._watch = watch
        self.signed = SignedIn(now, browsers)
        self._site: Site | None = None
        self._opening = anyio.Lock()

    def asked(self, path: str, headers: Headers) -> str:
        """Name the page that a browser asks for; a program, which has a key, finds none here."""
        if b"authorization" in headers or b"x-api-key" in headers:
            return ""
        route = self.route(path)
        if route == STATIC or _PAGE in headers.get(b"accept", b""):
            return route
        return route if self.signed.cookie(headers) in read_cookies(headers) else ""

    def route(self, path: str) -> str:
        """Name what is at this path; nothing if that is not ours."""
        return place_of(path)[0]

    async def secret(self, headers: Headers) -> str | None:
        """Return the key that the browser signed in with, if it did."""
        name = read_cookies(headers).get(self.signed.cookie(headers))
        if not name:
            return None
        await self.signed.recall(name)
        return self.signed.secret(name)

    def public(self, route: str, *, signed: bool) -> bool:
        """Whoever is not signed in is shown where to do so, whatever is asked for."""
        return route in PUBLIC or not signed

    async def refuse(self, route: str, error: Rejected, headers: Headers, query: bytes) -> Answer:
        """Say it on a page."""
        del route, headers, query
        return self.fault(error)

    def fault(self, error: OpenFangError) -> Answer:
        """Say on a page why a request ends here; who is not known any more signs in again."""
        if isinstance(error, Unauthenticated):
            where = (b"location", LOGIN.encode())
            return Answer(body=b"", status=_SEE_OTHER, content_type=HTML, headers=(where,))
        from html import escape  # noqa: PLC0415 - it holds the names of 2,000 characters

        text = _FAULT.format(what=escape(error.message), way_out=escape(error.way_out))
        return Answer(
            body=text.encode(),
            status=status_of(error),
            content_type=HTML,
            headers=PROTECTED,
        )

    async def serve(self, came: Came) -> None:
        """Answer one request."""
        if self._site is None:
            async with self._opening:
                self._site = self._site or await to_thread.run_sync(self._opened)
        CURRENT_TRACE.set(came.chain.trace_id)
        try:
            await self._site.serve(came)
        except OpenFangError:
            raise
        except Exception as error:  # a mistake of ours: who asked gets a page all the same
            _log.exception("%s %s: the page failed", came.method, came.path)
            raise _mistake(came.chain.trace_id) from error

    def _opened(self) -> Site:
        """Load what makes pages: it reads files, and takes a moment."""
        site = import_module("openfang.edges.web.site")
        return site.Site(self._watch(), self.signed)


def _mistake(trace: str) -> Rejected:
    return Rejected(
        f"This page failed, for a reason that stands in the log of the node under {trace}.",
        status=500,
        rule="internal",
        way_out="Ask the operator of the node to look there.",
    )


_FAULT: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>OpenFang</title>'
    '<link rel="stylesheet" href="/static/tokens.css">'
    '<link rel="stylesheet" href="/static/app.css">'
    '<main class="main"><h1>This was not done</h1><p>{what}</p><p>{way_out}</p>'
    '<p><a href="/">Overview</a></p></main></html>'
)
