"""How an agent introduces itself: its card in any dialect, read with care. No I/O."""

from __future__ import annotations

from dataclasses import field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.core.errors import InvalidArguments, SourceFailed
from openfang.core.values import dataclass
from openfang.safety.sizes import measure
from openfang.sources.a2a.shapes import object_in, objects_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SEED: Final = "seed"
"""The binding of an interface in the first dialect, which cards do not name."""
_MOST_SKILLS: Final = 100
_MOST_INTERFACES: Final = 20
_LONGEST_NAME: Final = 200
_LONGEST_TEXT: Final = 2_000
_DEEPEST: Final = 32
_OLDER: Final = "0.3.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """An address at which the agent is spoken to, and how."""

    url: str
    binding: str
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Something that it says it can do."""

    id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card. `raw` is all of it, `digest` what it is known again by, `etag` its server's word."""

    name: str
    description: str
    version: str
    skills: tuple[Skill, ...]
    interfaces: tuple[Interface, ...]
    streaming: bool
    raw: Mapping[str, Any] = field(repr=False)
    digest: str
    etag: str = field(default="", compare=False)

    @property
    def of_the_seed(self) -> bool:
        """Whether it is spoken to in the first dialect."""
        return self.interfaces[0].binding == SEED


def read_card(card: Mapping[str, Any], where: str, etag: str = "") -> Card:
    """Read what was found at an address; what is no card fails."""
    try:
        deep = measure(card)[0] > _DEEPEST
    except InvalidArguments as wrong:
        raise SourceFailed(f"{where} holds no card: {wrong.message}") from wrong
    if deep:
        raise SourceFailed(f"{where} holds a card that is nested deeper than {_DEEPEST} levels")
    interfaces = tuple(islice(_interfaces(card), _MOST_INTERFACES))
    if not interfaces:
        raise SourceFailed(f"{where} holds a card that names no address of the agent")
    return Card(
        name=text_in(card.get("name"), _LONGEST_NAME) or "an agent without a name",
        description=text_in(card.get("description"), _LONGEST_TEXT),
        version=text_in(card.get("version"), _LONGEST_NAME),
        skills=tuple(islice(_skills(card.get("skills")), _MOST_SKILLS)),
        interfaces=interfaces,
        streaming=object_in(card.get("capabilities")).get("streaming") is True,
        raw=card,
        digest=_digest(card),
        etag=etag,
    )


def seed_at(url: str) -> Card:
    """Make the card of an agent of which only the address is known, in the first dialect."""
    return read_card({"name": url, "url": url}, url)


def _interfaces(card: Mapping[str, Any]) -> Iterator[Interface]:
    """Name them: those of 1.0, else those of 0.3, else the one of the seed."""
    listed = list(objects_in(card.get("supportedInterfaces")))
    for one in listed:
        if url := text_in(one.get("url")):
            version = text_in(one.get("protocolVersion"), _LONGEST_NAME)
            yield Interface(url=url, binding=_binding(one, "protocolBinding"), version=version)
    if listed or not (url := text_in(card.get("url"))):
        return
    if "protocolVersion" not in card:
        yield Interface(url=url, binding=SEED)
        return
    version = text_in(card.get("protocolVersion"), _LONGEST_NAME) or _OLDER
    binding = _binding(card, "preferredTransport") or "JSONRPC"
    yield Interface(url=url, binding=binding, version=version)
    for one in objects_in(card.get("additionalInterfaces")):
        if url := text_in(one.get("url")):
            yield Interface(url=url, binding=_binding(one, "transport"), version=version)


def _binding(named: Mapping[str, Any], key: str) -> str:
    return text_in(named.get(key), _LONGEST_NAME)


def _skills(listed: object) -> Iterator[Skill]:
    for one in objects_in(listed):
        id_, name = (text_in(one.get(key), _LONGEST_NAME) for key in ("id", "name"))
        if id_ or name:
            description = text_in(one.get("description"), _LONGEST_TEXT)
            yield Skill(id=id_ or name, name=name or id_, description=description)


def said(card: Mapping[str, Any]) -> dict[str, Any]:
    """Give all that a card says; who signs it anew says nothing new."""
    return {name: value for name, value in card.items() if name != "signatures"}


def _digest(card: Mapping[str, Any]) -> str:
    """Know a card by all that it says."""
    return sha256(orjson.dumps(said(card), option=orjson.OPT_SORT_KEYS)).hexdigest()
