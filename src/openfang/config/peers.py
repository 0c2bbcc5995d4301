"""`[a2a]` and `[[nodes]]`: the agents and nodes that we speak with."""

from typing import Literal

from pydantic import Field

from openfang.config.fields import Count, Name, SecretLine, Section, Text, Url, meaning


class ExternalAgent(Section):
    """An agent elsewhere that speaks A2A; it becomes the tool `a2a:{name}`."""

    name: Name = Field(description="The peer's name here.")
    url: Url = Field(description="The address under which its card is published.")
    auth: SecretLine | None = Field(
        default=None, description="The bearer token sent to this peer; `${NAME}` expands."
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    trust: Literal["low", "medium", "high"] = Field(
        default="low", description="How far the peer is trusted; low asks before every effect."
    )
    comes_as: Text | None = Field(
        default=None,
        description="The name of the key that the peer calls this node with, if it does.",
    )


class Push(Section):
    """Where push notifications may go."""

    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )


class A2a(Section):
    """The agent-to-agent protocol, in both directions."""

    enabled: bool = Field(default=False, description="Whether the card and the routes are served.")
    listen_path: str = Field(
        default="/a2a",
        pattern=r"^(/[A-Za-z0-9_-]+)+$",
        json_schema_extra=meaning("a path like /a2a"),
        description="The path under which the routes stand.",
    )
    primary_agent: Text | None = Field(
        default=None, description="The agent of the well-known card; unset means the first by name."
    )
    max_tasks: Count = Field(
        default=1000, description="Tasks kept; the oldest finished one goes first."
    )
    card: Literal["merged", "strict"] = Field(
        default="merged",
        description="Whether the current card also carries the fields that older peers read.",
    )
    publish: tuple[Text, ...] = Field(
        default=(),
        description="Agents whose cards need no key, beside the one that answers by default.",
    )
    require_chain: bool = Field(
        default=False,
        description="Whether a peer must say that it tells whose call a message goes on with.",
    )
    external_agents: tuple[ExternalAgent, ...] = Field(
        default=(), description="Peers that are discovered at start."
    )
    push: Push = Field(default=Push(), description="Where push notifications may go.")


class Node(Section):
    """Another node of ours, whose signed chains and labels are believed.

    An MCP server or A2A peer at its address is called with a chain that is signed for it.
    """

    name: Name = Field(description="The node's name.")
    url: Url = Field(description="The node's address.")
    public_key: str = Field(
        pattern=r"^[A-Za-z0-9+/_-]{43}=?$",
        json_schema_extra=meaning("32 bytes in base 64"),
        description="Its Ed25519 public key: 32 bytes in base 64.",
    )
    allow_private: bool = Field(
        default=False, description="Open loopback and private addresses; never metadata services."
    )
    comes_as: Text | None = Field(
        default=None,
        description="The name of the key that it calls this node with; its signature then holds "
        "with that key alone.",
    )
