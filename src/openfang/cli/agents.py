"""`openfang agents list|show|new|templates|edit|validate|send`."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import Parameter

from openfang.app.home.paths import Home
from openfang.cli.answers import Shown, message
from openfang.cli.errors import ERROR, Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, fields, first_sentence, note, print_json, say, table
from openfang.cli.results import print_text
from openfang.cli.session import on_home
from openfang.config.home import find_home
from openfang.core.bodies import message_body
from openfang.core.session import NO_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.agents.drafts import Drafts
    from openfang.core.results import Result
    from openfang.core.session import Session

_NAME = re.compile(r"\A[a-z0-9][a-z0-9_-]{0,48}\Z")
Profile = Literal["minimal", "coding", "research", "messaging", "automation", "full"]


def list_agents(*, as_json: Json = False) -> None:
    """List the agents that this key may call."""
    found = on_home(lambda session: session.agents())
    if as_json:
        print_json(found)
        return
    rows = [(one["name"], one["model"], first_sentence(one["description"])) for one in found]
    if rows:
        table(("name", "model", "what it is for"), rows)
    else:
        note("There is no agent. Write one: openfang agents new NAME")
    _note_left_out({one["name"] for one in found})


def _note_left_out(known: set[str]) -> None:
    """Say which agents are written down and are not there, if their files are the reason."""
    for name in Home(find_home(os.environ)).agents():
        if name not in known and _drafts().problems(name):
            note(f"{name} is left out; see why: openfang agents validate {name}")


def _drafts() -> Drafts:
    from openfang.app.agents.drafts import Drafts  # noqa: PLC0415 - manifests take 0.3 s

    return Drafts(find_home(os.environ), os.environ)


def show_agent(name: str, /, *, as_json: Json = False) -> None:
    """Show one agent, and what it may reach.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.agent(name))
    if as_json:
        print_json(found)
        return
    fields({key.replace("_", " "): _joined(value) for key, value in found.items() if value})
    note(f"talk to it: openfang chat {name}")


def _joined(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(cast("list[str]", value))
    return "yes" if value is True else str(value)


def new(
    name: str,
    /,
    *,
    profile: Annotated[Profile | None, Parameter(help="What it may reach, to begin with.")] = None,
    code: Annotated[bool, Parameter(help="It is a program of yours, in Python.")] = False,
    template: Annotated[
        str, Parameter(name="--from", help="A copy of this one of `openfang agents templates`.")
    ] = "",
) -> None:
    """Write a new agent down, with comments to go by.

    Args:
        name: What to call it.
    """
    if not _NAME.match(name):
        raise Usage(
            f"{name!r} is no name for an agent.",
            way_out="1 to 49 of a-z 0-9 _ -, beginning with a letter or digit",
        )
    if template and (profile or code):
        raise Usage(
            f"--from {template} says what it is and what it may reach.",
            way_out=f"leave --profile and --code out, then: openfang agents edit {name}",
        )
    folder = _drafts().begin(name, _files(name, profile or "minimal", template, code=code))
    say(str(folder))
    note(f"change it: openfang agents edit {name}")
    note(f"talk to it: openfang chat {name}")


def _files(name: str, profile: Profile, template: str, *, code: bool) -> Mapping[str, str]:
    from openfang.app.agents.ready import copy_of  # noqa: PLC0415 - manifests take 0.3 s
    from openfang.app.agents.starters import new_agent  # noqa: PLC0415 - manifests take 0.3 s

    return copy_of(template, name) if template else new_agent(name, profile, code=code)


def templates(name: str = "", /, *, as_json: Json = False) -> None:
    """List the agents that are there to be copied; with a name, show the manifest of one.

    Args:
        name: One of them.
    """
    from openfang.app.agents.ready import described, manifest_of  # noqa: PLC0415 - takes 0.3 s

    if name:
        text = manifest_of(name)
        print_json({"name": name, "manifest": text}) if as_json else print_text(text)
        return
    found = described()
    if as_json:
        print_json([{"name": one, "description": what} for one, what in found.items()])
        return
    table(("name", "what it is for"), found.items())
    note("take one: openfang agents new NAME --from researcher")


def edit(name: str, /) -> None:
    """Change an agent's manifest with `$VISUAL` or `$EDITOR`; one with mistakes changes nothing.

    Args:
        name: Its name.
    """
    changed = _drafts().edit(name)
    say(f"{name} is changed." if changed else "Nothing was changed.")


def validate(name: str = "", /, *, as_json: Json = False) -> int:
    """Find all that is wrong with agents; exits with 1 if there is anything.

    Args:
        name: One of them; else all.
    """
    drafts = _drafts()
    problems = drafts.problems(name)
    if as_json:
        print_json([problem.as_json() for problem in problems])
    for problem in () if as_json else problems:
        say(clean(str(problem)))
    for doubt in drafts.doubts(name):
        note(f"warning: {clean(str(doubt))}")
    if not problems and not as_json:
        note("no problems")
    return ERROR if problems else 0


def send(
    name: str,
    text: str,
    /,
    *,
    session: Annotated[str | None, Parameter(help="Which conversation to go on with.")] = None,
    as_json: Json = False,
) -> int:
    """Send one message to an agent, and print its answer.

    Args:
        name: Its name.
        text: What to tell it.
    """
    shown = Shown(silent=as_json)

    async def work(home: Session) -> Result:
        return await home.call(*message(name, text, session), replace(NO_OPTIONS, progress=shown))

    result = on_home(work)
    if as_json:
        print_json(message_body(result))
    else:
        shown.end(result)
    return shown.code(result)
