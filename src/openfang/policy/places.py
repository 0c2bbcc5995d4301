"""Where a call would reach out to: the addresses among its arguments, held to network grants. Pure.

What an argument with the name of a place says must be an address that can be read, or it is taken
for one that is not granted: somebody else reads it by rules of their own. Anywhere else, what
begins like an address of the network is one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from openfang.safety.urls import AddressRefused, Target, host_granted, parse_target

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

EVERYWHERE: Final = "*"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLACES: Final = frozenset(
    {"url", "uri", "href", "link", "host", "hostname", "endpoint", "website", "webhook", "domain"}
)
_SCHEME: Final = re.compile(r"\A([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_NETWORK: Final = re.compile(r"\A\s*(https?|wss?|ftps?|sftp|ssh|git)[:+]", re.IGNORECASE)
_AS_HTTP: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_HTTP_PORT: Final = 80
_NO_HOST: Final = "file:///"
_LONGEST: Final = 200


class Place(NamedTuple):
    """An argument that may say where: its name, and what it says."""

    name: str
    says: str


def ungranted(
    arguments: Mapping[str, Any], grants: tuple[str, ...], *, targets: Collection[str] = ()
) -> tuple[str, str] | None:
    """Find a host that is not granted, or what cannot be read; and say what is wrong with it.

    `targets` are arguments that are known to choose something.
    """
    if EVERYWHERE in grants:
        return None
    for place in _places(arguments, frozenset(one.rpartition(".")[2] for one in targets)):
        try:
            target = _read(place.says)
        except AddressRefused:
            return "", f"{place.name} says {place.says[:_LONGEST]!a}, which is no plain address"
        if not host_granted(target, grants):
            return target.host, f"Host {target.host} is not covered"
    return None


def _places(arguments: Mapping[str, Any], targets: frozenset[str]) -> Iterator[Place]:
    waiting: list[tuple[str, object, bool]] = [("", arguments, False)]
    while waiting:
        name, value, named = waiting.pop()
        match value:
            case dict():
                table = cast("dict[str, object]", value)
                waiting += [(key, one, named or _names_a_place(key)) for key, one in table.items()]
                waiting += [(key, key, False) for key in table]
            case list() | tuple():
                waiting += [(name, one, named) for one in cast("list[object]", value)]
            case bool() | None | "":
                pass
            case str() | int() | float():
                if _is_place(str(value), named=named, chosen=name in targets):
                    yield Place(name, str(value))
            case _:
                pass


def _names_a_place(name: str) -> bool:
    words = _WORD.findall(name)
    return bool(words) and words[-1].lower().removesuffix("s") in _PLACES


def _is_place(says: str, *, named: bool, chosen: bool) -> bool:
    if says.startswith(_NO_HOST):
        return False
    if named:
        return True
    # Prose may begin with an address, too; what chooses something is no prose.
    return _NETWORK.match(says) is not None and (chosen or len(says.split()) == 1)


def _read(says: str) -> Target:
    """Read an address of any scheme, or a host alone."""
    scheme = _SCHEME.match(says)
    if scheme is None:
        return parse_target(f"http:{says}" if says.startswith("//") else f"https://{says}")
    spoken = _AS_HTTP.get(scheme[1].lower())
    target = parse_target(f"{spoken or 'http'}://{says[scheme.end() :]}")
    # The usual port of another protocol is none that a grant for HTTP means.
    return target if spoken or target.port != _HTTP_PORT else replace(target, port=0)
