"""The lines between us and a warm child: what it says, and what we write. Pure.

`id` is the number of a run in all of them; `call` the number of one question within the process.
What cannot be read fails the run that it belongs to, and nothing else.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from openfang.core.agents import Artifact
from openfang.core.errors import CallRefused, OpenFangError
from openfang.core.values import dataclass
from openfang.protocols.mcp.messages import Malformed, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Result

LARGEST: Final = 10_000_000  # the process keeps to it, too
_LONGEST_NAME: Final = 1000
_LONGEST_REASON: Final = 2000
_LONGEST_TRACE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Ready:
    """Its code is loaded."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Its code cannot be loaded."""

    reason: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Streamed:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """How far a run has got."""

    done: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Produced:
    """Something was made."""

    artifact: Artifact


@dataclass(frozen=True, slots=True)
class Logged:
    """A line for the log."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool is to be called."""

    call: int
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The person is to be asked."""

    call: int
    question: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The answer; without words, what was streamed. `cpu` is what the process has used so far.

    `content` are the parts of an answer that is more than words, `structured` is its JSON.
    """

    text: str | None
    cpu: float
    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Declined:
    """It will not do what it was asked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """Its code failed."""

    reason: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that was cancelled has ended."""


@dataclass(frozen=True, slots=True)
class Lingers:
    """A run that was cancelled goes on."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that makes no sense."""

    reason: str


Said: TypeAlias = (
    Ready
    | Broken
    | Streamed
    | Advanced
    | Produced
    | Logged
    | Called
    | Asked
    | Returned
    | Declined
    | Raised
    | Stopped
    | Lingers
    | Unreadable
)


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said, and of which run; 0 is none."""

    run: int
    said: Said = field(default_factory=Ready)


def read(message: object) -> Heard:
    """Read what a process wrote: decoded JSON, or what is left of a line that is none."""
    if isinstance(message, Malformed):
        number = message.id if isinstance(message.id, int) else 0
        return Heard(number, Unreadable(message.reason))
    if not isinstance(message, dict):
        return Heard(0, Unreadable("It is no object"))
    fields = cast("dict[str, Any]", message)
    number = fields.get("id")
    run = number if type(number) is int else 0
    try:
        return Heard(run, _said(fields))
    except (KeyError, TypeError, ValueError) as error:
        said = f"{fields.get('say')!r:.100} is not what it should be: {error!r:.200}"
        return Heard(run, Unreadable(said))


def _said(fields: dict[str, Any]) -> Said:  # noqa: C901, PLR0911, PLR0912 - a table of messages
    match fields.get("say"):
        case "stream":
            return Streamed(_text(fields["text"]))
        case "call":
            return Called(_number(fields), _name(fields["tool"]), _table(fields["arguments"]))
        case "result":
            return _returned(fields)
        case "progress":
            total = fields["total"]
            total = None if total is None else float(total)
            return Advanced(float(fields["done"]), total, _text(fields["message"]))
        case "log":
            return Logged(_text(fields["text"]))
        case "artifact":
            parts = tuple(_table(part) for part in fields["parts"])
            return Produced(Artifact(name=_name(fields["name"]), parts=parts))
        case "ask":
            return Asked(_number(fields), _text(fields["question"]))
        case "reject":
            return Declined(_text(fields["reason"]))
        case "error":
            return Raised(_reason(fields), _text(fields["traceback"])[-_LONGEST_TRACE:])
        case "broken":
            return Broken(_reason(fields), _text(fields["traceback"])[-_LONGEST_TRACE:])
        case "ended":
            return Stopped()
        case "lingers":
            return Lingers()
        case "ready":
            return Ready()
        case other:
            raise ValueError(f"nothing is called {other!r:.100}")


def _returned(fields: Mapping[str, Any]) -> Returned:
    text = fields["text"]
    return Returned(
        text=None if text is None else _text(text),
        cpu=float(fields["cpu"]),
        content=tuple(_table(part) for part in fields.get("content", ())),
        structured=fields.get("structured"),
        is_error=fields.get("is_error") is True,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no text")
    return value


def _name(value: object) -> str:
    return _text(value)[:_LONGEST_NAME]


def _number(fields: Mapping[str, Any]) -> int:
    number = fields["call"]
    if type(number) is not int:
        raise TypeError("call is no number")
    return number


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} is no object")
    return cast("dict[str, Any]", value)


def _reason(fields: Mapping[str, Any]) -> str:
    kind, message = _text(fields["type"]), _text(fields["message"])
    return (f"{kind}: {message}" if message else kind)[:_LONGEST_REASON]


def greet(told: Mapping[str, Any]) -> bytes:
    """Write what a process is told before anything else."""
    return encode({"do": "begin", **told})


def begin(run: int, told: Mapping[str, Any]) -> bytes:
    """Write that a run is to begin."""
    return encode({"do": "run", "id": run, **told})


def cancel(run: int) -> bytes:
    """Write that nobody waits for a run any more."""
    return encode({"do": "cancel", "id": run})


def result(run: int, call: int, found: Result) -> bytes:
    """Write what a call brought back."""
    return encode(
        {
            "do": "answer",
            "id": run,
            "call": call,
            "content": list(found.content),
            "structured": found.structured,
            "is_error": found.is_error,
        }
    )


def words(run: int, call: int, text: str) -> bytes:
    """Write what a person answered."""
    return encode({"do": "answer", "id": run, "call": call, "text": text})


def failure(run: int, call: int, error: OpenFangError) -> bytes:
    """Write why a question has no answer."""
    return encode(
        {
            "do": "answer",
            "id": run,
            "call": call,
            "refused": isinstance(error, CallRefused),
            "reason": error.message,
            "way_out": error.way_out,
            "code": error.rule if isinstance(error, CallRefused) else error.code,
        }
    )
