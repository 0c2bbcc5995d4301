"""`openfang chat`: a conversation with an agent, line by line."""

from __future__ import annotations

import sys
import time
from dataclasses import field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from openfang.cli.answers import Shown, message
from openfang.cli.errors import report
from openfang.cli.output import entry, is_terminal, note
from openfang.cli.session import held_home
from openfang.core.errors import OpenFangError
from openfang.core.ids import random_hex
from openfang.core.session import NO_OPTIONS
from openfang.core.values import dataclass
from openfang.core.wire import moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.cli.session import Held

_PROMPT: Final = "> "
_MOST_SESSIONS: Final = 20
_COMMANDS: Final = (
    "/new begins another conversation, /sessions lists them, /session NAME goes on with one, "
    "/quit or Ctrl-D leaves"
)


def chat(
    agent: str,
    /,
    *,
    session: Annotated[str | None, Parameter(help="Which conversation to go on with.")] = None,
) -> int:
    """Talk to an agent. Each line is a message; Ctrl-C stops an answer, Ctrl-D leaves.

    `openfang agents list` names them; `assistant` is there in every new home.

    Args:
        agent: Its name.
    """
    with held_home() as home:
        found = home.do(lambda one: one.agent(agent))
        chatting = _Chat(home, agent, session)
        if not chatting.typed:
            return chatting.piped()
        note(f"{found['title']}. {_COMMANDS}.")
        chatting.talk()
    return 0


@dataclass(slots=True)
class _Chat:
    home: Held
    agent: str
    session: str | None
    typed: bool = field(init=False)
    code: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.typed = is_terminal(sys.stdin) and is_terminal(sys.stdout)

    def piped(self) -> int:
        """Answer every line; the exit code is the highest of any."""
        for line in sys.stdin:
            if not self._heed(line.strip()):
                break
        return self.code

    def talk(self) -> None:
        """Answer a person until they leave. Ctrl-C drops a line that is not sent yet."""
        import_module("readline")  # `input` keeps a history from now on
        going = True
        while going:
            try:
                going = self._heed(input(_PROMPT).strip())
            except KeyboardInterrupt:
                sys.stdout.write("\n")
            except EOFError:
                sys.stdout.write("\n")
                return

    def _heed(self, line: str) -> bool:
        """Do what a line says; false if it says to leave."""
        match line.split():
            case []:
                pass
            case ["/quit"]:
                return False
            case ["/new"]:
                self.session = f"{time.strftime('%Y-%m-%d %H:%M')} {random_hex(2)}"
                note(f"conversation {self.session}")
            case ["/sessions"]:
                self._try(self._list)
            case ["/session", _, *_]:
                self.session = line.removeprefix("/session").strip()
                note(f"conversation {self.session}")
            case ["/session" | "/sessions" | "/new" | "/quit" as word, *_]:
                note(f"{word} is not said like this: {_COMMANDS}.")
            case [word, *_] if word.startswith("/") and not word.startswith("//"):
                note(f"There is no {word}: {_COMMANDS}; // begins a message with /.")
            case _:
                self._try(lambda: self._say(line[1:] if line.startswith("//") else line))
        return True

    def _try(self, act: Callable[[], None]) -> None:
        """Do something that may be refused: that ends an answer, and not the chat."""
        try:
            act()
        except OpenFangError as error:
            self.code = max(self.code, report(error, as_json=False))

    def _say(self, text: str) -> None:
        shown = Shown()
        options = replace(NO_OPTIONS, progress=shown)
        tool, arguments = message(self.agent, text, self.session)
        try:
            result = self.home.do(lambda home: home.call(tool, arguments, options))
        except KeyboardInterrupt:
            shown.stop()
            if not self.typed:
                raise
            note("stopped")
            return
        except OpenFangError:
            shown.stop()
            raise
        shown.end(result)
        self.code = max(self.code, shown.code(result))

    def _list(self) -> None:
        found = self.home.do(lambda home: home.sessions(agent=self.agent, limit=_MOST_SESSIONS))
        for one in found.sessions:
            count = f"{one.messages} messages, last at {moment(one.updated_at)}"
            entry(one.name, one.title, f"{count}, {one.id} of {one.caller}")
        if not found.sessions:
            note("Nothing was said to this agent yet.")
