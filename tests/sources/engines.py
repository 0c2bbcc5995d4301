"""The four search engines on loopback, each written from the schema that its makers publish.

Brave: GET /res/v1/web/search, `X-Subscription-Token`, `count` up to 20, `web.results[]`, errors as
`{"type": "ErrorResponse", "error": {...}}`. Tavily: POST /search, a bearer key, `results[]`, errors
as `{"detail": {"error": ...}}`, 432 and 433 for plans. SearXNG: GET /search with `format=json`, 403
where that format is off, `results[]` and `unresponsive_engines`. DuckDuckGo: GET /html/, a page
whose links go by way of `/l/?uddg=`; 202 and a challenge for robots.

A question of one word asks for a fault: see `FAULTS`.
"""

from __future__ import annotations

import html
import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

KEY = "key-of-the-operator-0042"
NAMES = ("searxng", "brave", "tavily", "duckduckgo")
PAGES = [
    ("Figs & dates", "https://example.org/figs?a=1&b=2", "All about <figs>, and <b>dates</b>."),
    ("A second page", "https://example.com/second", "More of the same."),
    *((f"Page {n}", f"https://example.net/{n}", f"Words of page {n}.") for n in range(3, 25)),
]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as the engine got it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: dict[str, Any]


def _json(status: int, body: object, **headers: str) -> Reply:
    return Reply(status, json.dumps(body).encode(), headers=headers)


def _page(status: int, body: str) -> Reply:
    return Reply(status, f"<!doctype html><html><body>{body}</body></html>".encode(), "text/html")


def _searxng(seen: Seen) -> Reply:
    if parse_qs(urlsplit(seen.path).query).get("format") != ["json"]:
        return _page(403, "<h1>Forbidden</h1>")
    results = [
        {
            "title": title,
            "url": url,
            "content": words,
            "engine": "wikipedia",
            "template": "default.html",
            "parsed_url": list(urlsplit(url)),
            "engines": ["wikipedia"],
            "positions": [1],
            "score": 1.0,
            "category": "general",
        }
        for title, url, words in PAGES
    ]
    found = [] if seen.query in {"nothing", "silent"} else results
    silent = [["google", "CAPTCHA"]] if seen.query == "silent" else []
    body = {"query": seen.query, "number_of_results": 0, "results": found, "answers": []}
    return _json(200, {**body, "infoboxes": [], "unresponsive_engines": silent})


def _brave(seen: Seen) -> Reply:
    if seen.headers.get("x-subscription-token") != KEY:
        code, detail = "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid."
        return _json(422, _brave_error(422, code, detail))
    count = int(parse_qs(urlsplit(seen.path).query)["count"][0])
    if not 1 <= count <= 20:
        return _json(
            422, _brave_error(422, "VALIDATION", "Unable to validate request parameter(s)")
        )
    answer: dict[str, Any] = {"type": "search", "query": {"original": seen.query}, "mixed": {}}
    if seen.query != "nothing":
        answer["web"] = {
            "type": "search",
            "results": [_brave_result(*one) for one in PAGES[:count]],
        }
    return _json(200, answer)


def _brave_result(title: str, url: str, words: str) -> dict[str, Any]:
    """Its texts are HTML."""
    described = html.escape(words).replace("dates", "<strong>dates</strong>")
    return {
        "type": "search_result",
        "subtype": "generic",
        "title": html.escape(title),
        "url": url,
        "description": described,
        "is_source_local": False,
        "family_friendly": True,
        "language": "en",
        "meta_url": {"scheme": "https", "netloc": urlsplit(url).netloc},
    }


def _brave_error(status: int, code: str, detail: str) -> dict[str, Any]:
    error = {"id": "e-1", "status": status, "code": code, "detail": detail}
    return {"type": "ErrorResponse", "error": error, "time": 1754364294}


def _tavily(seen: Seen) -> Reply:
    if seen.method != "POST" or seen.headers.get("authorization") != f"Bearer {KEY}":
        told = "Unauthorized: missing or invalid API key."
        return _json(401, {"detail": {"error": told}})
    results = [
        {"title": title, "url": url, "content": words, "score": 0.9, "raw_content": None}
        for title, url, words in PAGES[: seen.body["max_results"]]
    ]
    found = [] if seen.query == "nothing" else results
    more = {"answer": None, "follow_up_questions": None, "response_time": 1.1}
    return _json(200, {"query": seen.query, "results": found, **more})


def _duckduckgo(seen: Seen) -> Reply:
    if seen.query == "nothing":
        return _page(200, '<div class="no-results">No results.</div>')
    results = "".join(_duckduckgo_result(*one) for one in PAGES)
    advertisement = _duckduckgo_result("Buy", "https://duckduckgo.com/y.js?ad_domain=shop", "Now")
    box = f'<input name="q" value="{html.escape(seen.query)}">'
    return _page(200, f'{box}<div class="serp__results">{advertisement}{results}</div>')


def _duckduckgo_result(title: str, url: str, words: str) -> str:
    href = f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=0a1b"
    described = html.escape(words).replace("dates", "<b>dates</b>")
    return f"""
    <div class="result results_links results_links_deep web-result ">
      <div class="links_main links_deep result__body">
        <h2 class="result__title">
          <a rel="nofollow" class="result__a" href="{href}">{html.escape(title)}</a>
        </h2>
        <div class="result__extras__url"><a class="result__url" href="{href}">a place</a></div>
        <a class="result__snippet" href="{href}">{described}</a>
      </div>
    </div>"""


_ENGINES: dict[str, Callable[[Seen], Reply]] = {
    "searxng": _searxng,
    "brave": _brave,
    "tavily": _tavily,
    "duckduckgo": _duckduckgo,
}
_CHALLENGE = '<form action="//duckduckgo.com/anomaly.js"><p class="anomaly-modal__title">Bots</p>'
# What any of them may do instead of answering.
FAULTS: dict[str, Reply] = {
    "often": _json(429, {"error": {"detail": "Rate limited."}}, **{"Retry-After": "7"}),
    "often-enough": _json(429, {"detail": {"error": "Slow down."}}),
    "broken": _page(500, "<h1>Sorry</h1>"),
    "gone": _page(404, "<h1>Not here</h1>"),
    "moved": Reply(302, b"", headers={"Location": "https://example.org/elsewhere"}),
    "html": _page(200, "<h1>Welcome</h1>"),
    "garbage": Reply(200, b"\xff\x00{"),
    "number": _json(200, 42),
    "empty": _json(200, {}),
    "shapeless": _json(200, {"results": [1, {"title": 3}], "web": {"results": [{"url": "x:y"}]}}),
    "endless": Reply(200, b" " * 2_000_001),
    "spent": _json(432, {"detail": {"error": "This request exceeds your plan's set usage limit."}}),
    "robot": _page(202, _CHALLENGE),
}


@dataclass(slots=True)
class Engines:
    """All four, each below a path of its own, and what they were asked."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list[Seen])

    def at(self, name: str) -> str:
        return f"{self.url}/{name}"


@contextmanager
def searched() -> Generator[Engines]:
    """Serve them."""
    engines = Engines()
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({})

        def do_POST(self) -> None:
            self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def answer(self, body: dict[str, Any]) -> None:
            name = self.path.split("/")[1]
            asked = parse_qs(urlsplit(self.path).query).get("q", [""])[0]
            headers = {key.lower(): value for key, value in self.headers.items()}
            query = body.get("query", asked)
            seen = Seen(
                method=self.command, path=self.path, query=query, headers=headers, body=body
            )
            engines.seen.append(seen)
            if query == "slow":
                stopped.wait(20)
                return
            self.write(FAULTS.get(query) or _ENGINES[name](seen))

        def write(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(reply.body)))
            for header, value in reply.headers.items():
                self.send_header(header, value)
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # nobody reads an endless answer
                self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    engines.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield engines
    finally:
        stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
