"""What the MCP server is handed: what is offered, to whom, and the way back to the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from openfang.core.calls import Caller
    from openfang.core.labels import Labels
    from openfang.core.news import Hearer
    from openfang.core.results import Result
    from openfang.core.session import Options
    from openfang.core.tools import Tool
    from openfang.core.trace import Chain, Claim


SUBSCRIPTIONS: Final = "subscriptions"
PROMPTS: Final = "prompts"
COMPLETIONS: Final = "completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which of our servers is meant: a toolset's, an agent's, or the whole."""

    toolset: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool under the name and with the description that it has here."""

    name: str
    tool: Tool
    description: str


class Offer(Protocol):
    """What one caller is offered in one place. Every list is as it is now, in a fixed order.

    Names and addresses are those of this place: the offer knows whose they are. Lists hold entries
    as the wire has them.
    """

    @property
    def caller(self) -> Caller:
        """Who is offered it."""
        ...

    @property
    def place(self) -> Place:
        """Where it is offered."""
        ...

    @property
    def by(self) -> str:
        """The node that offers it, by its name among nodes."""
        ...

    @property
    def info(self) -> Mapping[str, Any]:
        """Who offers it: `name`, `version`."""
        ...

    @property
    def instructions(self) -> str:
        """How it wants to be used, if there is anything to say."""
        ...

    @property
    def features(self) -> Collection[str]:
        """Which of SUBSCRIPTIONS, PROMPTS and COMPLETIONS can be there, now or later.

        Tools are everywhere, and so are resources: what was cut of a result can be read as one.
        """
        ...

    def tools(self) -> Sequence[Offered]:
        """List the tools."""
        ...

    def find(self, name: str) -> Offered | None:
        """Find one that is listed, by the name it has here."""
        ...

    def resources(self) -> Sequence[Mapping[str, Any]]:
        """List the resources."""
        ...

    def templates(self) -> Sequence[Mapping[str, Any]]:
        """List the templates of resources."""
        ...

    def prompts(self) -> Sequence[Mapping[str, Any]]:
        """List the prompts."""
        ...

    async def settled(self) -> None:
        """Wait, but not long, until the lists can be complete."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        """Call a tool: what is not offered is as unknown as what does not exist."""
        ...

    async def read(self, uri: str, options: Options) -> Result:
        """Read a resource: each part is `{"type": "resource", "resource": ...}`."""
        ...

    async def prompt(self, name: str, arguments: Mapping[str, Any], options: Options) -> Result:
        """Get a prompt: each part is what a message holds, with its `role` added."""
        ...

    async def complete(self, params: Mapping[str, Any], options: Options) -> Result:
        """Complete an argument of a prompt or a template: `structured` is the completion."""
        ...

    async def subscribe(self, uri: str, options: Options) -> None:
        """Have a resource watched for this caller."""
        ...

    async def unsubscribe(self, uri: str, options: Options) -> None:
        """Have it watched no longer."""
        ...

    def vouch(self, claims: Sequence[Claim], labels: Labels) -> str:
        """Sign what is said of an answer, if a node signed what was asked."""
        ...

    def watch(self, heard: Hearer) -> Callable[[], None]:
        """Hear of changes to what is offered; call what is returned to hear no more.

        `Updated.uri` is the address that the resource has here.
        """
        ...


class Offers(Protocol):
    """Finds out what is offered. What does not exist for this caller is `NotFound`."""

    def __call__(self, caller: Caller, place: Place, chain: Chain) -> Offer:
        """Say what this caller is offered in this place."""
        ...


class Link(Protocol):
    """The way back to the client, for as long as one request is being answered."""

    @property
    def open(self) -> bool:
        """Whether the client can be asked anything over it."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something about its request, before the answer."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the client, and give its result; its error is raised as `RpcError`."""
        ...
