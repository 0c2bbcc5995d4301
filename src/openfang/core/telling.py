"""What is told of a call on its way, as JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.agents import Ended, Ending, Made, Usage, Wanted, Wish, Words
from openfang.core.bodies import receipt_body
from openfang.core.progress import Progress
from openfang.core.wire import read_receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.progress import Told

KINDS: Final = ("progress", "words", "wanted", "made", "ended")
_MOST_TOLD: Final = 2000


def told_body(told: Told) -> dict[str, Any]:
    """Write what is told of a call on its way; `told_name` says what kind of thing it is."""
    match told:
        case Progress():
            fields = {"progress": told.progress, "total": told.total, "message": told.message}
            return {name: value for name, value in fields.items() if value not in {None, ""}}
        case Words(text):
            return {"text": text}
        case Wanted(wish):
            return {"id": wish.id, "tool": wish.tool, "arguments": dict(wish.arguments)}
        case Made(wish=wish, receipt=receipt):
            return {
                "id": wish.id,
                "tool": wish.tool,
                "outcome": told.outcome,
                "text": told.text[:_MOST_TOLD],
                "audit": receipt_body(receipt),
            }
        case Ended():
            usage = usage_body(told.usage)
            return {"response": told.answer, "ending": told.ending.value, "usage": usage}


def told_name(told: Told) -> str:
    """How an event is named in which it is told."""
    return type(told).__name__.lower()


def read_told(kind: str, body: Mapping[str, Any]) -> Told:
    """Read what `told_body` writes."""
    match kind:
        case "progress":
            return Progress(
                progress=body["progress"], total=body.get("total"), message=body.get("message", "")
            )
        case "words":
            return Words(body["text"])
        case "wanted":
            return Wanted(Wish(**body))
        case "made":
            wish = Wish(id=body["id"], tool=body["tool"])
            receipt = read_receipt(body["audit"])
            return Made(wish=wish, outcome=body["outcome"], text=body["text"], receipt=receipt)
        case "ended":
            usage, ending = Usage(**body["usage"]), Ending(body["ending"])
            return Ended(answer=body["response"], ending=ending, usage=usage)
        case _:
            raise LookupError(kind)


def usage_body(usage: Usage) -> dict[str, Any]:
    """What a run used up."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }
