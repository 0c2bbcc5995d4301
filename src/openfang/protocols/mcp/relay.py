"""What whoever stands between a client and its server remembers, so that another can take over.

Pure: no I/O. The client need not notice more than that its lists may have changed, and that it is
not known what became of the calls that were under way. Towards the server everything is a line.
"""

from __future__ import annotations

from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.framing import (
    MAX_FRAME,
    REFUSED,
    Frame,
    Framed,
    Framing,
    Oversize,
    decoded,
    framed,
    in_flight,
    one_line,
    unread,
)
from openfang.protocols.mcp.messages import (
    Answer,
    Ask,
    Failure,
    Malformed,
    Note,
    failure,
    notification,
    read,
    read_id,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.protocols.mcp.messages import Id, Message

_INITIALIZE: Final = "initialize"
_INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"
_LISTEN: Final = "subscriptions/listen"
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_LISTS: Final = ("tools", "resources", "prompts")
# What changes nothing, or nothing more when it is done twice.
_HARMLESS: Final = frozenset(
    {
        *(_INITIALIZE, "ping", "server/discover", _LISTEN, "logging/setLevel"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
        *("resources/read", "resources/subscribe", "resources/unsubscribe"),
        *("prompts/get", "completion/complete"),
    }
)


@dataclass(frozen=True, slots=True)
class Up:
    """A line for the server."""

    line: bytes


@dataclass(frozen=True, slots=True)
class Down:
    """Bytes for the client, framed as it likes; maybe none."""

    data: bytes


Passed: TypeAlias = Up | Down
_NOTHING: Final = Down(b"")


@dataclass(frozen=True, slots=True)
class _Open:
    """A request that is not answered yet; without a line it is never sent again."""

    method: str
    framing: Framing
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    line: bytes = b""
    in_batch: bool = False


@dataclass(slots=True)
class _Talk:
    """What a client of the handshake era has said, that every server of it has to know."""

    greeting: Mapping[str, Any] | None = None
    lists: tuple[str, ...] = ()
    initialized: bool = False
    level: Mapping[str, Any] | None = None
    watched: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])

    def learn(self, done: _Open, result: Mapping[str, Any]) -> None:
        """Take note of what was answered well."""
        uri = str(done.params.get("uri"))
        match done.method:
            case "initialize":
                self.greeting = done.params
                self.lists = _changing(result.get("capabilities"))
            case "logging/setLevel":
                self.level = done.params
            case "resources/subscribe":
                self.watched[uri] = done.params
            case "resources/unsubscribe":
                self.watched.pop(uri, None)
            case _:
                pass

    def said(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Say it again, after the greeting."""
        if self.level is not None:
            yield "logging/setLevel", self.level
        for params in self.watched.values():
            yield "resources/subscribe", params


class Relay:
    """Passes messages on, and knows at each moment what would be lost with the server."""

    def __init__(self, name: str, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._framing = Framing.LINE
        self._talk = _Talk()
        self._open: dict[Id | None, _Open] = {}
        self._questions: set[Id | None] = set()
        self._repeated: set[Id | None] = set()
        self._ids = (f"{name}-{number}" for number in count(1))

    def said(self, found: Framed) -> Passed:
        """Take what the client said: it is passed on, or answered here."""
        match found:
            case Frame(body, framing):
                self._framing = framing
                return self._passed(body)
            case Oversize(framing, number):
                self._framing = framing
                return self._unread(number, unread(found, self._limit))
            case _:
                return self._unread(None, unread(found))

    def heard(self, found: Framed) -> bytes:
        """Take what the server said: what the client gets of it."""
        match found:
            case Frame(body):
                return self._answered(body, read(orjson.loads(body)))
            case Oversize(_, number):
                error = RpcError(INTERNAL_ERROR, "The answer is too long to be passed on")
                return self._answered(failure(number, error), [Failure(number, error)])
            case _:
                return b""

    def lost(self) -> bytes:
        """Give up the server: say which requests may have been served, and take questions back."""
        gone = [number for number, one in self._open.items() if not one.line]
        ended = [self._failed(number, _lost(self._open[number].method)) for number in gone]
        return b"".join([*ended, *self._taken_back()])

    def ended(self) -> bytes:
        """Answer what was left when the client had said everything: nobody serves it any more."""
        left = [(number, one.method) for number, one in self._open.items()]
        ended = [self._failed(number, _cut_short(method)) for number, method in left]
        return b"".join([*ended, *self._taken_back()])

    def _taken_back(self) -> list[bytes]:
        """Take the questions back of a server that is no longer there."""
        reason = "Whoever asked has gone"
        told = [{"requestId": number, "reason": reason} for number in self._questions]
        self._questions.clear()
        self._repeated.clear()
        return [framed(notification(_CANCELLED, one), self._framing) for one in told]

    def cancelled(self) -> list[bytes]:
        """Tell the server that nobody waits any more."""
        reason = "The client is being ended"
        told = ({"requestId": number, "reason": reason} for number in self._open)
        return [notification(_CANCELLED, one) for one in told]

    def again(self) -> list[bytes]:
        """Tell another server everything that it has to know."""
        talk, waiting = self._talk, self._open.values()
        lines = [one.line for one in waiting if one.method == _INITIALIZE]
        if talk.greeting is not None:
            lines.append(self._repeat(_INITIALIZE, talk.greeting))
        if talk.initialized:
            lines.append(notification(_INITIALIZED))
        lines += [self._repeat(method, params) for method, params in talk.said()]
        return lines + [one.line for one in waiting if one.method != _INITIALIZE]

    def news(self) -> bytes:
        """Tell the client that what it knows may have changed meanwhile."""
        told: list[tuple[str, Mapping[str, Any]]] = []
        if self._talk.initialized:
            told += [(f"notifications/{name}/list_changed", {}) for name in self._talk.lists]
            watched = self._talk.watched
            told += [("notifications/resources/updated", {"uri": uri}) for uri in watched]
        for number, one in self._open.items():
            if one.method == _LISTEN:
                told += _missed(number, one.params)
        return b"".join(framed(notification(*one), self._framing) for one in told)

    def refused(self, found: Framed, error: RpcError) -> bytes:
        """Answer what nobody can be asked."""
        passed = self.said(found)
        return self.given_up(error) if isinstance(passed, Up) else passed.data

    def given_up(self, error: RpcError) -> bytes:
        """Answer everything that waits, with this error."""
        return b"".join(self._failed(number, error) for number in list(self._open))

    def _passed(self, body: bytes) -> Passed:
        try:
            value = decoded(body)
        except RpcError as error:
            return self._unread(None, error)
        line, messages = one_line(body), read(value)
        if isinstance(value, list):
            for message in messages:
                self._took(message, b"")
            return Up(line)
        return self._one(messages[0], line)

    def _one(self, message: Message, line: bytes) -> Passed:
        match message:
            case Ask(number) if number in self._open:
                return Down(framed(failure(number, in_flight(number)), self._framing))
            case Answer() | Failure() if message.id not in self._questions:
                return _NOTHING
            case _:
                self._took(message, line)
                return Up(line)

    def _took(self, message: Message, line: bytes) -> None:
        match message:
            case Ask(number, method, params):
                if line and method == _INITIALIZE:
                    self._talk = _Talk()
                again = _Open(method, self._framing, params, line)
                never = _Open(method, self._framing, in_batch=not line)
                harmless = line and method in _HARMLESS
                self._open.setdefault(number, again if harmless else never)
            case Note("notifications/cancelled", params):
                self._open.pop(read_id(params.get("requestId")), None)
            case Note("notifications/initialized"):
                self._talk.initialized = True
            case Answer(number) | Failure(number) | Malformed(_, number):
                self._questions.discard(number)
            case _:
                pass

    def _answered(self, body: bytes, messages: list[Message]) -> bytes:
        framing = self._framing
        for message in messages:
            match message:
                case Ask(number):
                    self._questions.add(number)
                case Note("notifications/cancelled", params):
                    self._questions.discard(read_id(params.get("requestId")))
                case Answer(number) | Failure(number) if number in self._repeated:
                    self._repeated.discard(number)
                    return b""
                case Answer(number) | Failure(number) if number in self._open:
                    done = self._open.pop(number)
                    framing = done.framing
                    if isinstance(message, Answer):
                        self._talk.learn(done, message.result)
                case Failure(None, error):
                    self._free(error.data)
                case Malformed():
                    return b""
                case _:
                    pass
        return framed(body, framing)

    def _free(self, data: object) -> None:
        """Forget the requests of a batch that was refused as a whole."""
        fields = cast("dict[str, object]", data) if isinstance(data, dict) else {}
        numbers = fields.get(REFUSED)
        for one in cast("list[object]", numbers) if isinstance(numbers, list) else ():
            number = read_id(one)
            known = self._open.get(number)
            if known is not None and known.in_batch:
                del self._open[number]

    def _unread(self, number: Id | None, error: RpcError) -> Passed:
        """Say why something was not read: to the client, or to who waits for its answer."""
        if number in self._questions:
            self._questions.discard(number)
            return Up(failure(number, error))
        return Down(framed(failure(number, error), self._framing))

    def _failed(self, number: Id | None, error: RpcError) -> bytes:
        return framed(failure(number, error), self._open.pop(number).framing)

    def _repeat(self, method: str, params: Mapping[str, Any]) -> bytes:
        number = next(self._ids)
        self._repeated.add(number)
        return request(number, method, params)


def _changing(capabilities: object) -> tuple[str, ...]:
    """Which lists a server tells the changes of."""
    can = cast("dict[str, Any]", capabilities) if isinstance(capabilities, dict) else {}
    return tuple(name for name in _LISTS if name in can and can[name].get("listChanged"))


def _lost(method: str) -> RpcError:
    return RpcError(
        INTERNAL_ERROR,
        f"The node went away while it served {method[:100]}, which may have been done."
        " Way out: openfang audit tail.",
    )


def _cut_short(method: str) -> RpcError:
    return RpcError(
        INTERNAL_ERROR,
        f"The input ended, and {method[:100]} was not answered soon enough after that: it was"
        " given up, and may have been done. Way out: openfang audit tail.",
    )


def _missed(
    number: Id | None, params: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a subscription of the modern era may not have been told of."""
    wanted = params.get("notifications")
    fields = cast("dict[str, Any]", wanted) if isinstance(wanted, dict) else {}
    tag = {"_meta": {_SUBSCRIPTION: number}}
    for name in _LISTS:
        if fields.get(f"{name}ListChanged") is True:
            yield f"notifications/{name}/list_changed", tag
