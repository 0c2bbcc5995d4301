"""What an import would do: which servers of other programs, under which names, and what is not."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from openfang.app.daemon.discovery import Daemon, claimed
from openfang.app.servers.entries import allowed_by, problem_of
from openfang.app.servers.sealing import looks_secret, made_for, referred_by, seal
from openfang.config.foreign import OFF, valid_name
from openfang.config.references import wanting
from openfang.config.show import HIDDEN, without_credentials, without_secrets
from openfang.core.values import dataclass
from openfang.safety.urls import AddressRefused, check_address, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from openfang.config.foreign import Foreign
    from openfang.config.models import Config

IN_SIGHT: Final = "its command or address holds a secret, which stays there: use env or headers"
_REDACTED: Final = "[redacted:"
_ALLOW: Final = "allow_private"
THERE: Final = "it is there already"
OURSELVES: Final = "it starts openfang itself"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One server of another program. `skipped` says why it is not taken; else it would be added.

    One that is skipped because another is the same names that one; `gets` are the stored secrets
    that it refers to. The entry may hold secrets, so it is not shown.
    """

    name: str
    foreign: Foreign
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    skipped: str = ""
    same_as: str = ""
    gets: tuple[str, ...] = ()

    @property
    def plain_secrets(self) -> int:
        """Count the secrets that stand in the other program's file as they are."""
        entry = self.foreign.entry
        return len(seal({"name": self.name, **entry}).secrets) if entry else 0

    @property
    def off(self) -> bool:
        """Whether its owner has switched it off where it stands."""
        return OFF in self.foreign.notes

    @property
    def in_sight(self) -> bool:
        """Whether a secret stands in its command or address, where it stays."""
        return holds_secret(self.foreign.entry.get("transport", {}))

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
            "may": [] if self.skipped else allowed_by(self.entry),
        }


def plan(
    found: Iterable[Foreign],
    configured: Sequence[Mapping[str, Any]],
    own: frozenset[str],
    secrets: Sequence[Mapping[str, Any]] = (),
) -> list[Planned]:
    """Decide on each server. `own` are the places, host and port, under which we are reached.

    `secrets` are those that are stored: no file of another program takes what is another server's.
    """
    foreign = list(found)
    named = frozenset(valid_name(one.name) for one in foreign)
    planning = _Planning(configured, own, named, _usable(secrets))
    return [planning.decided(one) for one in foreign]


def _usable(secrets: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The secrets that a reference would be given, and who uses each already."""
    stored = (one for one in secrets if one["stored"] and not one["in_environment"])
    return {one["name"]: tuple(one["servers"]) for one in stored}


class _Planning:
    """Goes through the servers one by one; what is decided on one counts for those after it."""

    def __init__(
        self,
        configured: Sequence[Mapping[str, Any]],
        own: frozenset[str],
        named: frozenset[str],
        stored: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.own = own
        self.named = named
        self.stored = stored
        self.names = {one["name"] for one in configured}
        self.known = {one["name"]: _outline(one.get("transport", {})) for one in configured}
        self.seen: list[tuple[str, Foreign]] = []

    def decided(self, foreign: Foreign) -> Planned:
        name = valid_name(foreign.name)
        if reason := _reason(foreign, self.own):
            return Planned(name=name, foreign=foreign, skipped=reason)
        if same := self._seen(foreign):
            reason = f"it is the same as {same}"
            return Planned(name=name, foreign=foreign, skipped=reason, same_as=same)
        if there := self._there(name, foreign):
            self.seen.append((there, foreign))
            return Planned(name=there, foreign=foreign, skipped=THERE)
        one = self._planned(_free(name, self.names), foreign)
        if not one.skipped:
            self.names.add(one.name)
            self.seen.append((one.name, foreign))
        return one

    def _planned(self, name: str, foreign: Foreign) -> Planned:
        entry = {"name": name, **foreign.entry}
        wanted = referred_by(entry)
        if problem := problem_of(entry) or _taking(wanted, {*self.names, *self.named} - {name}):
            return Planned(name=name, foreign=foreign, skipped=problem)
        given = {one: users for one, users in self.stored.items() if one in wanted}
        return _accepted(name, foreign, entry, given)

    def _there(self, name: str, foreign: Foreign) -> str:
        """Find it among what is configured, maybe under the number that an import gave it."""
        outline = _outline(foreign.entry["transport"])
        numbered = re.compile(rf"{re.escape(name)}(-\d+)?")
        taken = {other for other, _ in self.seen}
        fitting = (
            one for one, known in self.known.items() if known == outline and one not in taken
        )
        return next((one for one in fitting if numbered.fullmatch(one)), "")

    def _seen(self, foreign: Foreign) -> str:
        """Find one that was decided on before and reaches the same with the same credentials."""
        return next((name for name, other in self.seen if _covers(other, foreign)), "")


def _covers(one: Foreign, other: Foreign) -> bool:
    if _outline(one.entry["transport"]) != _outline(other.entry["transport"]):
        return False
    return _given(other).items() <= _given(one).items()


def _given(foreign: Foreign) -> dict[tuple[str, str], str]:
    """What a server is handed: variables and headers, with their values."""
    env: dict[str, str] | list[str] = foreign.entry.get("env", {})
    values = env if isinstance(env, dict) else dict.fromkeys(env, "")
    headers: dict[str, str] = foreign.entry["transport"].get("headers", {})
    tables = {"env": values, "header": headers}
    return {(kind, name): value for kind, table in tables.items() for name, value in table.items()}


def _taking(wanted: Iterable[str], others: Iterable[str]) -> str:
    """Whether it would be given what is stored for another server, or will be by this import."""
    owners = {name: owner for name in sorted(wanted) if (owner := made_for(name, sorted(others)))}
    name = next(iter(owners), "")
    return f"it refers to {name}, which is a secret of {owners[name]}" if name else ""


def _accepted(
    name: str,
    foreign: Foreign,
    entry: Mapping[str, Any],
    given: Mapping[str, tuple[str, ...]],
) -> Planned:
    missing = {wanting(secret) for secret in given}
    notes = [note for note in foreign.notes if note not in missing]
    if name != foreign.name:
        notes.insert(0, f"called {foreign.name!r} there")
    notes += [_gets(secret, users) for secret, users in sorted(given.items())]
    if holds_secret(foreign.entry["transport"]):
        notes.append(IN_SIGHT)
    if _is_private(str(foreign.entry["transport"].get("url", ""))):
        notes.append(f"its address is private: set {_ALLOW} = true in its entry")
    secrets = tuple(sorted(seal(entry).secrets))
    return Planned(
        name=name,
        foreign=foreign,
        entry=entry,
        notes=tuple(notes),
        secrets=secrets,
        gets=tuple(sorted(given)),
    )


def _gets(secret: str, users: tuple[str, ...]) -> str:
    shared = f", as {', '.join(users)} does" if users else ""
    return f"CAREFUL: it gets the stored secret {secret}{shared}"


def holds_secret(transport: Mapping[str, Any]) -> bool:
    """Whether a secret stands in the command or the address itself."""
    return HIDDEN in " ".join(_outline(transport))


def leads_to_us(foreign: Foreign, own: frozenset[str]) -> bool:
    """Whether a server is this very program, or a node at one of our own places."""
    url = str(foreign.entry.get("transport", {}).get("url", ""))
    return foreign.starts_us or urlsplit(url).netloc.lower() in own


def own_places(home: Path, config: Config) -> frozenset[str]:
    """Where this node is reached, by host and port: as is configured, and as it listens now."""
    host, port = config.listen
    local = {f"{name}:{port}" for name in (*_LOOPBACK, host)}
    running = claimed(home)
    if isinstance(running, Daemon):
        port = running.url.rpartition(":")[2]
        local |= {urlsplit(running.url).netloc, *(f"{name}:{port}" for name in _LOOPBACK)}
    public = urlsplit(config.public_url).netloc.lower() if config.public_url else ""
    return frozenset({*local, public} - {""})


def _reason(foreign: Foreign, own: frozenset[str]) -> str:
    if foreign.refused:
        return foreign.refused
    return OURSELVES if leads_to_us(foreign, own) else ""


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _outline(transport: Mapping[str, Any]) -> tuple[str, ...]:
    """How a server is reached, without what is secret in it: the same as it is shown, or before."""
    if "url" in transport:
        return (_blurred(transport["url"], without_credentials(transport["url"])),)
    words = [transport.get("command", ""), *cast("list[str]", transport.get("args", []))]
    return tuple(map(_blurred, words, without_secrets(words)))


def _blurred(word: str, shown: str) -> str:
    hidden = _REDACTED in shown or (shown == word and looks_secret(word))
    return HIDDEN if hidden else shown


def _is_private(url: str) -> bool:
    """Whether an address says by itself that it is one of this machine or its network."""
    try:
        target = parse_target(url)
        if not target.literal:
            return target.host.rpartition(".")[2] == "localhost"
        check_address(target.host, allow_private=False)
    except AddressRefused as refused:
        return _ALLOW in refused.way_out
    return False
