"""One request of a browser, and what goes back, as small values."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from openfang.core.errors import Rejected
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from openfang.core.calls import Caller, Role
    from openfang.core.session import Session
    from openfang.edges.api.mount import Came
    from openfang.edges.web.ports import Watch

_MOST_FIELDS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for a page from who is signed in. `draw` makes HTML of a template."""

    came: Came
    session: Session
    watch: Watch
    draw: Callable[[str, Mapping[str, Any]], str]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return self.came.caller

    def may(self, *roles: Role) -> bool:
        """Whether who asks has one of these roles, or manages the node."""
        return self.caller.admin or self.caller.role in roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page to show: its template, where it stands in the menu, and what is on it."""

    template: str
    title: str
    section: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    crumbs: tuple[tuple[str, str], ...] = ()
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Go on at another page of ours."""

    where: str
    cookies: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What goes back piece by piece; a `name` makes it a file to keep."""

    pieces: AsyncGenerator[bytes]
    content_type: bytes = b"text/event-stream"
    name: str = ""


def fields_of(text: bytes) -> dict[str, str]:
    """Read a query or a form; of a field that is there twice the last holds."""
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise Rejected("The form is not readable.", status=400, rule="form") from None
    return dict(pairs)


def ours(where: str) -> str:
    """Let nobody be led elsewhere: an address of this node, or the first page."""
    plain = where.startswith("/") and not where.startswith(("//", "/\\"))
    return where if plain and where.isascii() and where.isprintable() else "/"
