"""This node as a lender: whom it believes, what it lends, and what it writes down of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.errors import AuditUnavailable, Rejected, Unauthenticated
from openfang.core.events import CALL_SERVED, Record
from openfang.core.values import dataclass
from openfang.protocols.mcp.lent import member_in

if TYPE_CHECKING:
    from openfang.app.cluster.signing import Claim
    from openfang.app.cluster.singletons import Singletons
    from openfang.protocols.mcp.messages import Ask
    from openfang.sources.mcp.lending import Lending

_NO_MEMBER = "openfang nodes list shows who is a member, and alive"


@dataclass(frozen=True, slots=True)
class NodeLender:
    """Lends the servers that only this node runs."""

    once: Singletons

    def claim(self, header: bytes | None, method: str, target: str) -> Claim:
        """Name the living member that signed it, or refuse."""
        text = header.decode("latin-1") if header else ""
        try:
            claim = self.once.signing.claim(text, method=method, target=target)
        except Unauthenticated as refused:
            raise Rejected(
                refused.message, status=403, rule=refused.rule, way_out=refused.way_out
            ) from refused
        if not self.alive(claim.node):
            raise Rejected(
                f"{claim.node} is no member that is alive.",
                status=403,
                rule="member",
                way_out=_NO_MEMBER,
            )
        return claim

    def alive(self, node: str) -> bool:
        """Whether a node is still there."""
        return node in self.once.members.alive()

    def lent(self, server: str, term: int) -> Lending:
        """Find a server that runs here, under this very term, or refuse."""
        lending = self.once.lending(server, term)
        if lending is None:
            raise Rejected(
                f"{self.once.members.me} does not have the server {server} (term {term}).",
                status=409,
                rule="lease",
                way_out="ask the node that has it now",
            )
        return lending

    async def noted(self, node: str, server: str, term: int, ask: Ask) -> None:
        """Put on record that a call of another node is executed here, before it is."""
        asked = ask.params.get("name") if ask.method == "tools/call" else ask.method
        record = Record(
            event=CALL_SERVED,
            call_id=str(member_in(ask.params).get("call", "")),
            payload={"node": node, "server": server, "asked": str(asked), "term": term},
        )
        try:
            await self.once.parts.broker.append([record])
        except AuditUnavailable as error:
            raise Rejected(
                error.message, status=503, rule="audit_unavailable", way_out=error.way_out
            ) from error
