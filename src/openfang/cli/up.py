"""`openfang up`: from nothing to a governed call, one step after the other.

Every step can be done again, and a step that has nothing to do does nothing. Whoever stops it in
between loses nothing: the next `openfang up` goes on from there.
"""

from __future__ import annotations

import os
import sys
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from cyclopts import Parameter

from openfang.app.daemon.background import log_file, start_apart
from openfang.app.daemon.discovery import Absent, claimed, find_daemon_now
from openfang.app.home.new import Made, init_home
from openfang.app.home.paths import Home
from openfang.cli.errors import ERROR, Usage
from openfang.cli.manner import Manner
from openfang.cli.options import Json
from openfang.cli.output import fields, note, print_json, say
from openfang.cli.progress import shown_bar
from openfang.cli.session import on_home
from openfang.cli.shell import preparation
from openfang.config.home import find_home
from openfang.core.errors import Conflict
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.cli.takeover import Taken
    from openfang.core.session import Session


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What is left out, and what is done again."""

    no_import: Annotated[
        bool, Parameter(help="Leave the servers of other programs where they are.")
    ] = False
    no_connect: Annotated[bool, Parameter(help="Leave the files of clients as they are.")] = False
    no_demo: Annotated[bool, Parameter(help="Make no calls.")] = False
    demo: Annotated[bool, Parameter(help="Make the three calls, also if that was done.")] = False
    foreground: Annotated[
        bool, Parameter(help="Serve here in the end, until Ctrl-C, not in the background.")
    ] = False


ALL_STEPS = Steps()


def up(
    *,
    yes: Annotated[bool, Parameter(help="Agree to everything, and be asked nothing.")] = False,
    steps: Steps = ALL_STEPS,
    as_json: Json = False,
) -> int:
    """Make the home, start the daemon, take over servers, wire clients, and show a governed call.

    What changes something of yours is asked for first; where nobody can be asked it is only shown,
    unless `--yes` is given. A second time nothing is changed.
    """
    _check(steps, as_json=as_json)
    going = _Up(Manner(yes=yes, as_json=as_json), steps, Home(find_home(os.environ)))
    try:
        going.climb()
    except KeyboardInterrupt:
        note("\nStopped. What was done stays, and is whole; go on: openfang up")
        raise
    if as_json:
        print_json(going.body)
    if steps.foreground:
        _serve_here()
    return ERROR if going.failed else 0


def _check(steps: Steps, *, as_json: bool) -> None:
    if steps.demo and steps.no_demo:
        raise Usage("Both --demo and --no-demo are given.", way_out="give one of them")
    if steps.foreground and as_json:
        raise Usage("--json has an end, and --foreground has none.", way_out="openfang up --json")


@dataclass(slots=True)
class _Up:
    """One way up: what was done so far, for whoever reads JSON, and whether anything changed."""

    manner: Manner
    steps: Steps
    home: Home
    body: dict[str, Any] = field(default_factory=dict[str, Any], init=False)
    changed: bool = field(default=False, init=False)
    failed: bool = field(default=False, init=False)
    left: bool = field(default=False, init=False)

    def climb(self) -> None:
        """Do every step that is not left out."""
        self._make_home()
        if self.steps.foreground:
            self._require_free()
        else:
            self._start()
        if not self.manner.as_json:
            self._tell()
        if not self.steps.no_import:
            self._take_over()
        if not self.steps.no_connect:
            self._wire()
        if not self.steps.no_demo:
            self._demonstrate()
        self.body["changed"] = self.changed
        if not (self.manner.as_json or self.steps.foreground):
            self._end()

    def _make_home(self) -> None:
        made = Made.NOTHING
        if not self.home.key_file.exists():
            with shown_bar("making the home"):
                _, made = init_home(self.home.path, os.environ)
        self.changed |= bool(made)
        self.body["home"] = {"path": str(self.home.path), "made": bool(made)}

    def _require_free(self) -> None:
        """Refuse to serve here what is served already, before anything is done."""
        claim = claimed(self.home.path)
        if claim.pid is not None:
            where = "" if isinstance(claim, Absent) else f" at {claim.url}"
            raise Conflict(
                f"A daemon serves {self.home.path} already: process {claim.pid}{where}.",
                way_out="openfang up without --foreground, or end it: openfang stop",
            )

    def _start(self) -> None:
        found = find_daemon_now(self.home.path)
        warnings: list[str] = []
        if found is None:
            with shown_bar("starting the daemon"):
                daemon, warnings = start_apart(
                    self.home.path, os.environ, listen=None, any_port=True
                )
            self.changed = True
            url, pid = daemon.url, daemon.pid
        else:
            url, pid = found.url, found.pid
        log = log_file(self.home.path)
        started = found is None
        self.body["daemon"] = {"url": url, "pid": pid, "log": str(log), "started": started}
        self.body["warnings"] = warnings

    def _tell(self) -> None:
        """Say where everything is."""
        new = " (new)" if self.body["home"]["made"] else ""
        key = f"{self.home.key_file} (an administrator's; commands use it by themselves)"
        where: dict[str, object] = {"home": f"{self.home.path}{new}", "key": key}
        if daemon := self.body.get("daemon"):
            state = "started" if daemon["started"] else "runs already"
            where["daemon"] = f"{daemon['url']} ({state}: process {daemon['pid']})"
            where["log"] = daemon["log"]
        fields(where)
        for warning in self.body.get("warnings", ()):
            note(f"beware: {warning}")

    def _take_over(self) -> None:
        from openfang.cli.takeover import take_over  # noqa: PLC0415 - 0.2 s, in the daemon's shadow

        taken: Taken = take_over(self.manner)
        self.changed |= taken.changed
        self.failed |= taken.failed
        self.left |= any(one.wanted and not one.taken for one in taken.found)
        self.body["servers"] = [one.body() for one in taken.found]
        self.body["unreadable"] = list(taken.unreadable)

    def _wire(self) -> None:
        from openfang.cli.wiring import wire  # noqa: PLC0415 - as above

        clients = wire(self.manner)
        self.changed |= any(one["done"] for one in clients)
        wanted = self.manner.yes or self.manner.asks
        self.failed |= wanted and any(one["problem"] for one in clients)
        self.left |= not all(one["wired"] for one in clients)
        self.body["clients"] = clients

    def _demonstrate(self) -> None:
        from openfang.cli.verdicts import show  # noqa: PLC0415 - as above

        again = self.steps.demo

        with shown_bar("making three calls"):
            told, found = on_home(lambda session: _demonstrated(session, again=again))
        self.changed |= bool(found)
        self.body["demo"] = found
        if told and not self.manner.as_json:
            note(told)
        elif found and not self.manner.as_json:
            show(found)

    def _end(self) -> None:
        if not self.changed:
            up = "" if self.left else "Everything is up already: nothing was changed."
            say(f"\n{up or 'Nothing was changed.'}")
        say("\nNext:")
        lines = [*preparation(self.home.path), "openfang chat assistant", "openfang audit tail"]
        lines += (
            ["openfang status"] if self.steps.foreground else ["openfang status", "openfang stop"]
        )
        for line in lines:
            say(f"  {line}")


async def _demonstrated(session: Session, *, again: bool) -> tuple[str, list[dict[str, Any]]]:
    from openfang.cli.verdicts import obstacle, verdicts, was_shown  # noqa: PLC0415 - as above

    if not again and await was_shown(session):
        return "The three calls were shown before: openfang up --demo", []
    if why := await obstacle(session):
        return f"The three calls are not shown: {why}.", []
    return "", await verdicts(session)


def _serve_here() -> NoReturn:
    """Become the daemon: what a command has imported is not held for as long as that lives."""
    say()
    sys.stdout.flush()
    # -P: the folder that it runs in is no place to import from.
    words = [sys.executable, "-P", "-m", "openfang", "start", "--any-port"]
    os.execv(sys.executable, words)  # noqa: S606 - it is this program
