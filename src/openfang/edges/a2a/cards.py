"""The cards of our agents, as JSON: of the first dialect, and of the current one. No I/O here.

A card claims what works where it points to, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from openfang.edges.a2a.ports import Described
from openfang.edges.a2a.versions import OUTPUT_MODES, V03, V1
from openfang.protocols.a2a.extensions import CHAIN
from openfang.protocols.a2a.seed import VERSION
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.a2a.ports import Settings, Skill

Card = dict[str, Any]

RPC: Final = "JSONRPC"
REST: Final = "HTTP+JSON"
_KEY: Final = "key"
_CAPABILITIES: Final = ("streaming", "pushNotifications", "extendedAgentCard")
_CHAIN: Final = (
    "The metadata of a message tells whose call it goes on with: traceparent, openfang/chain."
)
_TEXT: Final = ("text",)
_INPUT_MODES: Final = (*OUTPUT_MODES, "application/octet-stream")
_BEARER: Final = {
    "scheme": "Bearer",
    "description": "A key of this node, or an access token of the issuer that it trusts.",
}
_NOBODY: Final = Described(
    name="openfang",
    title="openfang",
    description="An OpenFang node where no agent answers.",
    version=__version__,
)


def address_of(name: str, settings: Settings) -> str:
    """Where an agent is reached."""
    return f"{settings.base}{settings.path}/agents/{quote(name, safe='')}"


def _seed_address(agent: Described | None, settings: Settings) -> str:
    """Where an agent is reached in the first dialect.

    `tasks/get` is a word of 0.3 too, so that each agent has an address for either of them.
    """
    if agent is None or agent.name == settings.primary:
        return f"{settings.base}{settings.path}"
    return f"{address_of(agent.name, settings)}/seed"


def seed_card(agent: Described | None, settings: Settings) -> Card:
    """Describe an agent in the first dialect; where there is none, the node that has none."""
    shown, there = agent or _NOBODY, agent is not None
    return {
        "name": shown.name,
        "description": shown.description,
        "url": _seed_address(agent, settings),
        "version": VERSION,
        "capabilities": {
            "streaming": there,
            "pushNotifications": False,
            "stateTransitionHistory": there,
        },
        "skills": [_seed_skill(skill) for skill in shown.skills],
        "defaultInputModes": list(_TEXT),
        "defaultOutputModes": list(_TEXT),
    }


def _seed_skill(skill: Skill) -> Card:
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        "examples": list(skill.examples),
    }


def current_card(agent: Described | None, settings: Settings) -> Card:
    """Describe an agent as A2A 1.0 does. What is empty or not so is left out."""
    shown, there = agent or _NOBODY, agent is not None
    return {
        "name": shown.title or shown.name,
        "description": shown.description or f"The agent {shown.name}.",
        "supportedInterfaces": _interfaces(agent, settings),
        "version": shown.version or VERSION,
        "capabilities": dict.fromkeys(_CAPABILITIES, there) | _extensions(agent, settings),
        "securitySchemes": {_KEY: {"httpAuthSecurityScheme": dict(_BEARER)}},
        "securityRequirements": [{"schemes": {_KEY: {}}}],
        "defaultInputModes": list(_INPUT_MODES),
        "defaultOutputModes": list(OUTPUT_MODES),
        **({"skills": _skills(shown)} if there else {}),
    }


def _extensions(agent: Described | None, settings: Settings) -> Card:
    if agent is None:
        return {}
    demanded = {"required": True} if settings.require_chain else {}
    return {"extensions": [{"uri": CHAIN, "description": _CHAIN, **demanded}]}


def _interfaces(agent: Described | None, settings: Settings) -> list[Card]:
    if agent is None:
        places = ((f"{settings.base}{settings.path}", RPC),)
    else:
        address = address_of(agent.name, settings)
        places = ((address, RPC), (f"{address}/rest", REST))
    return [
        _interface(where, binding, version) for version in (V1, V03) for where, binding in places
    ]


def _interface(url: str, binding: str, version: str) -> Card:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


def _skills(agent: Described) -> list[Card]:
    """Its skills; one that names none can do what it says of itself, for a card must have some."""
    if not agent.skills:
        what = agent.description or f"The agent {agent.name}."
        title = agent.title or agent.name
        return [{"id": agent.name, "name": title, "description": what, "tags": ["agent"]}]
    return [_skill(skill) for skill in agent.skills]


def _skill(skill: Skill) -> Card:
    fields = _seed_skill(skill)
    return {name: value for name, value in fields.items() if value}


def merged_card(card: Mapping[str, Any]) -> Card:
    """Add what readers of 0.3 look for, in their own words, to a current card."""
    older = [one for one in card["supportedInterfaces"] if one["protocolVersion"] == V03]
    schemes = {_KEY: {**card["securitySchemes"][_KEY], **_BEARER, "type": "http"}}
    merged: Card = {
        "skills": [],
        **card,
        "capabilities": _older_capabilities(card["capabilities"]),
        "url": older[0]["url"],
        "preferredTransport": older[0]["protocolBinding"],
        "protocolVersion": older[0]["protocolVersion"],
        "securitySchemes": schemes,
        "security": [{_KEY: []}],
    }
    if others := older[1:]:
        merged["additionalInterfaces"] = [_older(one) for one in others]
    if card["capabilities"]["extendedAgentCard"]:
        merged["supportsAuthenticatedExtendedCard"] = True
    return merged


def _older_capabilities(can: Mapping[str, Any]) -> Card:
    """Say of each extension whether it is demanded, also if it is not."""
    if "extensions" not in can:
        return dict(can)
    return {**can, "extensions": [{"required": False, **one} for one in can["extensions"]]}


def _older(interface: Mapping[str, Any]) -> Card:
    return {"url": interface["url"], "transport": interface["protocolBinding"]}
