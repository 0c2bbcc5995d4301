"""A change of another program's file: shown to a person, agreed to, made, and told of."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from openfang.app.connect.connecting import Planned
from openfang.app.connect.connections import require_writable
from openfang.app.connect.difference import difference
from openfang.cli.manner import Manner
from openfang.cli.output import clean, note, paint, print_json, say
from openfang.core.values import dataclass

_COLOURS = {"+": "green", "-": "red", "@": "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was made besides: a copy of the file as it was, and a key."""

    backup: Path | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change, what makes it, and the command that would; `undo` is the command to go back by.

    Without that one the change goes back itself. One that does not `act` has nothing to do.
    """

    planned: Planned
    make: Callable[[], Done]
    acts: bool
    command: Sequence[str]
    undo: Sequence[str] = ()
    notes: Sequence[str] = ()

    def lines(self) -> list[str]:
        """Give the change as a diff, without any secret."""
        seen = self.planned.seen
        return difference(seen.held.content, self.planned.after, str(seen.target.file))


def settle(change: Change, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show it, ask whether it is wanted where somebody can be asked, make it, and say so."""
    body = settled(change, Manner(yes=yes, as_json=as_json), dry_run=dry_run)
    if as_json:
        print_json(body)


def settled(change: Change, manner: Manner, *, dry_run: bool = False) -> dict[str, Any]:
    """Do the same, and give it as JSON; to a program nothing is said meanwhile."""
    if not manner.as_json:
        _show(change)
    done = None
    if change.acts and not dry_run and (manner.yes or manner.asks):
        if change.planned.changes:
            require_writable(change.planned.seen.held)
        done = change.make() if manner.agrees(_question(change.planned)) else None
    if manner.as_json:
        pass
    elif done is None and change.acts:
        asked = manner.asks and not dry_run
        again = "" if asked else f" Do it: {shlex.join(change.command)} --yes"
        note(f"Nothing was changed.{again}")
    else:
        _tell(change, done)
    return _body(change, done)


def _show(change: Change) -> None:
    for line in change.lines():
        colour = _COLOURS.get(line[:1])
        say(paint(clean(line), colour, sys.stdout) if colour else clean(line))
    for text in change.notes:
        note(clean(text))


def _question(planned: Planned) -> str:
    act = "Remove the file" if planned.after is None else "Write this"
    return f"{act if planned.changes else 'Go on'}?"


def _tell(change: Change, done: Done | None) -> None:
    target = change.planned.seen.target
    state = "is connected" if change.undo else "is no longer connected"
    if done is None:
        state = "is connected already" if change.undo else "is not connected"
    say(f"{target.form.client} {state}: {clean(str(target.file))}")
    if done is None:
        note("There is nothing to change.")
        return
    if done.backup:
        note(f"The file as it was is kept: {clean(str(done.backup))}")
    if done.key:
        note(f"The key is called {done.key}: openfang keys list")
    if change.undo:
        note(f"Restart {target.form.client} if it runs. Undo: {shlex.join(change.undo)}")
    elif change.planned.changes and not change.planned.note:
        note("The file is what it was before, to the byte.")


def _body(change: Change, done: Done | None) -> dict[str, Any]:
    target = change.planned.seen.target
    return {
        "client": target.form.client,
        "file": str(target.file),
        "name": target.name,
        "changes": change.planned.changes,
        "done": done is not None,
        "diff": "\n".join(change.lines()),
        "notes": list(change.notes),
        "backup": str(done.backup) if done and done.backup else None,
        "key": (done.key if done else "") or None,
    }
