"""A server's resources, templates and prompts, as it lists them.

They are learnt apart from its tools: whatever goes wrong here, those are there. Entries stay as the
wire has them; what no client could read is left out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio
import orjson
from anyio import to_thread

from openfang.core.news import Listed
from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.registry.spoken import Topic
from openfang.safety.schemas import MAX_SCHEMA_DEPTH
from openfang.safety.sizes import measure
from openfang.sources.mcp.abilities import PROMPT, READ
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.pace import Pace
    from openfang.sources.mcp.spec import ServerSpec

Entry: TypeAlias = "Mapping[str, Any]"
_log = logging.getLogger("openfang.mcp")
_LARGEST_ENTRY: Final = 65_536
_LONGEST_KEY: Final = 8_192
# What else an entry may say of itself, and as what.
_FIELDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "name": str,
    "title": str,
    "description": str,
    "mimeType": str,
    "size": (int, float),
    "annotations": dict,
    "icons": list,
    "arguments": list,
    "_meta": dict,
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One list: how it is asked for, what tells its entries apart, and who announces it."""

    method: str
    key: str
    identity: str
    ability: str
    used_by: str
    news: Listed
    topic: Topic


_RESOURCES: Final = _Kind(
    "resources/list", "resources", "uri", "resources", READ, Listed.RESOURCES, Topic.RESOURCE
)
_TEMPLATES: Final = _Kind(
    "resources/templates/list",
    "resourceTemplates",
    "uriTemplate",
    "resources",
    READ,
    Listed.RESOURCES,
    Topic.TEMPLATE,
)
_PROMPTS: Final = _Kind(
    "prompts/list", "prompts", "name", "prompts", PROMPT, Listed.PROMPTS, Topic.PROMPT
)
_KINDS: Final = (_RESOURCES, _TEMPLATES, _PROMPTS)


class Judge(Protocol):
    """Who says what of a server's words may be passed on."""

    def foresee(self, topic: Topic, server: str, entries: Mapping[str, Entry]) -> None:
        """Look at new entries in advance, beside the loop."""
        ...

    def sifted(self, topic: Topic, server: str, entries: Mapping[str, Entry]) -> Collection[str]:
        """Name those that may be passed on."""
        ...

    def holds(self, topic: Topic, server: str, name: str = "") -> bool:
        """Whether this may not."""
        ...


class _Believing:
    """Passes everything on: for who speaks to a server without a node around."""

    def foresee(self, topic: Topic, server: str, entries: Mapping[str, Entry]) -> None:
        """Look at nothing."""

    def sifted(self, topic: Topic, server: str, entries: Mapping[str, Entry]) -> Collection[str]:
        """Name them all."""
        del topic, server
        return entries.keys()

    def holds(self, topic: Topic, server: str, name: str = "") -> bool:
        """Hold nothing."""
        del topic, server, name
        return False


BELIEVING: Final = _Believing()


class Lists:
    """What one server listed last. `news` hears when that is not what it was before.

    What the judge holds back is not shown; `sift` asks it again.
    """

    def __init__(
        self,
        spec: ServerSpec,
        pace: Pace,
        *,
        clean: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
        news: Callable[[Listed], None],
        judge: Judge,
    ) -> None:
        self.known = anyio.Event()
        self._spec = spec
        self._pace = pace
        self._clean = clean
        self._news = news
        self._judge = judge
        self._stale = anyio.Event()
        self._found: dict[_Kind, tuple[Entry, ...]] = {}
        self._passed: dict[_Kind, tuple[Entry, ...]] = {}
        self._left_out: dict[_Kind, int] = {}

    @property
    def resources(self) -> tuple[Entry, ...]:
        """What can be read."""
        return self._passed.get(_RESOURCES, ())

    @property
    def templates(self) -> tuple[Entry, ...]:
        """What can be read once something is filled in."""
        return self._passed.get(_TEMPLATES, ())

    @property
    def prompts(self) -> tuple[Entry, ...]:
        """What can be said."""
        return self._passed.get(_PROMPTS, ())

    def inherit(self, former: Lists) -> None:
        """Show what was known before, until the server is asked."""
        self._found, self._passed = dict(former._found), dict(former._passed)

    def refresh(self) -> None:
        """Ask for them again, as soon as that is no burden."""
        self._stale.set()

    def sift(self) -> None:
        """Ask again what of it may be passed on."""
        self._take(self._found)

    def clear(self) -> None:
        """Forget them all: the server has gone."""
        self._take({})

    async def keep(self, connection: Connection) -> None:
        """Learn them, and again whenever they changed or have not been looked at for long."""
        kinds = [kind for kind in _KINDS if self._wants(kind, connection)]
        self._take({kind: self._found[kind] for kind in kinds if kind in self._found})
        try:
            while kinds:
                self._stale = anyio.Event()
                began = anyio.current_time()
                await self._learn(connection, kinds)
                self.known.set()
                cost = anyio.current_time() - began
                await anyio.sleep(max(self._pace.breath, self._pace.share * cost))
                with anyio.move_on_after(self._pace.refresh):
                    await self._stale.wait()
        finally:
            self.known.set()

    def _wants(self, kind: _Kind, connection: Connection) -> bool:
        return kind.ability in connection.abilities and self._spec.shows(kind.used_by)

    async def _learn(self, connection: Connection, kinds: list[_Kind]) -> None:
        """Ask for each; one that fails stays as it was."""
        found = dict(self._found)
        for kind in kinds:
            try:
                with anyio.fail_after(self._spec.timeout):
                    listed = await connection.entries(kind.method, kind.key)
            except RpcError as error:
                if error.code == METHOD_NOT_FOUND:
                    found[kind] = ()
                self._missed(kind, str(error))
            except (Lost, TimeoutError) as error:
                self._missed(kind, str(error) or f"no answer in {self._spec.timeout:g} s")
            else:
                found[kind] = await to_thread.run_sync(self._usable, kind, listed)
        self._take(found)

    def _missed(self, kind: _Kind, why: str) -> None:
        _log.debug("%s did not list its %s: %s", self._spec.name, kind.key, why)

    def _usable(self, kind: _Kind, listed: list[dict[str, Any]]) -> tuple[Entry, ...]:
        """Leave out what cannot be used, and what is listed twice."""
        found: dict[str, Entry] = {}
        passing = self._clean(listed)
        for entry in passing:
            plain = {name: value for name, value in entry.items() if value is not None}
            if _well_formed(plain, kind.identity):
                found.setdefault(plain[kind.identity], plain)
        self._tell(kind, len(passing) - len(found))
        self._judge.foresee(kind.topic, self._spec.name, found)
        return tuple(found.values())

    def _tell(self, kind: _Kind, left_out: int) -> None:
        """Say how many cannot be used, when that is news."""
        if left_out != self._left_out.get(kind, 0):
            self._left_out[kind] = left_out
            _log.warning("%d of the %s of %s cannot be used", left_out, kind.key, self._spec.name)

    def _take(self, found: dict[_Kind, tuple[Entry, ...]]) -> None:
        before, self._found = self._passed, found
        now = self._passed = {kind: self._sifted(kind, found.get(kind, ())) for kind in _KINDS}
        changed = {kind.news for kind in _KINDS if before.get(kind, ()) != now[kind]}
        for news in sorted(changed, key=lambda one: one.value):
            self._news(news)

    def _sifted(self, kind: _Kind, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        named = {entry[kind.identity]: entry for entry in entries}
        passed = self._judge.sifted(kind.topic, self._spec.name, named)
        return tuple(entry for name, entry in named.items() if name in passed)


def _well_formed(entry: dict[str, Any], identity: str) -> bool:
    """Whether every client would understand it."""
    key = entry.get(identity)
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
        return False
    if "name" not in entry or measure(entry)[0] > MAX_SCHEMA_DEPTH:
        return False
    if not all(isinstance(entry[name], kind) for name, kind in _FIELDS.items() if name in entry):
        return False
    return _named(entry.get("arguments", [])) and len(orjson.dumps(entry)) <= _LARGEST_ENTRY


def _named(arguments: list[Any]) -> bool:
    return all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in arguments)  # pyright: ignore[reportUnknownMemberType] - any JSON
