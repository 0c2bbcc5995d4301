"""What a result says of itself: complete, or what it needs to go on; and where its list goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETE: Final = "complete"
MAY_BE_ASKED: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
MAX_QUESTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that the server wants to know before it goes on."""

    key: str
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The request has to be made again, with answers, and with the state word for word."""

    questions: tuple[Question, ...]
    state: str | None

    def retry(
        self, params: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Make the params of the next attempt from those of the first."""
        again = dict(params)
        if self.questions:
            again["inputResponses"] = {key: dict(value) for key, value in answers.items()}
        if self.state is not None:
            again["requestState"] = self.state
        return again


def needs(result: Mapping[str, Any]) -> InputRequired | None:
    """Read `resultType` of a modern result: None is complete. Raises `BadAnswer`."""
    match result.get("resultType", COMPLETE):
        case "complete":
            return None
        case "input_required":
            return _required(result)
        case other:
            raise BadAnswer(f"The result is of the unknown type {str(other)[:100]!r}")


def next_cursor(result: Mapping[str, Any]) -> str | None:
    """Where a list goes on; an empty string is a cursor like any other."""
    cursor = result.get("nextCursor")
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise BadAnswer("nextCursor is not a string")


def _required(result: Mapping[str, Any]) -> InputRequired:
    state = result.get("requestState")
    if state is not None and not isinstance(state, str):
        raise BadAnswer("requestState is not a string")
    questions = _questions(result.get("inputRequests"))
    if not questions and state is None:
        raise BadAnswer("The result asks for input, and says neither which nor for what")
    return InputRequired(questions, state)


def _questions(asked: object) -> tuple[Question, ...]:
    if asked is None:
        return ()
    if not isinstance(asked, dict):
        raise BadAnswer("inputRequests is not an object")
    entries = cast("dict[str, object]", asked)
    if len(entries) > MAX_QUESTIONS:
        raise BadAnswer(f"{len(entries)} questions at once are more than {MAX_QUESTIONS}")
    return tuple(_question(key, entry) for key, entry in entries.items())


def _question(key: str, entry: object) -> Question:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    method: object = fields.get("method")
    params: object = fields.get("params") or {}
    if not isinstance(method, str) or method not in MAY_BE_ASKED or not isinstance(params, dict):
        raise BadAnswer(f"{key[:100]!r} asks for {str(method)[:100]!r}, which no result may")
    return Question(key, method, cast("dict[str, Any]", params))
