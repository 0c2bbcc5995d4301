"""What one caller is offered in one place: the lists, and the calls behind them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.app.auth.identify import note_refusal
from openfang.app.local import Local
from openfang.app.offering import search
from openfang.app.offering.addresses import names_addresses
from openfang.app.offering.prospects import features
from openfang.app.offering.terms import WHOLE
from openfang.core.errors import NotFound, OpenFangError, Rejected
from openfang.core.ids import Kind, tool_id
from openfang.core.news import Listed
from openfang.core.results import Result
from openfang.core.values import dataclass
from openfang.edges.mcp.results import check_fault
from openfang.pipeline.catalog import NO_TOOL
from openfang.pipeline.shape import URI_PREFIX
from openfang.policy.selection import NOTHING
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND
from openfang.sources.mcp.abilities import COMPLETE, PROMPT, READ, SUBSCRIBE, UNSUBSCRIBE
from openfang.storage.state import grow_run
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from openfang.app.offering.federation import Federation
    from openfang.app.offering.offers import Offers
    from openfang.app.offering.terms import Terms
    from openfang.app.offering.views import View
    from openfang.core.calls import Caller
    from openfang.core.labels import Labels
    from openfang.core.news import Hearer, Updated
    from openfang.core.session import Options
    from openfang.core.trace import Chain, Claim
    from openfang.edges.mcp.ports import Offered, Place

_log = logging.getLogger("openfang.mcp")
EDGE = "mcp"
_SHOWN = 200
_NO_IDEA = Result(structured={"values": []})


@dataclass(frozen=True, slots=True)
class PlacedOffer:
    """What one caller is offered in one place: as it is whenever it is asked."""

    node: Offers
    caller: Caller
    place: Place
    chain: Chain

    @property
    def by(self) -> str:
        """The node that offers it."""
        return self.node.parts.hops.node

    @property
    def info(self) -> Mapping[str, Any]:
        """Who offers it."""
        return self._terms.info

    @property
    def instructions(self) -> str:
        """How it wants to be used: in the words of the one server, where there is but one."""
        terms, servers = self._terms, self.node.parts.servers
        source = servers.running.get(terms.server) if servers else None
        if terms.instructions or source is None:
            return terms.instructions
        seen = any(one.tool.source == source.name for one in self._view.tools)
        return source.instructions if seen else ""

    @property
    def features(self) -> frozenset[str]:
        """Which of the features can be there, now or later."""
        return features(self.node.parts, self._bound)

    def tools(self) -> Sequence[Offered]:
        """List the tools."""
        return self._listed.tools

    def find(self, name: str) -> Offered | None:
        """Find one that is listed, by the name it has here."""
        return self._listed.named.get(name)

    def resources(self) -> Sequence[Mapping[str, Any]]:
        """List the resources."""
        return self._federation.addresses.resources

    def templates(self) -> Sequence[Mapping[str, Any]]:
        """List the templates of resources."""
        return self._federation.addresses.templates

    def prompts(self) -> Sequence[Mapping[str, Any]]:
        """List the prompts."""
        return self._federation.prompts.listed

    async def settled(self) -> None:
        """Wait, but not long, until the lists can be complete."""
        await self.node.settling.wait(self._bound)

    async def call(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        """Call a tool: what is not offered is as unknown as what does not exist."""
        terms = self._terms
        if not terms.search:
            return await self._call(terms, name, arguments, options)
        if name == search.SEARCH.name:
            await self.settled()
            caller = search.searcher(self._bound, self._view)
            return await self._invoke(caller, search.SEARCH.tool.id, arguments, options)
        if name == search.CALL.name:
            return await self._call(terms, *search.chosen(arguments), options)
        nobody = replace(self._bound, within=NOTHING)
        return await self._invoke(nobody, name, arguments, options)

    async def _call(
        self, terms: Terms, name: str, arguments: Mapping[str, Any], options: Options
    ) -> Result:
        caller = self.node.places.bound_to_tools(self.caller, terms)
        find, sees = self.node.parts.registry.find, self.node.parts.catalog.sees
        tool = self._meant(terms, name, caller)
        found = find(tool)
        if not sees(caller, found or NO_TOOL) or found is None:
            await self.settled()
            await self.node.settling.wake(caller, name)
            tool = self._meant(self._terms, name, caller)
            found = find(tool)
        result = await self._invoke(caller, tool, arguments, options)
        if found is None or found.kind is not Kind.MCP:
            return result
        return self._readdressed(found.source, result)

    def _meant(self, terms: Terms, name: str, caller: Caller) -> str:
        """Give the id of what has this name here; any other name means what it means anywhere."""
        if terms is WHOLE:
            return name
        view = self.node.views.of(caller, self.place, terms)
        found = view.named.get(name)
        if found is None and terms.agent is not None:
            found = view.as_plugins.get(name)
        return found.tool.id if found else name

    async def read(self, uri: str, options: Options) -> Result:
        """Read a resource: one of a server's, or the whole of a result that was cut."""
        if uri.startswith(URI_PREFIX):
            return await self._whole(uri, options)
        server, own = await self._owner(uri)
        result = await self._operate(server, READ, {"uri": own}, options)
        return self._readdressed(server, result)

    async def _whole(self, uri: str, options: Options) -> Result:
        """Read what is kept: what it carries enters the run that reads it, as any result does."""
        parts = self.node.parts
        local = Local(parts, self.caller, self.chain, EDGE)
        found = await local.kept(uri)
        if found is None:
            raise await self._missing("resource", uri)
        body, labels = found
        run = local.make(READ, {}, options).run_id
        if run is not None:
            grown = grow_run(run, labels, parts.clock.time_ns())
            await parts.writer.write(Unit(statements=(grown,)))
        content = {"uri": uri, "mimeType": "application/json", "text": body.decode()}
        return Result(content=({"type": "resource", "resource": content},), labels=labels)

    async def _owner(self, uri: str) -> tuple[str, str]:
        found = self._federation.addresses.find(uri)
        if found is None:
            await self.settled()
            found = self._federation.addresses.find(uri)
        if found is None:
            raise await self._missing("resource", uri)
        return found

    def _readdressed(self, server: str, result: Result) -> Result:
        if not names_addresses(result.content):
            return result
        content = self._federation.addresses.readdressed(server, result.content)
        return replace(result, content=content)

    async def prompt(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        """Get a prompt: one of a server's, or what a skill says."""
        prompts = self._federation.prompts
        if reader := prompts.read_by(name):
            return _as_messages(await self._invoke(self._bound, reader, {}, options))
        found = prompts.find(name)
        if found is None:
            await self.settled()
            found = self._federation.prompts.find(name)
        if found is None:
            raise await self._missing("prompt", name)
        server, own = found
        given = {"name": own, "arguments": dict(arguments)}
        return self._readdressed(server, await self._operate(server, PROMPT, given, options))

    async def complete(self, params: Mapping[str, Any], options: Options) -> Result:
        """Complete an argument; a server that cannot suggests nothing."""
        server, ref = await self._referred(params["ref"])
        if not self._may(server, COMPLETE):
            await self._note_closed(server)
            return _NO_IDEA
        known = {key: params[key] for key in ("argument", "context") if key in params}
        given = {**known, "ref": ref}
        result = await self._operate(server, COMPLETE, given, options)
        if result.fault is not None and result.fault.get("code") == METHOD_NOT_FOUND:
            return _NO_IDEA
        return result

    def _may(self, server: str, operation: str) -> bool:
        """Whether a server can be asked this, and by this caller."""
        parts = self.node.parts
        tool = parts.registry.find(tool_id(Kind.MCP, server, operation))
        return tool is not None and parts.catalog.sees(self._bound, tool)

    async def _note_closed(self, server: str) -> None:
        """Put on record that a server can complete, and somebody wanted it who may not."""
        if self.node.parts.registry.find(tool_id(Kind.MCP, server, COMPLETE)) is not None:
            reason = f"{self.caller.id} may not have {server} complete anything here."
            await note_refusal(self.node.parts, self.caller.id, "unknown_completion", reason)

    async def _referred(self, ref: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Find whose prompt or template is meant, and what that one calls it."""
        match ref:
            case {"type": "ref/prompt", "name": str(name)}:
                key, kind, found = "name", "prompt", self._federation.prompts.find(name)
            case {"type": "ref/resource", "uri": str(name)}:
                key, kind, found = "uri", "resource", self._federation.addresses.find_template(name)
            case _:
                raise NotFound("ref names no prompt and no resource.", way_out="name one of a list")
        if found is None:
            raise await self._missing(kind, name)
        return found[0], {**ref, key: found[1]}

    async def subscribe(self, uri: str, options: Options) -> None:
        """Have a resource watched for this caller."""
        server, own = await self._owner(uri)
        if not self._may(server, SUBSCRIBE):
            raise Rejected(
                f"{server} tells nobody of changes to its resources.", status=400, rule="unwatched"
            )
        check_fault(await self._operate(server, SUBSCRIBE, {"uri": own}, options))
        self.node.subscriptions.add((self.caller.id, self.place, uri), (server, own))

    async def unsubscribe(self, uri: str, options: Options) -> None:
        """Have it watched no longer; the server hears of it when nobody else has."""
        watched = self.node.subscriptions.remove((self.caller.id, self.place, uri))
        if watched is None:
            return
        server, own = watched
        try:
            await self._operate(server, UNSUBSCRIBE, {"uri": own}, options)
        except OpenFangError as error:
            _log.info("%s goes on watching %s: %s", server, own, error.message)

    def vouch(self, claims: Sequence[Claim], labels: Labels) -> str:
        """Sign what is said of an answer, if a node signed what was asked."""
        return self.node.parts.hops.vouch(claims, labels)

    def watch(self, heard: Hearer) -> Callable[[], None]:
        """Hear of changes to what is offered."""
        key = (self.place, self.caller.grants, self.caller.within)
        return self.node.watchers.add(key, self, heard)

    def look(self, listed: Listed) -> object:
        """Give a list as it is now, for who compares it with what it was."""
        match listed:
            case Listed.TOOLS:
                return self._listed
            case Listed.PROMPTS:
                return self.prompts()
            case Listed.RESOURCES:
                return self.resources(), self.templates()

    def addresses(self, updated: Updated) -> Collection[str]:
        """Say by which addresses a resource may be known here, if it is."""
        return self._federation.addresses.known_by(updated.server, updated.uri)

    @property
    def _terms(self) -> Terms:
        return self.node.places.terms(self.caller, self.place)

    @property
    def _bound(self) -> Caller:
        return self._terms.bound(self.caller)

    @property
    def _view(self) -> View:
        return self._seen_on(self._terms)

    @property
    def _listed(self) -> View:
        terms = self._terms
        return search.TWO if terms.search else self._seen_on(terms)

    def _seen_on(self, terms: Terms) -> View:
        caller = self.node.places.bound_to_tools(self.caller, terms)
        return self.node.views.of(caller, self.place, terms)

    @property
    def _federation(self) -> Federation:
        terms = self._terms
        return self.node.federations.of(terms.bound(self.caller), self.place, terms)

    async def _operate(
        self, server: str, operation: str, arguments: Mapping[str, Any], options: Options
    ) -> Result:
        tool = tool_id(Kind.MCP, server, operation)
        return await self._invoke(self._bound, tool, arguments, options)

    async def _invoke(
        self, caller: Caller, tool: str, arguments: Mapping[str, Any], options: Options
    ) -> Result:
        local = Local(self.node.parts, caller, self.chain, EDGE)
        return await self.node.parts.pipeline.invoke(local.make(tool, arguments, options))

    async def _missing(self, kind: str, name: str) -> NotFound:
        """Put on record that somebody wanted what is not here, whether or not it is elsewhere."""
        shown = self.node.parts.broker.redact(name[:_SHOWN])
        reason = f"No {kind} {shown} is there."
        await note_refusal(self.node.parts, self.caller.id, f"unknown_{kind}", reason)
        return NotFound(f"No {kind} {name[:_SHOWN]} is there.", way_out=f"{kind}s/list names them")


def _as_messages(result: Result) -> Result:
    """Say what a tool answered in the place of a person."""
    return replace(result, content=tuple({**part, "role": "user"} for part in result.content))
