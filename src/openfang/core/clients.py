"""Who is at the other end of a call, as far as it can be asked and told anything (C1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from openfang.core.results import Result

SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"
ROOTS: Final = "roots/list"
QUESTIONS: Final = (SAMPLING, ELICITATION, ROOTS)
_FORM: Final = "form"
_MODES: Final = frozenset({_FORM, "url"})


class Client(Protocol):
    """A client that can answer. What it is asked takes the path, as `client:{key}:{method}`."""

    @property
    def key(self) -> str:
        """The second part of the ids of what it can be asked."""
        ...

    @property
    def connection(self) -> str:
        """Which of all that come under this key it is: no two that are apart have the same."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it says it can do, in its own words: `sampling`, `elicitation`, `roots`."""
        ...

    @property
    def level(self) -> str:
        """The least severe messages that it wants to hear (`debug` ... `emergency`); or none."""
        ...

    @property
    def has_person(self) -> bool:
        """Whether what it is asked is shown to a person, who then answers for themselves."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        """Put one question. Its answer is `structured`; an error of its own is a `fault`.

        `name` is what whoever asks calls the question, if it has a name.
        """
        ...

    def together(self, count: int) -> Callable[[], None]:
        """Announce so many questions at once; call what is returned for each that never comes."""
        ...

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something about the call under way."""
        ...


class Attended(Client, Protocol):
    """The client of a call that runs: whenever it is asked, the call's own time stands still."""

    def held(self) -> AbstractContextManager[None]:
        """Let that time stand still for some other reason that is not the call's."""
        ...


_Client = TypeVar("_Client", bound=Client)


@dataclass(slots=True, eq=False)
class Deputy(Generic[_Client]):
    """Stands before a client, and is that client in all but how it is asked."""

    client: _Client

    @property
    def key(self) -> str:
        """Whose client it is."""
        return self.client.key

    @property
    def connection(self) -> str:
        """Which of that key's it is."""
        return self.client.connection

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it says it can do."""
        return self.client.capabilities

    @property
    def level(self) -> str:
        """The least severe messages that it wants to hear."""
        return self.client.level

    @property
    def has_person(self) -> bool:
        """Whether a person answers."""
        return self.client.has_person

    def together(self, count: int) -> Callable[[], None]:
        """Announce questions."""
        return self.client.together(count)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something."""
        self.client.tell(method, params)


def shows_forms(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client does; who names no way of asking means this one."""
    offered: object = capabilities.get("elicitation")
    if not isinstance(offered, dict):
        return False
    named = _MODES & cast("dict[str, Any]", offered).keys()
    return _FORM in named or not named


def client_key(caller: str) -> str:
    """Name a caller's client: a key by its own name, anybody else by what stands for theirs."""
    kind, _, name = caller.partition(":")
    return name if kind == "key" and name else caller.replace(":", "-")
