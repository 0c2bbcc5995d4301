"""A peer as a source: one tool, which sends it a message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import SourceFailed
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Trust
from openfang.core.values import dataclass
from openfang.registry.classify import ForeignTool, classified_tool, classify
from openfang.sources.a2a.card import said
from openfang.sources.a2a.client import open_client
from openfang.sources.a2a.errand import Errand
from openfang.sources.a2a.parts import PART

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.registry.rules import Rules
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.client import Client
    from openfang.sources.a2a.errand import Around
    from openfang.sources.a2a.wire import Wire

CARD: Final = "openfang/card"
_FROM_OUTSIDE: Final = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT
_LONGEST: Final = 4_000
# What a peer is called here says nothing of what it does.
_AN_AGENT: Final = "agent"
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What to tell the agent."},
        "context": {
            "type": "string",
            "maxLength": 200,
            "description": "The conversation to go on with, as an earlier result named it.",
        },
        "task": {
            "type": "string",
            "maxLength": 200,
            "description": "A task that asked something; without a message, one to wait for.",
        },
        "parts": {
            "type": "array",
            "items": PART,
            "maxItems": 1000,
            "description": (
                'What comes with it: {"type": "text", "text": ...}, {"type": "data", "data": ...},'
                ' or {"type": "file"} with data in base64 or a uri.'
            ),
        },
        "metadata": {"type": "object", "description": "Anything else that it is told."},
        "cancel": {"type": "boolean", "description": "End the task; nothing is told."},
    },
    "additionalProperties": False,
}


def tool_of(name: str, card: Card, trust: Trust, rules: Rules) -> Tool:
    """Weigh what a card says as any foreign tool is weighed; its digest is what is pinned."""
    foreign = ForeignTool(
        kind=Kind.A2A,
        source=name,
        name=name,
        title=card.name,
        description=_description(name, card),
        input_schema=_SCHEMA,
        annotations={"openWorldHint": True, CARD: f"sha256:{card.digest}"},
        remote=True,
    )
    verdict = classify(replace(foreign, name=_AN_AGENT), trust=trust, rules=rules)
    tool = classified_tool(foreign, verdict, trust=trust)
    return replace(tool, labels=tool.labels | _FROM_OUTSIDE, card=said(card.raw))


def _description(name: str, card: Card) -> str:
    # With a colon behind it, a name such as "Assistant" would stand there like a speaker's.
    about = f" - {card.description}" if card.description else ""
    skills = (f"- {one.name}: {one.description}".rstrip(": ") for one in card.skills)
    lines = (f"[A2A:{name}] {card.name}{about}", *(("Skills:", *skills) if card.skills else ()))
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


@dataclass(slots=True)
class _Known:
    """A peer that has introduced itself, and how it is spoken to."""

    wire: Wire
    card: Card
    tool: Tool
    client: Client | None = None

    async def opened(self) -> Client:
        if self.client is None:
            self.client = await open_client(self.wire, self.card)
        return self.client


class A2aSource:
    """One peer. Until it has introduced itself, it offers nothing."""

    def __init__(self, name: str, around: Around, *, trust: Trust = Trust.LOW) -> None:
        self._name = name
        self._around = around
        self._trust = trust
        self._known: _Known | None = None

    @property
    def name(self) -> str:
        """The peer's name here."""
        return self._name

    @property
    def card(self) -> Card | None:
        """What it said of itself last."""
        return self._known.card if self._known else None

    def introduce(self, wire: Wire, card: Card, rules: Rules) -> bool:
        """Take a card, and say whether it makes another tool than the one before."""
        before = self._known
        tool = tool_of(self._name, card, self._trust, rules)
        self._known = _Known(wire, card, tool)
        return before is None or before.tool != tool

    def tools(self) -> Sequence[Tool]:
        """The peer itself."""
        return [self._known.tool] if self._known else []

    async def execute(self, admitted: Admitted) -> Result:
        """Send it a message, and wait for what becomes of that."""
        self._around.check(admitted)
        try:
            client = await self._admitted(admitted).opened()
            ledger = self._around.ledger
            return await Errand(self._name, client, admitted, self._around, ledger).run()
        except SourceFailed as failed:
            raise SourceFailed(
                f"The agent {self._name} cannot be spoken to: {failed.message}",
                way_out=failed.way_out or f"openfang a2a discover {self._name}",
            ) from failed

    def _admitted(self, admitted: Admitted) -> _Known:
        """Give the peer if it is still the one that was admitted: an approval may take its time."""
        known = self._known
        if known is None:
            raise SourceFailed(f"The agent {self._name} has not introduced itself yet.")
        if admitted.tool.annotations.get(CARD) != known.tool.annotations[CARD]:
            raise SourceFailed(
                "its card changed after this call was admitted.",
                way_out=f"openfang tools accept {known.tool.id}, then call it again",
            )
        return known
