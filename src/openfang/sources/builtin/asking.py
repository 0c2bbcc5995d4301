"""Asks a search engine over HTTP, and says in words what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.core.errors import CallTimedOut, SourceFailed
from openfang.host.http import FetchFailed, HttpClient, Request
from openfang.safety.urls import AddressRefused, parse_target
from openfang.sources.builtin.engines import ENGINES, Engine, Hit, Query, Unusable, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.host.http import Response
    from openfang.sources.builtin.engines import Asked
    from openfang.sources.builtin.search import Searching

_MAX_BYTES: Final = 2_000_000
_REDIRECTS: Final = range(300, 400)
_BROKEN: Final = 500
_KEY: Final = "tools.web_search.api_key"
_BASE: Final = "tools.web_search.base_url"
_REFUSALS: Final = {
    401: ("does not accept the key", _KEY),
    403: ("does not accept the key", _KEY),
    429: ("is asked too often", "try again later"),
}


async def ask(searching: Searching, query: str, most: int, seconds: float) -> Sequence[Hit]:
    """Ask the engine that is configured; whatever is no list of results fails with a way out."""
    engine = ENGINES[searching.provider or ""]
    key = searching.key or (f"${{{engine.key}}}" if engine.key else "")
    wanted = Query(
        text=query,
        most=most,
        base=(searching.base_url or engine.home).rstrip("/"),
        key=await to_thread.run_sync(searching.expand, key),
    )
    try:
        response = await _answer(searching, engine.ask(wanted), min(searching.timeout, seconds))
        _check(engine, response)
        return (await to_thread.run_sync(engine.read, response.body))[:most]
    except Unusable as error:
        raise SourceFailed(f"{engine.title} {error.reason}.", way_out=error.way_out) from None
    except (FetchFailed, CallTimedOut, AddressRefused) as error:
        told = f"{engine.title} cannot be asked: {error.message}."
        raise SourceFailed(told, way_out=error.way_out or _BASE) from error


async def _answer(searching: Searching, asked: Asked, seconds: float) -> Response:
    """Ask the one host that the operator has named: a redirect is followed nowhere."""
    request = Request(
        url=asked.url,
        allow_hosts=(parse_target(asked.url).host,),
        method=asked.method,
        headers=asked.headers,
        body=asked.body,
        limit=_MAX_BYTES,
        timeout=seconds,
        allow_private=searching.allow_private,
        follow=False,
    )
    async with HttpClient() as client:
        return await client.fetch(request)


def _check(engine: Engine, response: Response) -> None:
    """Refuse what is no answer to a search, in words that name the engine and what helps."""
    if response.truncated:
        raise SourceFailed(f"{engine.title} answered with more than {_MAX_BYTES} bytes.")
    if response.status in engine.read_at:
        return
    reason, way_out = _refusal(engine, response)
    stated = said(response.body)
    told = f": {stated}" if stated else "."
    raise SourceFailed(f"{engine.title} {reason} (HTTP {response.status}){told}", way_out=way_out)


def _refusal(engine: Engine, response: Response) -> tuple[str, str]:
    status, wait = response.status, response.header("retry-after") or ""
    known = engine.refusals.get(status) or _REFUSALS.get(status)
    if known and wait.isdecimal():
        return known[0], f"try again in {int(wait[:9])} s"
    if known:
        return known
    if status in _REDIRECTS:
        return "sends the question elsewhere", _BASE
    return ("failed", "try again later") if status >= _BROKEN else ("refuses", _BASE)
