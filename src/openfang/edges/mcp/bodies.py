"""What stands in a message, read strictly; and the answers to a POST that need no handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.errors import Rejected
from openfang.core.integers import long_integer
from openfang.edges.api.exchange import Answer
from openfang.protocols.mcp.errors import INVALID_REQUEST, RpcError
from openfang.protocols.mcp.framing import decoded
from openfang.protocols.mcp.messages import failure
from openfang.safety.doubled import doubled_key

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Headers
    from openfang.edges.api.mount import Came
    from openfang.protocols.mcp.messages import Id

BAD_REQUEST: Final = 400
_JSON: Final = b"application/json"
_SHOWN: Final = 60
ACCEPTED: Final = Answer(body=b"", status=202)


def check_type(headers: Headers) -> None:
    """Refuse a body that says it is something else; one that says nothing is taken for JSON."""
    kind = headers.get(b"content-type", _JSON).partition(b";")[0].strip().lower()
    if kind != _JSON:
        raise Rejected(
            "The body is not JSON, by its Content-Type.",
            status=415,
            rule="content_type",
            way_out="Content-Type: application/json",
        )


def read_value(body: bytes) -> object:
    """Decode a body. Raises the error to answer with."""
    value = decoded(body)
    if unclear := find_unclear(body, value):
        raise invalid(unclear)
    return value


def find_unclear(body: bytes, value: object) -> str:
    """Say what two readers of a text could each read otherwise; `value` is that text, read."""
    if digits := long_integer(body):
        return f"the integer {digits} needs more than 64 bits"
    if (key := doubled_key(body, value)) is not None:
        return f"{key[:_SHOWN]!r} is there twice in one object"
    return ""


def invalid(reason: str) -> RpcError:
    """Refuse what is no request, or none that can be answered here."""
    return RpcError(INVALID_REQUEST, f"Invalid request: {reason}")


async def refuse(came: Came, number: Id | None, error: RpcError, status: int = BAD_REQUEST) -> None:
    """Answer with an error."""
    await came.answer(Answer(body=failure(number, error), status=status))
