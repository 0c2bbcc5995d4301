"""`openfang skills`: skills, which bring instructions, and tools to follow them with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from openfang.app.skills.bringing import brought
from openfang.cli.installs import AcceptFindings, Installs, Yes
from openfang.cli.options import Json
from openfang.cli.output import note

if TYPE_CHECKING:
    from openfang.app.skills.bringing import Brought

_SKILLS = Installs("skill", "skills")
Ref: TypeAlias = Annotated[str, Parameter(help="Of a repository: the branch or tag to take.")]
Within: TypeAlias = Annotated[
    str, Parameter(name="--folder", help="The skill's folder inside, where there are several.")
]


def install(where: str, /, *, ref: Ref = "", folder: Within = "", as_json: Json = False) -> None:
    """Take a skill in, and show what it would be allowed to do. It is off until enabled.

    Nothing of it runs. Another version of one that is on waits beside it until it is accepted.

    Args:
        where: Its folder, an archive of it (.tar, .tar.gz, .zip), or a git repository: a path, or
            an address that begins with https:// or git+file://.
    """
    found = brought(where, ref=ref, folder=folder)
    _SKILLS.install(found.parcel, found.origin, as_json=as_json)
    _noted(found)


def check(where: str, /, *, ref: Ref = "", folder: Within = "", as_json: Json = False) -> None:
    """Find every mistake of a skill, and show what installing it would show.

    Args:
        where: Its folder, an archive of it, or a git repository.
    """
    found = brought(where, ref=ref, folder=folder)
    _SKILLS.check(found.parcel, found.origin, as_json=as_json)
    _noted(found)


def _noted(found: Brought) -> None:
    for one in found.notes:
        note(one)


def list_skills(*, as_json: Json = False) -> None:
    """List the skills that are installed, and how each is."""
    _SKILLS.list(as_json=as_json)


def show_skill(name: str, /, *, as_json: Json = False) -> None:
    """Show a skill: how it is, and all that enabling it would accept.

    Args:
        name: Its name.
    """
    _SKILLS.show(name, as_json=as_json)


def enable(
    name: str,
    /,
    *,
    yes: Yes = False,
    accept_findings: AcceptFindings = False,
    as_json: Json = False,
) -> int:
    """Accept a skill as it is shown: it is offered at once, now and at every start.

    If its files change later, it is held back until it is accepted again.

    Args:
        name: Its name.
    """
    return _SKILLS.enable(name, yes=yes, accept_findings=accept_findings, as_json=as_json)


def disable(name: str, /, *, as_json: Json = False) -> None:
    """Let a skill go: it is offered no longer; its files stay.

    Args:
        name: Its name.
    """
    _SKILLS.change(name, "disable", as_json=as_json)


def remove(name: str, /, *, as_json: Json = False) -> None:
    """Delete a skill, with its files. What it kept in its workspace stays.

    Args:
        name: Its name.
    """
    _SKILLS.change(name, "remove", as_json=as_json)
