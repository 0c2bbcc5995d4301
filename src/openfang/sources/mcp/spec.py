"""One MCP server, as far as it is known before anybody has spoken to it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from openfang.core.ids import Kind
from openfang.core.tools import Risk, Trust
from openfang.core.values import dataclass
from openfang.registry.classify import Declared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openfang.host.folders import Seal
    from openfang.host.process import Launch
    from openfang.registry.classify import ForeignTool
    from openfang.registry.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A program of this machine; it knows `environment` alone. `launch` is how it is confined."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    sandbox: Literal["auto", "required", "off"] = "auto"
    network: bool = True
    allow_private: bool = False
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    workspace: Path | None = None
    trusted: bool = True
    seal: Seal | None = None
    memory: int | None = None
    processes: int | None = None
    launch: Launch | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """How to sign in at an address. What is empty is found out, or done without.

    `private_key` is a key's text, or the path of its file.
    """

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    client_metadata_url: str = ""
    private_key: str = field(default="", repr=False)
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    redirect_port: int = 0


_BY_A_PERSON = OAuth()


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """An address."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    allow_private: bool = False
    oauth: OAuth | None = None

    @property
    def shown(self) -> str:
        """The address without what many servers take their key by."""
        return self.url.partition("?")[0]

    @property
    def sign_in(self) -> OAuth | None:
        """How to sign in; not at all where the operator gave credentials in a header."""
        given = any(name.lower() == "authorization" for name in self.headers)
        return self.oauth or (None if given else _BY_A_PERSON)


Reached: TypeAlias = Stdio | Http


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The operator's word on one tool."""

    declared: Declared = field(default_factory=Declared)
    enabled: bool = True
    timeout: float | None = None


NO_OVERRIDE = Override()
Weigh: TypeAlias = "Callable[[ForeignTool, Rules], Declared]"
"""What a manifest says of a tool, weighed against what is said of it otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """How to reach a server, and what the operator says of it. Two that are equal are the same.

    One that an extension brings is of that `kind`: its tools are those of the manifest alone. A
    `singleton` runs once, on whichever node of a cluster.
    """

    name: str
    reached: Reached
    kind: Kind = Kind.MCP
    timeout: float = 30.0
    trust: Trust = Trust.MEDIUM
    risk: Risk | None = None
    allow_tools: tuple[str, ...] = ()
    denied_tags: frozenset[str] = frozenset()
    overrides: Mapping[str, Override] = field(default_factory=dict[str, Override])
    lazy: bool = False
    at_once: int = 10
    roots: bool = False
    singleton: bool = False
    weigh: Weigh | None = field(default=None, compare=False, repr=False)

    @property
    def who(self) -> str:
        """How sentences about it begin."""
        what = "MCP server" if self.kind is Kind.MCP else "extension"
        return f"The {what} {self.name}"

    def command(self, word: str) -> str:
        """Name a command that says more of it."""
        told = f"servers {word}" if self.kind is Kind.MCP else "ext show"
        return f"openfang {told} {self.name}"

    @property
    def remote(self) -> bool:
        """Whether it is not on this machine."""
        return isinstance(self.reached, Http)

    def shows(self, tool: str) -> bool:
        """Whether this tool of the server's may be seen at all."""
        return tool in self.allow_tools or not (self.allow_tools or self.kind is Kind.EXTENSION)
