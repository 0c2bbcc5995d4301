"""What `openfang ext` and `openfang skills` have in common: installs of one kind, by command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from openfang.cli.output import clean, fields, note, note_command, print_json, say, table
from openfang.cli.reviews import asked, show_review
from openfang.cli.session import held_home, on_home
from openfang.core.errors import NotFound
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.cli.session import Held
    from openfang.core.installs import InstallKind

Yes: TypeAlias = Annotated[bool, Parameter(help="Accept it without being asked.")]
AcceptFindings: TypeAlias = Annotated[
    bool, Parameter(help="Accept it with what is grave about it, without being asked.")
]
_NONE: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Installs:
    """Those of one kind, and the command that people type for them."""

    kind: InstallKind
    command: str

    def install(self, parcel: bytes, origin: str, *, as_json: bool) -> None:
        """Take an archive in, and show what it would be allowed to do."""
        found = on_home(lambda session: session.install(self.kind, parcel, origin))
        if as_json:
            print_json(found)
            return
        show_review(found["review"])
        say()
        say(f"{clean(found['id'])} {_taken_in(found)}")
        if found["waiting"]:
            note("The version that was accepted before goes on until this one is.")
        if found["waiting"] or not found["enabled"]:
            note_command("accept it", f"openfang {self.command} enable {found['id']}")

    def check(self, parcel: bytes, origin: str, *, as_json: bool) -> None:
        """Show what installing it would show."""
        found = on_home(lambda session: session.install(self.kind, parcel, origin, preview=True))
        if as_json:
            print_json(found)
        else:
            show_review(found["review"])

    def list(self, *, as_json: bool) -> None:
        """List what is installed, and how each is."""
        found = on_home(lambda session: session.installs(self.kind))
        if as_json:
            print_json(found)
            return
        rows = [
            (one["id"], one["version"], one["state"], _waits(one), one["reason"]) for one in found
        ]
        if rows:
            table(("id", "version", "state", "waits", "reason"), rows)
        else:
            note(f"No {self.kind} is installed. Make one: openfang {self.command} new FOLDER")

    def show(self, name: str, *, as_json: bool) -> None:
        """Show one: how it is, and all that enabling it would accept."""
        found = on_home(lambda session: session.installed(self.kind, name))
        if as_json:
            print_json(found)
            return
        fields(_state(found))
        if found["review"] is not None:
            say()
            show_review(found["review"])

    def enable(self, name: str, *, yes: bool, accept_findings: bool, as_json: bool) -> int:
        """Show it, ask, and accept it as it was shown."""
        with held_home() as home:
            review = self._review(home, name)
            if not as_json:
                show_review(review)
                say()
            if not asked(review, yes=yes, accept_findings=accept_findings):
                note(f"{clean(name)} stays as it is.")
                return 1
            found = home.do(
                lambda session: session.change_install(
                    self.kind,
                    name,
                    "enable",
                    digest=review["digest"],
                    accept_findings=accept_findings or bool(review["grave"]),
                )
            )
        _told(found, as_json=as_json)
        return 0

    def _review(self, home: Held, name: str) -> Mapping[str, Any]:
        found = home.do(lambda session: session.installed(self.kind, name))
        review: Mapping[str, Any] | None = found["review"]
        if review is None:  # it cannot be read: the refusal says why
            home.do(lambda session: session.change_install(self.kind, name, "enable", digest=_NONE))
            raise NotFound(f"{name} cannot be read.")
        return review

    def change(self, name: str, act: str, *, as_json: bool) -> None:
        """Disable or remove one."""
        found = on_home(lambda session: session.change_install(self.kind, name, act))
        _told(found, as_json=as_json)


def _taken_in(found: Mapping[str, Any]) -> str:
    if found["waiting"]:
        return f"{clean(found['review']['version'])} is installed, and waits."
    if found["enabled"]:
        return f"is what was accepted before: {found['state']}"
    return "is installed, and off."


def _waits(one: Mapping[str, Any]) -> str:
    return "another version" if one["waiting"] else ""


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


def _told(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    say(f"{clean(found['id'])} {found['version']}: {found['state']}")
    if found["reason"]:
        note(found["reason"])
