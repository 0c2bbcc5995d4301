"""`openfang ext`: extensions, which bring tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfang.app.installs.parcels import parcel_of
from openfang.cli.options import Json
from openfang.cli.output import clean, fields, note, note_command, print_json, say, table
from openfang.cli.reviews import asked, show_review
from openfang.cli.session import held_home, on_home
from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.cli.session import Held
    from openfang.core.installs import InstallKind

_KIND: InstallKind = "extension"
_NONE = "0" * 64


def install(path: str, /, *, as_json: Json = False) -> None:
    """Take an extension in, and show what it would be allowed to do. It is off until enabled.

    Nothing of it runs. Another version of one that is on waits beside it until it is accepted.

    Args:
        path: Its folder, or an archive of it: .tar, .tar.gz or .zip.
    """
    parcel, origin = parcel_of(path)
    found = on_home(lambda session: session.install(_KIND, parcel, origin))
    if as_json:
        print_json(found)
        return
    show_review(found["review"])
    say()
    say(f"{clean(found['id'])} is installed, and off.")
    if found["waiting"]:
        note("The version that was accepted before goes on until this one is.")
    note_command("accept it", f"openfang ext enable {found['id']}")


def check(path: str, /, *, as_json: Json = False) -> None:
    """Find every mistake of an extension's folder, and show what installing it would show.

    Args:
        path: Its folder, or an archive of it.
    """
    parcel, origin = parcel_of(path)
    found = on_home(lambda session: session.install(_KIND, parcel, origin, preview=True))
    if as_json:
        print_json(found)
    else:
        show_review(found["review"])


def list_extensions(*, as_json: Json = False) -> None:
    """List the extensions that are installed, and how each is."""
    found = on_home(lambda session: session.installs(_KIND))
    if as_json:
        print_json(found)
        return
    rows = [(one["id"], one["version"], one["state"], _waits(one), one["reason"]) for one in found]
    if rows:
        table(("id", "version", "state", "waits", "reason"), rows)
    else:
        note("No extension is installed. Make one: openfang ext new FOLDER")


def _waits(one: Mapping[str, Any]) -> str:
    return "another version" if one["waiting"] else ""


def show_extension(name: str, /, *, as_json: Json = False) -> None:
    """Show an extension: how it is, and all that enabling it would accept.

    Args:
        name: Its id.
    """
    found = on_home(lambda session: session.installed(_KIND, name))
    if as_json:
        print_json(found)
        return
    fields(_state(found))
    if found["review"] is not None:
        say()
        show_review(found["review"])


def _state(found: Mapping[str, Any]) -> dict[str, object]:
    accepted = found["accepted"]
    process: Mapping[str, Any] = found["process"] or {}
    shown: dict[str, object] = {
        "state": found["state"],
        "reason": found["reason"],
        "way out": process.get("way_out"),
        "process": _process(process),
        "confined by": ", ".join(process.get("layers", ())),
        "waits": _waits(found),
        "installed": f"{found['installed_at']} by {found['installed_by']}",
        "accepted": f"{accepted['at']} by {accepted['by']}" if accepted else "never",
    }
    return {word: value for word, value in shown.items() if value}


def _process(process: Mapping[str, Any]) -> str:
    if not process.get("pid"):
        return str(process.get("how", ""))
    restarts = process.get("restarts", 0)
    return f"{process['how']}, pid {process['pid']}" + (
        f", {restarts} restarts" if restarts else ""
    )


def enable(
    name: str,
    /,
    *,
    yes: Annotated[bool, Parameter(help="Accept it without being asked.")] = False,
    accept_findings: Annotated[
        bool, Parameter(help="Accept it with what is grave about it, without being asked.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Accept an extension as it is shown: its tools are offered at once, now and at every start.

    If its files change later, it is held back until it is accepted again.

    Args:
        name: Its id.
    """
    with held_home() as home:
        review = _review(home, name)
        if not as_json:
            show_review(review)
            say()
        if not asked(review, yes=yes, accept_findings=accept_findings):
            note(f"{clean(name)} stays as it is.")
            return 1
        found = home.do(
            lambda session: session.change_install(
                _KIND,
                name,
                "enable",
                digest=review["digest"],
                accept_findings=accept_findings or bool(review["grave"]),
            )
        )
    _told(found, as_json=as_json)
    return 0


def _review(home: Held, name: str) -> Mapping[str, Any]:
    found = home.do(lambda session: session.installed(_KIND, name))
    review: Mapping[str, Any] | None = found["review"]
    if review is None:  # it cannot be read: the refusal says why
        home.do(lambda session: session.change_install(_KIND, name, "enable", digest=_NONE))
        raise NotFound(f"{name} cannot be read.")
    return review


def disable(name: str, /, *, as_json: Json = False) -> None:
    """Let an extension go: its tools are offered no longer; its files stay.

    Args:
        name: Its id.
    """
    _told(on_home(lambda session: session.change_install(_KIND, name, "disable")), as_json=as_json)


def remove(name: str, /, *, as_json: Json = False) -> None:
    """Delete an extension, with its files. What it kept in its workspace stays.

    Args:
        name: Its id.
    """
    _told(on_home(lambda session: session.change_install(_KIND, name, "remove")), as_json=as_json)


def _told(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    say(f"{clean(found['id'])} {found['version']}: {found['state']}")
    if found["reason"]:
        note(found["reason"])
