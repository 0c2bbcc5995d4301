"""The servers of other programs: looked at, shown in one table, taken over, and accepted.

A yes accepts what was reached. Not a server with a CRITICAL tool, nor one that nobody could look
at, nor one that its owner has switched off: those wait for `openfang servers enable NAME`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from openfang.app.connect.importing import OURSELVES, THERE, Planned, plan
from openfang.app.connect.scouting import UNSEEN, Scout, Sight, sight_of
from openfang.cli.imports import NOT_WRITTEN, our_places, read_files, taken_over
from openfang.cli.output import clean, note, note_command, say, table
from openfang.cli.progress import shown_bar
from openfang.cli.servers import settled
from openfang.cli.session import on_home, run_async
from openfang.config.clients import usual_files
from openfang.config.home import find_home
from openfang.config.load import load
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openfang.cli.manner import Manner
    from openfang.config.foreign import Foreign
    from openfang.core.session import Session

_COLUMNS: Final = (*("server", "from", "via", "secret", "duplicate", "reached", "tools", "tokens"),)
_REACHED: Final = {True: "yes", False: "no", None: "untried"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One server: what is planned, what was seen of it, and why it waits if it was taken over.

    One of a `project` came with the folder: it is not started before somebody said yes.
    """

    planned: Planned
    sight: Sight = UNSEEN
    project: bool = False
    taken: bool = False
    waits: str = ""

    @property
    def wanted(self) -> bool:
        """Whether it would be taken over."""
        return not self.planned.skipped

    def body(self) -> dict[str, Any]:
        """Say it as JSON, without any secret."""
        return {
            **self.planned.body(),
            "project": self.project,
            "plain_secrets": self.planned.plain_secrets,
            "duplicate_of": self.planned.same_as or None,
            **self.sight.body(),
            "taken": self.taken,
            "accepted": self.taken and not self.waits,
            "waits": self.waits,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came of all of it; files that could not be read are told of."""

    found: Sequence[Found] = ()
    unreadable: Sequence[str] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was taken over."""
        return any(one.taken for one in self.found)

    @property
    def failed(self) -> bool:
        """Whether anything that was wanted could not be written."""
        return any(one.planned.skipped.startswith(NOT_WRITTEN) for one in self.found)


def take_over(manner: Manner) -> Taken:
    """Find them, show them, and take them over if that is wanted."""
    files = usual_files(os.environ, Path.cwd())
    foreign, unreadable = read_files(files)
    projects = {file.path for file in files if file.project}
    with shown_bar("looking for servers"):
        found = on_home(lambda session: _planned(session, foreign, projects))
    found = _looked_at(found, lambda one: manner.yes or not one.project)
    if not manner.as_json:
        _show(found, unreadable)
    wanted = [one for one in found if one.wanted]
    if wanted and manner.agrees(_question(wanted)):
        found = _looked_at(found, lambda _: True)
        with shown_bar("taking over", len(wanted)) as count:
            found = on_home(lambda session: _all_taken(session, found, count))
        if not manner.as_json:
            _tell(found)
    elif wanted and manner.asks:
        note("Nothing was taken over.")
    elif wanted and not manner.as_json:
        note_command("Nothing was taken over. Do it", "openfang up --yes")
    return Taken(found=found, unreadable=unreadable)


def _question(wanted: Sequence[Found]) -> str:
    which = "this server" if len(wanted) == 1 else f"these {len(wanted)} servers"
    return f"Take {which} over, and accept what was reached?"


async def _planned(
    session: Session, foreign: Iterable[Foreign], projects: set[Path]
) -> list[Found]:
    secrets = await session.secrets()
    configured = (await session.servers())["configured"]
    planned = plan(foreign, configured, our_places(), secrets)
    there = {one.name for one in planned if one.skipped == THERE}
    known = {name: await session.server(name) for name in sorted(there)}
    found = (_found(one, known.get(one.name) if one.name in there else None) for one in planned)
    return [replace(one, project=one.planned.foreign.file in projects) for one in found]


def _found(planned: Planned, server: Mapping[str, Any] | None) -> Found:
    """Say what is known of one, and more if it is here already."""
    if server is None or planned.skipped != THERE:
        return Found(planned=planned)
    if server["connected"]:
        return Found(planned=planned, sight=sight_of(server["tools"]))
    if server["state"] == "disabled":
        return Found(planned=planned, waits="it is not accepted")
    problem = server["last_error"] or ""
    return Found(planned=planned, sight=Sight(reachable=False, problem=problem))


def _looked_at(found: Sequence[Found], may: Callable[[Found], bool]) -> list[Found]:
    """Look at those that may be started, and were not yet."""
    entries = [
        one.planned.entry
        for one in found
        if one.wanted and one.sight is UNSEEN and not _apart(one.planned) and may(one)
    ]
    if not entries:
        return list(found)
    home = find_home(os.environ)
    scout = Scout(home, load(home, os.environ), os.environ)
    with shown_bar("looking at servers", len(entries)) as count:
        sights = run_async(lambda: scout.look(entries, count))
    return [
        replace(one, sight=sights.get(one.planned.name, one.sight)) if one.wanted else one
        for one in found
    ]


def _apart(planned: Planned) -> str:
    """Say why a server is neither started nor accepted by a yes to all of them, if so."""
    if planned.off:
        return "its owner has switched it off there"
    which = ", ".join(planned.gets)
    return f"it would be given the stored secret {which}" if which else ""


async def _all_taken(
    session: Session, found: Iterable[Found], count: Callable[[], None]
) -> list[Found]:
    done: list[Found] = []
    for one in found:
        if one.wanted:
            done.append(await _taken(session, one))
            count()
        else:
            done.append(one)
    return [await _confirmed(session, one) for one in done]


async def _taken(session: Session, one: Found) -> Found:
    """Write one down, and accept it; whoever stops us in between finds it waiting."""
    planned = await taken_over(session, one.planned)
    if planned.skipped:
        return replace(one, planned=planned)
    waits = _reason(one)
    if not waits:
        await session.change_server(planned.name, "enable")
    return replace(one, taken=True, waits=waits)


def _reason(one: Found) -> str:
    """Say why a server is not accepted, if it is not."""
    if why := _apart(one.planned):
        return why
    if one.sight.critical:
        return _grave(one.sight.critical)
    return "" if one.sight.reachable else "it was not reached, so nobody knows what it offers"


def _grave(tools: Sequence[str]) -> str:
    which = f"{len(tools)} tools" if len(tools) > 1 else "a tool"
    return f"it has {which} of CRITICAL risk: {', '.join(tools)}"


async def _confirmed(session: Session, one: Found) -> Found:
    """See what an accepted server offers now: one that shows a CRITICAL tool only now waits."""
    if not one.taken or one.waits:
        return one
    name = one.planned.name
    server = await settled(session, name)
    if not server["connected"]:
        problem = server["last_error"] or f"it is {server['state']}"
        return replace(one, sight=Sight(reachable=False, problem=problem))
    sight = sight_of(server["tools"])
    if not sight.critical:
        return replace(one, sight=sight)
    await session.change_server(name, "disable")
    return replace(one, sight=sight, waits=_grave(sight.critical))


def _show(found: Sequence[Found], unreadable: Sequence[str]) -> None:
    others = [one for one in found if one.planned.skipped != OURSELVES]
    if others:
        say("\nMCP servers of other programs:")
        table(_COLUMNS, map(_row, others))
    else:
        note("No MCP servers of other programs were found.")
    for problem in unreadable:
        note(f"not read: {problem} (mend it in its own program; the others are read)")
    for one in others:
        if remarks := _remarks(one):
            note(f"{one.planned.name}: {'; '.join(remarks)}")


def _row(one: Found) -> tuple[object, ...]:
    planned, sight = one.planned, one.sight
    there = planned.skipped == THERE
    return (
        planned.name,
        "this folder" if one.project else planned.foreign.client,
        planned.body()["transport"] or "",
        "plain" if planned.plain_secrets or planned.in_sight else "no",
        "yes" if planned.same_as else "here" if there else "no",
        _REACHED[sight.reachable] if one.wanted or there else "",
        sight.tools,
        sight.tokens,
    )


def _remarks(one: Found) -> list[str]:
    """What the table has no room for."""
    planned, sight = one.planned, one.sight
    remarks = [said for said in planned.notes if sight.way_out not in said or not sight.way_out]
    if planned.skipped != THERE and planned.skipped and planned.same_as != planned.name:
        remarks.append(f"it is left out: {planned.skipped}")
    if one.waits:
        remarks.append(f"{one.waits}: openfang servers enable {planned.name}")
    if sight.problem:
        way_out = f" ({sight.way_out})" if sight.way_out else ""
        remarks.append(f"not reached: {sight.problem.rstrip('.')}{way_out}")
    if one.project and one.wanted and sight is UNSEEN:
        remarks.append("it came with this folder, and is not started before you say yes")
    if sight.critical:
        remarks.append(_grave(sight.critical))
    return remarks


def _tell(found: Sequence[Found]) -> None:
    taken = [one for one in found if one.taken]
    accepted = [one.planned.name for one in taken if not one.waits]
    if accepted:
        say(f"Taken over and accepted: {', '.join(accepted)}")
    if waiting := [one for one in taken if one.waits]:
        say("Taken over, and not accepted:")
        width = max(len(one.planned.name) for one in waiting)
        for one in waiting:
            say(f"  {one.planned.name:<{width}}  {clean(one.waits)}")
        note_command("look at one", f"openfang servers test {waiting[0].planned.name}")
        note_command("accept it", f"openfang servers enable {waiting[0].planned.name}")
    for one in found:
        if one.planned.skipped.startswith(NOT_WRITTEN):
            note(f"{one.planned.name}: {one.planned.skipped}")
        elif one.taken and not one.waits and not one.sight.reachable:
            note(f"{one.planned.name} is accepted, and not connected: {one.sight.problem}")
    if any(one.planned.secrets for one in taken):
        note("Their secrets are in the secret store; the other programs' files still have them.")
