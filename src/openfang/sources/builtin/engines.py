"""The engines that `web_search` can ask: what each is sent, and what its answer means. No I/O."""

from __future__ import annotations

import html
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson

from openfang.core.values import dataclass
from openfang.sources.builtin.external import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_TITLE: Final = 300
_SNIPPET: Final = 1_000
_URL: Final = 2_000
_TAG = re.compile(r"<[^<>]*>")
_BASE: Final = "tools.web_search.base_url"
_OTHER: Final = "another tools.web_search.provider"
_OK: Final = 200
_ACCEPTED: Final = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page that was found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for, and where: `base` has no slash at its end."""

    text: str
    most: int
    base: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    method: str = "GET"
    body: bytes | None = None


class Unusable(Exception):  # noqa: N818 - it reads as what it is
    """An answer without a list of results; the message goes after the engine's name."""

    def __init__(self, reason: str, way_out: str = _BASE) -> None:
        super().__init__(reason)
        self.reason = reason
        self.way_out = way_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine. `key` is the variable that its key is in by custom, if it needs one."""

    title: str
    ask: Callable[[Query], Asked]
    read: Callable[[bytes], Sequence[Hit]]
    home: str = ""
    key: str = ""
    read_at: frozenset[int] = frozenset({_OK})
    refusals: Mapping[int, tuple[str, str]] = field(default_factory=dict[int, "tuple[str, str]"])


def said(body: bytes) -> str:
    """Give the reason that an engine states for a refusal, if it can be found."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    for name in ("error", "detail", "error", "message"):
        if isinstance(found, dict):
            found = cast("dict[str, Any]", found).get(name, found)
    return one_line(found, 200) if isinstance(found, str) else ""


def _searxng_asked(query: Query) -> Asked:
    search = urlencode({"q": query.text, "format": "json"})
    return Asked(url=f"{query.base}/search?{search}", headers=_bearer(query))


def _searxng_hits(body: bytes) -> Sequence[Hit]:
    found = _object(body)
    hits = _hits(found.get("results"), "content")
    silent = found.get("unresponsive_engines")
    if not hits and silent:
        names = one_line(", ".join(map(_engine, cast("list[object]", silent))), 200)
        raise Unusable(f"got no answer from {names}", "engines of its settings.yml")
    return hits


def _engine(one: object) -> str:
    """Name an engine that did not answer, and why: they come as pairs."""
    return ": ".join(map(str, cast("list[object]", one))) if isinstance(one, list) else str(one)


def _brave_asked(query: Query) -> Asked:
    search = {"q": query.text, "count": query.most, "text_decorations": "false"}
    return Asked(
        url=f"{query.base}/res/v1/web/search?{urlencode(search)}",
        headers={"Accept": "application/json", "X-Subscription-Token": query.key},
    )


def _brave_hits(body: bytes) -> Sequence[Hit]:
    """Read the pages; where none was found, there is no `web`."""
    found = _object(body)
    if found.get("type") == "search" and "web" not in found:
        return ()
    web = found.get("web")
    listed = cast("dict[str, Any]", web).get("results") if isinstance(web, dict) else None
    return _hits(listed, "description", _text)


def _tavily_asked(query: Query) -> Asked:
    wanted = {"query": query.text, "max_results": query.most, "search_depth": "basic"}
    return Asked(
        url=f"{query.base}/search",
        method="POST",
        headers={"Content-Type": "application/json", **_bearer(query)},
        body=orjson.dumps(wanted),
    )


def _tavily_hits(body: bytes) -> Sequence[Hit]:
    return _hits(_object(body).get("results"), "content")


def _duckduckgo_asked(query: Query) -> Asked:
    return Asked(url=f"{query.base}/html/?{urlencode({'q': query.text})}")


def _duckduckgo_hits(body: bytes) -> Sequence[Hit]:
    """Read the page for browsers without scripts; only one without results may be a challenge."""
    page = body.decode(errors="replace")
    hits = [*_found_in(page)]
    if hits or "no-results" in page or "result--no-result" in page:
        return hits
    if 'class="anomaly-modal' in page or "duckduckgo.com/anomaly.js" in page:
        raise Unusable(
            "takes this node for a robot, and wants a person to prove otherwise",
            f"try again in an hour, or {_OTHER}",
        )
    raise Unusable("answered with a page in which no results can be found", _OTHER)


def _found_in(page: str) -> Iterator[Hit]:
    """Go from link to link: a result is its title's link, and the one with its words behind it."""
    title, url = "", ""
    for head, content in _links(page):
        kinds = _attribute(head, "class").split()
        if "result__a" in kinds:
            title, url = one_line(_text(content), _TITLE), _led_to(_attribute(head, "href"))
        elif "result__snippet" in kinds and title and url:
            yield Hit(title=title, url=url, snippet=one_line(_text(content), _SNIPPET))
            title, url = "", ""


def _links(page: str) -> Iterator[tuple[str, str]]:
    """Cut the page at its links. No expression searches it: some take forever on bad pages."""
    for piece in page.split("<a ")[1:]:
        head, _, rest = piece.partition(">")
        yield head, rest.partition("</a>")[0]


def _attribute(head: str, name: str) -> str:
    return html.unescape(head.partition(f'{name}="')[2].partition('"')[0][: 2 * _URL])


def _led_to(href: str) -> str:
    """Find where a link really leads: they go by way of a counter, and advertisements by another.

    An advertisement leads nowhere.
    """
    try:
        parts = urlsplit(href)
        aims = parse_qs(parts.query).get("uddg") if parts.path == "/l/" else None
    except ValueError:
        return ""
    url = aims[0] if aims else href
    return "" if "duckduckgo.com/y.js" in url else _address(url)


def _bearer(query: Query) -> dict[str, str]:
    return {"Authorization": f"Bearer {query.key}"} if query.key else {}


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        kind = "in HTML" if body.lstrip()[:1] == b"<" else "with something else"
        raise Unusable(f"answered {kind} instead of JSON") from None
    if not isinstance(found, dict):
        raise Unusable("answered with JSON that is no list of results")
    return cast("dict[str, Any]", found)


def _hits(entries: object, snippet: str, plain: Callable[[str], str] = str) -> Sequence[Hit]:
    if not isinstance(entries, list):
        raise Unusable("answered with JSON that has no results in it")
    found = [_hit(one, snippet, plain) for one in cast("list[object]", entries)]
    hits = [one for one in found if one]
    if found and not hits:
        raise Unusable("answered with results that have neither title nor address")
    return hits


def _hit(one: object, snippet: str, plain: Callable[[str], str]) -> Hit | None:
    if not isinstance(one, dict):
        return None
    fields = cast("dict[str, Any]", one)
    title, url, words = (fields.get(name) for name in ("title", "url", snippet))
    if not (isinstance(title, str) and isinstance(url, str) and _address(url)):
        return None
    words = one_line(plain(words), _SNIPPET) if isinstance(words, str) else ""
    return Hit(title=one_line(plain(title), _TITLE), url=url, snippet=words)


def _address(url: str) -> str:
    """Give an address back if it is one: nothing else goes where an address is expected."""
    whole = url.startswith(("http://", "https://")) and one_line(url, _URL) == url
    return url if whole and " " not in url else ""


def _text(content: str) -> str:
    """Read a piece of HTML as text."""
    return html.unescape(_TAG.sub("", content[: 4 * _SNIPPET]))


ENGINES: Final[Mapping[str, Engine]] = {
    "searxng": Engine(
        title="SearXNG",
        ask=_searxng_asked,
        read=_searxng_hits,
        refusals={403: ("does not answer in JSON", "json in search.formats of its settings.yml")},
    ),
    "brave": Engine(
        title="Brave",
        ask=_brave_asked,
        read=_brave_hits,
        home="https://api.search.brave.com",
        key="BRAVE_API_KEY",
        refusals={422: ("does not accept the key or the query", "tools.web_search.api_key")},
    ),
    "tavily": Engine(
        title="Tavily",
        ask=_tavily_asked,
        read=_tavily_hits,
        home="https://api.tavily.com",
        key="TAVILY_API_KEY",
        refusals={
            432: ("has no searches left in the plan of this key", "another plan, at Tavily"),
            433: ("has reached the limit that is set for this key", "another limit, at Tavily"),
        },
    ),
    "duckduckgo": Engine(
        title="DuckDuckGo",
        ask=_duckduckgo_asked,
        read=_duckduckgo_hits,
        home="https://html.duckduckgo.com",
        read_at=frozenset({_OK, _ACCEPTED}),
    ),
}
