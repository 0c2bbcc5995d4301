"""`web_fetch`: one page of the web, as Markdown, marked as somebody else's words."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from anyio import to_thread

from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.sources.builtin.addresses import url_granted
from openfang.sources.builtin.external import marked
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Admitted
    from openfang.host.http import Response

# Python's own, and those that only exist for host names: no page is written in them, some are slow.
_NOT_FOR_PAGES = frozenset(
    {"unicode-escape", "raw-unicode-escape", "utf-7", "idna", "punycode", "undefined"}
)
_FETCH = builtin_tool(
    "web_fetch",
    "Fetch a page by HTTP GET. HTML comes back as Markdown, marked as external content.",
    object_schema(
        ["url"],
        url={"type": "string", "format": "uri", "maxLength": 8192, "description": "http or https."},
        raw={"type": "boolean", "default": False, "description": "Leave HTML as it is."},
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"network.http"}),
    sink=Sink(effect=Effect.EXTERNAL_READ, targets=("url",)),
    labels=Labels.EXTERNAL_NETWORK,
    idempotent=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """How far one fetch may go."""

    allow_private: bool = False
    timeout: float = 30.0
    max_bytes: int = 10_000_000


def web_tools(limits: WebLimits) -> Sequence[Builtin]:
    """The family of the web."""
    return [Builtin(_FETCH, _Web(limits).fetch, url_granted)]


@dataclass(frozen=True, slots=True)
class _Web:
    limits: WebLimits

    async def fetch(self, admitted: Admitted) -> Result:
        from openfang.host.http import HttpClient, Request  # noqa: PLC0415 - aiohttp takes 0.4 s

        arguments = admitted.call.arguments
        request = Request(
            url=arguments["url"],
            allow_hosts=admitted.call.caller.grants.network,
            headers={"Accept": "text/html,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"},
            limit=self.limits.max_bytes,
            timeout=min(self.limits.timeout, admitted.timeout),
            allow_private=self.limits.allow_private,
        )
        async with HttpClient() as client:
            response = await client.fetch(request)
        text = await to_thread.run_sync(_readable, response, bool(arguments.get("raw")))
        fields = {"status": response.status, "url": response.url}
        return text_result(_told(response, text), structured=fields)


def _readable(response: Response, raw: bool) -> str:  # noqa: FBT001 - run in a thread, positionally
    kind = (response.header("content-type") or "").lower()
    text = _decoded(response.body, _charset(kind))
    if raw or ("html" not in kind and not text.lstrip()[:15].lower().startswith("<!doctype html")):
        return text
    return _markdown(text)


def _decoded(body: bytes, charset: str) -> str:
    """Read the body as text that can be written again: no half of a surrogate pair is left."""
    return body.decode(charset, errors="replace").encode(errors="replace").decode()


def _markdown(html: str) -> str:
    from html_to_markdown import (  # noqa: PLC0415 - only pages need it
        ConversionOptions,
        PreprocessingOptions,
        PreprocessingPreset,
        convert,
    )

    cleaned = PreprocessingOptions(
        enabled=True,
        preset=PreprocessingPreset.AGGRESSIVE,
        remove_navigation=True,
        remove_forms=True,
    )
    return convert(html, ConversionOptions(preprocessing=cleaned)).content or ""


def _charset(content_type: str) -> str:
    _, _, name = content_type.partition("charset=")
    name = name.split(";")[0].strip(" \"'") or "utf-8"
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return "utf-8"
    # Not every codec makes text: rot13, hex and gzip do not.
    text = getattr(found, "_is_text_encoding", False)
    return found.name if text and found.name not in _NOT_FOR_PAGES else "utf-8"


def _told(response: Response, text: str) -> str:
    cut = "; the body was cut at the limit" if response.truncated else ""
    return f"HTTP {response.status} {response.url}{cut}\n{marked(text)}"
