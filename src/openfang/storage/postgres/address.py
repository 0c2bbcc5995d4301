"""Where a Postgres server is and what a connection is asked to keep to. No I/O."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from openfang.core.errors import HomeError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 20.0
"""The server ends a statement that takes longer; a little later we no longer wait for it."""
_PASSWORD: Final = re.compile(r"(?<=//)([^:/@]*:)[^@]+(?=@)|(?<=[?&])(password=)[^&]*")
_SETTINGS: Final = {
    "application_name": "openfang",
    "statement_timeout": f"{STATEMENT_SECONDS * 1000:.0f}",
    "idle_in_transaction_session_timeout": "60000",
    "timezone": "UTC",
    "jit": "off",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A `postgresql://` address. Its password is in `url` alone, which is never shown."""

    url: str = field(repr=False)

    @property
    def settings(self) -> Mapping[str, str]:
        """What every connection is asked to keep to, but for what the address itself says."""
        said = dict(parse_qsl(urlsplit(self.url).query))
        return {name: value for name, value in _SETTINGS.items() if name not in said}

    @property
    def to_write(self) -> str:
        """The whole of it, with a word in the place of its password."""
        return _PASSWORD.sub(lambda one: f"{one[1] or one[2]}PASSWORD", self.url)

    def __str__(self) -> str:
        """Write it without its password."""
        try:
            found = urlsplit(self.url)
            query = dict(parse_qsl(found.query))
            name, where = unquote(found.path.lstrip("/")), found.netloc.rpartition("@")[2]
            user = unquote(found.username or "")
        except ValueError:
            return "postgresql://..."
        user, name = user or query.get("user", ""), name or query.get("dbname", "")
        where = where or query.get("host", "")
        return f"postgresql://{f'{user}@' if user else ''}{where}/{name}"


def address(url: str) -> Address:
    """Read an address; one that nobody can mean is refused before anything is tried."""
    one = Address(url)
    try:
        found = urlsplit(url)
        wrong = found.scheme not in {"postgresql", "postgres"} or (found.port or 1) < 1
    except ValueError:
        wrong = True
    if wrong:
        raise HomeError(
            f"storage.url = {one}: this is no address of a Postgres server.",
            way_out='storage.url = "postgresql://user:password@host:5432/database"',
        )
    return one
