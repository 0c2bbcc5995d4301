"""Whom this node believes: another node's key, fetched where it is public, and written down."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.app.home.editing import Editing
from openfang.app.nodes.book import fingerprint, key_bytes
from openfang.config.edit import with_node, without_node
from openfang.config.load import FILE, load
from openfang.core.errors import NotFound, SourceFailed
from openfang.edges.a2a.places import KEYS
from openfang.host.secrets import MasterKey
from openfang.safety.urls import AddressRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.config.show import Plain

_SECONDS: Final = 10.0
_LARGEST: Final = 65_536
_OK: Final = 200
_KEY_BYTES: Final = 32


async def fetch_key(url: str, *, allow_private: bool) -> bytes:
    """Get the key that the node at an address signs with, as it publishes it."""
    from openfang.host.http import FetchFailed, HttpClient, Request  # noqa: PLC0415 - aiohttp takes 0.4 s

    address = f"{url.rstrip('/')}{KEYS}"
    request = Request(
        url=address,
        allow_hosts=("*",),
        headers={"Accept": "application/json"},
        limit=_LARGEST,
        timeout=_SECONDS,
        allow_private=allow_private,
    )
    try:
        async with HttpClient() as http:
            answer = await http.fetch(request)
    except AddressRefused as refusal:
        # Only a range that can be opened has a way out, which names the key of a configuration.
        way_out = "if that is where it is: --allow-private" if refusal.way_out else ""
        raise SourceFailed(refusal.message, way_out=way_out) from refusal
    except FetchFailed as failure:
        way_out = "is it started there, and is that its address? openfang status says so there"
        raise SourceFailed(failure.message, way_out=way_out) from failure
    key = _key_in(answer.body) if answer.status == _OK else None
    if key is None:
        raise SourceFailed(
            f"{address} answered with status {answer.status}, and with no Ed25519 key.",
            way_out="is that a node of yours, and of this version?",
        )
    return key


def _key_in(body: bytes) -> bytes | None:
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    match found:
        case {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": str(written)}]}:
            key = _decoded(written)
            return key if key is not None and len(key) == _KEY_BYTES else None
        case _:
            return None


def _decoded(written: str) -> bytes | None:
    try:
        return key_bytes(written)
    except ValueError:
        return None


def entry_of(name: str, url: str, key: bytes, **more: Plain) -> dict[str, Plain]:
    """Write a node as the configuration has it; what is not said is left out."""
    written = urlsafe_b64encode(key).decode().rstrip("=")
    entry = {"name": name, "url": url, "public_key": written}
    return {**entry, **{name: value for name, value in more.items() if value}}


def trusted(home: Path, environ: Mapping[str, str], entry: Mapping[str, Plain]) -> None:
    """Write a node down, in the place of the one of its name; a daemon hears of it by itself."""
    editing = Editing(home, environ)
    editing.commit(editing.prepare(home / FILE, lambda text: with_node(text, entry)))


def trusted_no_longer(home: Path, environ: Mapping[str, str], name: str) -> None:
    """Take a node out."""
    if name not in {one["name"] for one in listed(home, environ)}:
        raise NotFound(f"No node {name} is configured.", way_out="openfang nodes list")
    editing = Editing(home, environ)
    editing.commit(editing.prepare(home / FILE, lambda text: without_node(text, name)))


def own_fingerprint(home: Path, environ: Mapping[str, str]) -> str:
    """Give the fingerprint of the key that this node signs with."""
    master = MasterKey.open(home, keyring=load(home, environ).secrets.keyring)
    return fingerprint(master.signing_key().public_key().public_bytes_raw())


def listed(home: Path, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Say who is believed, by name."""
    nodes = sorted(load(home, environ).nodes, key=lambda one: one.name)
    return [
        {
            "name": one.name,
            "url": one.url,
            "fingerprint": fingerprint(key_bytes(one.public_key)),
            "allow_private": one.allow_private,
            "comes_as": one.comes_as,
        }
        for one in nodes
    ]
