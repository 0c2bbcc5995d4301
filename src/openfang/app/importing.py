"""What an import would do: which servers of other programs, under which names, and what is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from openfang.app.sealing import looks_secret, seal
from openfang.config.fields import Folders
from openfang.config.foreign import valid_name
from openfang.config.merge import frozen
from openfang.config.models import Place
from openfang.config.problems import Problem
from openfang.config.servers import McpServer
from openfang.config.show import HIDDEN, without_credentials
from openfang.config.validate import validated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.config.foreign import Foreign
    from openfang.config.lines import Key

_NO_FOLDERS: Final = Folders(home=Path("/"), user=Path("/"))
_OURSELVES: Final = "it starts openfang itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One server of another program. `skipped` says why it is not taken; else it would be added.

    The entry may hold secrets, so it is not shown.
    """

    name: str
    foreign: Foreign
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    skipped: str = ""

    def body(self) -> dict[str, Any]:
        """Say it as JSON, without any secret."""
        transport = self.foreign.entry.get("transport", {})
        return {
            "name": self.name,
            "written_as": self.foreign.name,
            "from": self.foreign.client,
            "file": str(self.foreign.file),
            "transport": transport.get("type"),
            "reached_by": " ".join(_outline(transport)),
            "secrets": list(self.secrets),
            "notes": list(self.notes),
            "skipped": self.skipped,
        }


def plan(
    found: Iterable[Foreign], configured: Sequence[Mapping[str, Any]], own: frozenset[str]
) -> list[Planned]:
    """Decide on each server. `own` are the places, host and port, under which we are reached."""
    names = {one["name"] for one in configured}
    known = {(one["name"], _outline(one.get("transport", {}))) for one in configured}
    seen: dict[tuple[str, ...], str] = {}
    planned: list[Planned] = []
    for foreign in found:
        outline = _outline(foreign.entry.get("transport", {}))
        name = valid_name(foreign.name)
        reason = _reason(foreign, own) or _already(name, outline, known, seen)
        if reason:
            planned.append(Planned(name=name, foreign=foreign, skipped=reason))
            continue
        one = _planned(_free(name, names), foreign)
        planned.append(one)
        if not one.skipped:
            names.add(one.name)
            seen[outline] = one.name
    return planned


def _planned(name: str, foreign: Foreign) -> Planned:
    entry = {"name": name, **foreign.entry}
    match validated(McpServer, frozen(entry), _nowhere, _NO_FOLDERS):
        case [Problem() as problem, *_]:
            reason = f"{problem.key}: {problem.message}"
            return Planned(name=name, foreign=foreign, skipped=reason)
        case _:
            return _accepted(name, foreign, entry)


def _nowhere(key: Key) -> Place:
    return Place(str(key))


def _accepted(name: str, foreign: Foreign, entry: Mapping[str, Any]) -> Planned:
    notes = list(foreign.notes)
    if name != foreign.name:
        notes.insert(0, f"called {foreign.name!r} there")
    if HIDDEN in " ".join(_outline(foreign.entry["transport"])):
        notes.append("its command or address holds a secret, which stays there: use env or headers")
    secrets = tuple(sorted(seal(entry).secrets))
    return Planned(name=name, foreign=foreign, entry=entry, notes=tuple(notes), secrets=secrets)


def _reason(foreign: Foreign, own: frozenset[str]) -> str:
    if foreign.refused:
        return foreign.refused
    url = str(foreign.entry["transport"].get("url", ""))
    return _OURSELVES if foreign.starts_us or urlsplit(url).netloc.lower() in own else ""


def _already(
    name: str,
    outline: tuple[str, ...],
    known: set[tuple[str, tuple[str, ...]]],
    seen: Mapping[tuple[str, ...], str],
) -> str:
    if (name, outline) in known:
        return "it is there already"
    return f"it is the same as {seen[outline]}" if outline in seen else ""


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _outline(transport: Mapping[str, Any]) -> tuple[str, ...]:
    """How a server is reached, without what is secret in it."""
    if "url" in transport:
        return (without_credentials(transport["url"]),)
    words = [transport.get("command", ""), *cast("list[str]", transport.get("args", []))]
    return tuple(HIDDEN if looks_secret(word) else without_credentials(word) for word in words)
