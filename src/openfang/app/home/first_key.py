"""The first key of a home, an administrator's: on record like any other."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

import orjson

from openfang.core.calls import Role
from openfang.core.events import KEY_CREATED
from openfang.core.ids import new_id
from openfang.core.keys import Key
from openfang.host.private import write_private
from openfang.storage.keys import KEY_PREFIX, new_secret
from openfang.storage.units import Line, Unit

if TYPE_CHECKING:
    from openfang.app.home.paths import Home
    from openfang.storage.keys import KeyStore

DEFAULT_PROJECT = "default"


class FirstKey(NamedTuple):
    """A key that is not in force yet: that it is when the unit is written."""

    secret: str
    unit: Unit
    created_at: int


async def is_in_force(home: Home, keys: KeyStore) -> bool:
    """Whether the key file holds a key that opens something; one that does not is set aside."""
    if not home.key_file.exists():
        return False
    secret = home.key_file.read_text("utf-8", errors="surrogateescape").strip()
    if await keys.find_key(secret) is not None:
        return True
    home.key_file.replace(home.old_key_file)
    return False


async def first_key(keys: KeyStore) -> FirstKey:
    """Make a key under a name that no other has."""
    names = {key.name for key in await keys.all()}
    name = "admin" if "admin" not in names else f"admin-{secrets.token_hex(3)}"
    key = Key(
        id=new_id("key"),
        name=name,
        role=Role.ADMIN,
        projects=(DEFAULT_PROJECT,),
        created_at=time.time_ns(),
    )
    secret = new_secret(KEY_PREFIX)
    payload = orjson.dumps({"key": key.id, "name": name, "role": "admin", "by": "init"}).decode()
    line = Line(KEY_CREATED, "info", "", "", payload, "{}")
    return FirstKey(secret, Unit((line,), (keys.insert_key(key, secret),)), key.created_at)


def keep(home: Home, made: FirstKey) -> None:
    """Write it where commands look for it."""
    write_private(home.key_file, made.secret + "\n")
