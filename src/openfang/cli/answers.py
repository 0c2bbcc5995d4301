"""What an agent is told, and how what it says and does is shown."""

from __future__ import annotations

import sys
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.cli.errors import FAILED, PARKED, REFUSED
from openfang.cli.output import clean, is_terminal, json_text, note, one_line
from openfang.core.agents import Ending, Made, Wanted, Words
from openfang.core.bodies import message_body
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.agents import Wish
    from openfang.core.progress import Told
    from openfang.core.results import Result

_SHOWN: Final = 60
_OK: Final = "ok"
_ERROR: Final = "Error: "
_CODES: Final = {"refused": REFUSED, "parked": PARKED}


def message(agent: str, text: str, session: str | None) -> tuple[str, Mapping[str, Any]]:
    """A message as the call that it is: the tool, and its arguments."""
    return tool_id(Kind.AGENT, agent), {
        "message": text,
        **({"session": session} if session else {}),
    }


@dataclass(slots=True)
class Shown:
    """One answer as it comes: its words to a person, each call in a line of its own.

    A pipe gets the answer when it is whole.
    """

    silent: bool = False
    _last: Made | None = field(default=None, init=False)
    _said: str = field(default="", init=False)
    _wishes: dict[str, Wish] = field(default_factory=dict[str, "Wish"], init=False)

    def __call__(self, told: Told) -> None:
        """Show what is told."""
        if isinstance(told, Made):
            self._last = told
        match told:
            case _ if self.silent:
                pass
            case Words(text) if is_terminal(sys.stdout):
                self._said += text
                _write(clean(text))
            case Wanted(wish):
                self._wishes[wish.id] = wish
            case Made():
                self._end_line()
                self._said = ""
                note(_line(told, self._wishes.get(told.wish.id, told.wish)))
            case _:
                pass

    def end(self, result: Result) -> None:
        """Show what is left of the answer, and why there is no more of it."""
        body = message_body(result)
        whole, said = body["response"], self._said
        for_people = is_terminal(sys.stdout)
        if said.strip() != whole.strip():
            rest = whole[len(said) :] if whole.startswith(said) else f"\n{whole}"
            _write(clean(rest) if for_people else rest)
            self._said = rest
        if not self._said.endswith("\n"):
            _write("\n")
        if body["ending"] not in {Ending.ANSWERED.value, None}:
            note(f"ended: {body['ending']}")

    def code(self, result: Result) -> int:
        """The exit code of an answer: one that only hands on an error has that error's."""
        last = self._last
        if result.is_error:
            return FAILED
        if last is None or last.outcome == _OK:
            return 0
        whole, text = (one.removeprefix(_ERROR) for one in (_answer(result), last.text))
        return _CODES.get(last.outcome, FAILED) if whole.startswith(text.strip()) else 0

    def stop(self) -> None:
        """Leave an answer that is not waited for any longer."""
        self._end_line()
        self._said = ""

    def _end_line(self) -> None:
        if self._said and not self._said.endswith("\n"):
            _write("\n")


def _answer(result: Result) -> str:
    return str(message_body(result)["response"]).strip()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _line(made: Made, wish: Wish) -> str:
    """One call in one line: what, with what, how it ended, and where that stands in the audit."""
    arguments = json_text(dict(wish.arguments))
    if len(arguments) > _SHOWN:
        arguments = f"{arguments[:_SHOWN]}..."
    words = [made.outcome]
    if made.receipt:
        words.append(f"audit {made.receipt.start}-{made.receipt.end}")
    if made.outcome != "ok":
        words.append(one_line(made.text.removeprefix("Error: ")))
    return f"  {one_line(f'{made.wish.tool} {arguments}')}: {', '.join(words)}"
