"""What is sent to somebody outside: to an address that was checked and pinned, and never further.

What comes back says what is to be done: it was taken, it is refused for good, or it is tried again.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.safety.urls import AddressRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.a2a.targets import Targets
    from openfang.core.ports import Clock
    from openfang.host.http import Request, Response

_SECONDS: Final = 15.0
_MOST_READ: Final = 4096
_OK: Final = range(200, 300)
_REFUSED: Final = frozenset(range(300, 500)) - {408, 429}
_MOST_BARRED: Final = 5
_BUSY: Final = frozenset({429, 503})
_LONGEST_ASKED: Final = 600.0


@dataclass(frozen=True, slots=True)
class Letter:
    """A body on its way, with its headers."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a letter: the status, if there was one, and how long we are to wait.

    `barred` is whether it goes to an address that must not be reached.
    """

    status: int
    reason: str
    wait: float = 0.0
    barred: bool = False

    @property
    def taken(self) -> bool:
        """Whether it has arrived."""
        return self.status in _OK

    def hopeless(self, tries: int) -> bool:
        """Whether it is refused for good; so many tries have failed before this one."""
        return self.status in _REFUSED or (self.barred and tries + 1 >= _MOST_BARRED)


@dataclass(frozen=True, slots=True)
class Post:
    """Sends letters to where they may go."""

    targets: Targets
    clock: Clock

    async def send(self, letter: Letter) -> Posted:
        """Send one, once."""
        from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s

        try:
            async with HttpClient(resolve=self.targets.resolve) as http:
                response = await http.fetch(self._request(letter))
        except AddressRefused as refusal:
            # A name that does not resolve today may do so tomorrow.
            return Posted(0, refusal.code, barred=refusal.rule != "unresolved")
        except OpenFangError as error:
            return Posted(0, error.code)
        wait = _asked(response, self.clock.time_ns()) if response.status in _BUSY else 0.0
        return Posted(response.status, f"answered with {response.status}", wait)

    def _request(self, letter: Letter) -> Request:
        from openfang.host.http import Request  # noqa: PLC0415 - aiohttp takes 0.4 s

        return Request(
            url=letter.url,
            allow_hosts=("*",),
            method="POST",
            headers=letter.headers,
            body=letter.body,
            limit=_MOST_READ,
            timeout=_SECONDS,
            allow_private=self.targets.allow_private(),
            follow=False,
        )


def _asked(response: Response, now: int) -> float:
    """Seconds that a busy receiver asks for, as a number or as a date; ten minutes at most."""
    text = response.header("retry-after") or ""
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_ASKED)
    try:
        until = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return min(until - now / 1e9, _LONGEST_ASKED)
