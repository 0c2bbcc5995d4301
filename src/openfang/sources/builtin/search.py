"""`web_search`: asks the engine that the operator has chosen, and nobody if there is none."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.errors import SourceFailed
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.sources.builtin.external import marked
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Admitted
    from openfang.sources.builtin.engines import Hit

_MOST_KEPT: Final = 256
_FIVE: Final = 5
_NO_PROVIDER: Final = (
    'provider = "searxng", "brave", "tavily" or "duckduckgo" below [tools.web_search] '
    "in config.toml"
)
_SEARCH = builtin_tool(
    "web_search",
    "Search the web. Titles, addresses and snippets come back, marked as external content.",
    object_schema(
        ["query"],
        query={
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "description": "What to look for.",
        },
        max_results={
            "type": "integer",
            "minimum": 1,
            "maximum": 20,
            "default": _FIVE,
            "description": "How many pages at most.",
        },
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"network.http"}),
    sink=Sink(effect=Effect.EXTERNAL_READ, targets=("query",)),
    labels=Labels.EXTERNAL_NETWORK,
    idempotent=True,
)
_Wanted: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """Which engine, where, and how.

    `expand` puts in what the references of the key stand for; it may block, and fail.
    """

    provider: str | None = None
    base_url: str | None = None
    key: str = field(default="", repr=False)
    expand: Callable[[str], str] = str
    allow_private: bool = False
    timeout: float = 15.0
    keep: float = 300.0


def search_tools(searching: Searching, now: Callable[[], float]) -> Sequence[Builtin]:
    """The family of searches; `now` is in seconds that only go forward.

    The operator has named the one host that is asked: nobody needs a network grant for it.
    """
    return [Builtin(_SEARCH, _Search(searching, _Kept(searching.keep, now)).search)]


@dataclass(slots=True)
class _Kept:
    """The last answers, for a while."""

    seconds: float
    now: Callable[[], float]
    answers: OrderedDict[_Wanted, tuple[float, Sequence[Hit]]] = field(
        default_factory=OrderedDict[_Wanted, "tuple[float, Sequence[Hit]]"]
    )

    def get(self, wanted: _Wanted) -> Sequence[Hit] | None:
        until, hits = self.answers.get(wanted, (0.0, ()))
        return hits if hits and self.now() < until else None

    def put(self, wanted: _Wanted, hits: Sequence[Hit]) -> None:
        self.answers.pop(wanted, None)
        self.answers[wanted] = (self.now() + self.seconds, hits)
        while len(self.answers) > _MOST_KEPT:
            self.answers.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Search:
    searching: Searching
    kept: _Kept

    async def search(self, admitted: Admitted) -> Result:
        if self.searching.provider is None:
            raise SourceFailed("No search engine is configured.", way_out=_NO_PROVIDER)
        arguments, space = admitted.call.arguments, admitted.call.caller.space
        query, most = arguments["query"].strip(), int(arguments.get("max_results", _FIVE))
        if not query:
            raise SourceFailed("The query is blank.", way_out="say what to look for")
        # Kept for each caller apart: how fast an answer comes tells nobody what others look for.
        hits = self.kept.get((space, query, most))
        if hits is None:
            hits = await self._found(query, most, admitted.timeout)
            self.kept.put((space, query, most), hits)
        return _told(self.searching.provider, query, hits)

    async def _found(self, query: str, most: int, seconds: float) -> Sequence[Hit]:
        from openfang.sources.builtin.asking import ask  # noqa: PLC0415 - aiohttp takes 0.4 s

        return await ask(self.searching, query, most, seconds)


def _told(provider: str, query: str, hits: Sequence[Hit]) -> Result:
    found: list[dict[str, Any]] = [
        {"title": one.title, "url": one.url, "snippet": one.snippet} for one in hits
    ]
    fields = {"provider": provider, "results": found}
    if not hits:
        return text_result(f"Nothing was found for {query!r}.", structured=fields)
    lines = (f"{n}. {one.title}\n   {one.url}\n   {one.snippet}" for n, one in enumerate(hits, 1))
    listed = marked("\n".join(lines))
    return text_result(f"{len(hits)} found by {provider}:\n{listed}", structured=fields)
