"""The JSON of a request: read once, whichever dialect it turns out to be in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.edges.a2a.versions import LARGE, is_json
from openfang.edges.api.exchange import parse_json

if TYPE_CHECKING:
    from openfang.edges.api.mount import Came


@dataclass(frozen=True, slots=True)
class Body:
    """What it holds, or why that cannot be read: each dialect has words of its own for it."""

    value: Any = None
    error: Rejected | None = None


async def read_body(came: Came, *, rest: bool = False) -> Body:
    """Read it; others go on while a large one is read. `rest` has a media type of its own."""
    if len(came.body) < LARGE:
        return _read(came, rest=rest)
    return await to_thread.run_sync(partial(_read, came, rest=rest))


def _read(came: Came, *, rest: bool) -> Body:
    if not came.body and rest:
        return Body()
    try:
        return Body(_parsed(came, rest=rest))
    except Rejected as error:
        return Body(error=error)


def _parsed(came: Came, *, rest: bool) -> Any:  # noqa: ANN401 - any JSON
    if not is_json(came.headers, rest=rest):
        raise Rejected(
            "The body is not JSON, by its Content-Type.",
            status=415,
            rule="content_type",
            way_out="Content-Type: application/json",
        )
    return parse_json(came.body)
