"""The addresses that resources of several servers have in one place, and whose they are. Pure.

An address stays as it is. The first server by name keeps one that two have; what is another's is
`openfang://servers/{server}/{address}`, with the address quoted, which is always understood.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from openfang.app.offering.templates import could_be, quoted
from openfang.core.values import dataclass
from openfang.policy.grants import matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openfang.core.results import Part

_OURS: Final = "openfang://"
ALIAS: Final = f"{_OURS}servers/"
_ADDRESSED: Final = ("resource", "resource_link")
_FETCHABLE: Final = ("http://", "https://")
_DOTS: Final = frozenset({".", ".."})
_BETWEEN: Final = re.compile(r"[/\\?#&=;]")
_MOST_QUOTED: Final = 4
_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The resources of one server, as it lists them."""

    server: str
    resources: Sequence[Mapping[str, Any]] = ()
    templates: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Addresses:
    """Those of all servers in a place; of what is not exposed, where that is said, none."""

    libraries: tuple[Library, ...] = ()
    exposed: tuple[str, ...] | None = None

    @cached_property
    def resources(self) -> tuple[Mapping[str, Any], ...]:
        """List the resources."""
        return tuple(
            {**entry, "uri": uri if self._owners.get(uri) == server else _alias(server, uri)}
            for server, uri, entry in self._entries()
        )

    @cached_property
    def templates(self) -> tuple[Mapping[str, Any], ...]:
        """List the templates."""
        return tuple(
            {**entry, "uriTemplate": shown} for shown, (_, _, entry) in self._templates.items()
        )

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        """Say whose an address is; what looks like one of ours is nobody's."""
        owners: dict[str, str] = {}
        for server, uri, _ in self._entries():
            if not uri.startswith(_OURS):
                owners.setdefault(uri, server)
        return owners

    @cached_property
    def _templates(self) -> Mapping[str, tuple[str, str, Mapping[str, Any]]]:
        """Each template as it is shown: whose it is, and what that one calls it."""
        found: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        for server, template, entry in self._listed_templates():
            shown = template
            if template in found or template.startswith(_OURS):
                shown = f"{ALIAS}{server}/{quoted(template)}"
            found.setdefault(shown, (server, template, entry))
        return found

    def _entries(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for library in self.libraries:
            yield from self._listed(library.server, library.resources, "uri")

    def _listed_templates(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for library in self.libraries:
            yield from self._listed(library.server, library.templates, "uriTemplate")

    def _listed(
        self, server: str, entries: Sequence[Mapping[str, Any]], key: str
    ) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Take what has an address, once, and may be seen."""
        seen: set[str] = set()
        for entry in entries:
            address = entry.get(key)
            if isinstance(address, str) and address not in seen and self._shows(address):
                seen.add(address)
                yield server, address, entry

    def _shows(self, address: str) -> bool:
        """Whether it is exposed, as it is written and as a server may read it."""
        if self.exposed is None:
            return True
        read = _as_read(address)
        return (
            read is not None
            and matches(self.exposed, address)
            and matches((*self.exposed, *map(unquote, self.exposed)), read)
        )

    def find(self, address: str) -> tuple[str, str] | None:
        """Say whose an address is, and what that server calls it."""
        found = self._aliased(address) if address.startswith(_OURS) else self._owned(address)
        return found if found is not None and self._shows(found[1]) else None

    def _aliased(self, address: str) -> tuple[str, str] | None:
        server, _, rest = address.removeprefix(ALIAS).partition("/")
        known = address.startswith(ALIAS) and self._has(server)
        return (server, unquote(rest)) if known else None

    def _has(self, server: str) -> bool:
        return any(library.server == server for library in self.libraries)

    def _owned(self, address: str) -> tuple[str, str] | None:
        """Ask the lists, then the templates; with one server only it is that one's."""
        if address in self._owners:
            return self._owners[address], address
        for server, template, _ in self._templates.values():
            if could_be(template, address):
                return server, address
        return (self.libraries[0].server, address) if len(self.libraries) == 1 else None

    def find_template(self, address: str) -> tuple[str, str] | None:
        """Say whose a template is, and what that server calls it; a plain address is one, too."""
        shown = self._templates.get(address)
        return (shown[0], shown[1]) if shown else self.find(address)

    def here(self, server: str, uri: str) -> str:
        """Say by which address a server's resource can be read here.

        What anybody can fetch is left as it is, unless another server claims it.
        """
        if not uri.startswith(_OURS) and self._owned(uri) == (server, uri):
            return uri
        unclaimed = uri not in self._owners
        return uri if unclaimed and uri.startswith(_FETCHABLE) else _alias(server, uri)

    def known_by(self, server: str, uri: str) -> tuple[str, ...]:
        """Give every address by which somebody may have asked for a server's resource."""
        if not self._has(server) or not self._shows(uri):
            return ()
        return tuple(dict.fromkeys((self.here(server, uri), _alias(server, uri))))

    def readdressed(self, server: str, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """Name the addresses of this place in what a server answered."""
        return tuple(self._part(server, part) for part in content)

    def _part(self, server: str, part: Part) -> Part:
        match part:
            case {"type": "resource_link", "uri": str(uri)}:
                here = self.here(server, uri)
                return part if here == uri else {**part, "uri": here}
            case {"type": "resource", "resource": {"uri": str(uri)}}:
                here = self.here(server, uri)
                inner = {**part["resource"], "uri": here}
                return part if here == uri else {**part, "resource": inner}
            case _:
                return part


def _as_read(address: str) -> str | None:
    """Unquote an address; None if it leads elsewhere than it seems to."""
    for _ in range(_MOST_QUOTED):
        plain = unquote(address)
        if plain == address:
            break
        address = plain
    else:
        return None
    odd = not address.isprintable() or _UNREADABLE in address
    return None if odd or not _DOTS.isdisjoint(_BETWEEN.split(address)) else address


def names_addresses(content: tuple[Part, ...]) -> bool:
    """Whether there is any address in what a server answered."""
    return any(part.get("type") in _ADDRESSED for part in content)


def _alias(server: str, uri: str) -> str:
    return f"{ALIAS}{server}/{quote(uri, safe='')}"
