"""How a client and we agree on a revision, and what we say that we can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.edges.mcp.ports import COMPLETIONS, PROMPTS, SUBSCRIPTIONS
from openfang.protocols.mcp.versions import HANDSHAKE, MODERN, NEWEST_HANDSHAKE, OLDEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.ports import Offer

LIST_SECONDS: Final = 10
PRIVATE: Final = "private"  # what is offered depends on who asks
_ONE_SHOT: Final[Mapping[str, Any]] = {"tools": {}}


async def initialize(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Begin a talk, and remember what the client says of itself."""
    talk = context.talk
    assert talk is not None  # noqa: S101 - the era has them
    talk.version = negotiated(params.get("protocolVersion"))
    talk.capabilities = _mapping(params.get("capabilities"))
    answer: dict[str, Any] = {
        "protocolVersion": talk.version,
        "capabilities": _capabilities(context.offer) if talk.lasting else _ONE_SHOT,
        "serverInfo": dict(context.offer.info),
    }
    if talk.lasting and context.offer.instructions:
        answer["instructions"] = context.offer.instructions
    return answer


def _capabilities(offer: Offer) -> dict[str, Any]:
    """Say what can be there for this client: nothing that it would only be refused."""
    features = offer.features
    watched = {"subscribe": True} if SUBSCRIPTIONS in features else {}
    prompts = {"prompts": {"listChanged": True}} if PROMPTS in features else {}
    completions: dict[str, Any] = {"completions": {}} if COMPLETIONS in features else {}
    return {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, **watched},
        **prompts,
        **completions,
        "logging": {},
    }


def negotiated(wanted: object) -> str:
    """Choose the revision of a talk: of the first for who names none, else theirs or the newest."""
    if wanted is None:
        return OLDEST
    return wanted if isinstance(wanted, str) and wanted in HANDSHAKE else NEWEST_HANDSHAKE


async def discover(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Say which revisions stand alone, and what is offered."""
    del params
    offer = context.offer
    answer: dict[str, Any] = {
        "supportedVersions": list(MODERN),
        "capabilities": _capabilities(offer),
        "ttlMs": LIST_SECONDS * 1000,
        "cacheScope": PRIVATE,
    }
    return {**answer, "instructions": offer.instructions} if offer.instructions else answer


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
