"""Parameters beside those that are read: which change nothing, and which cannot be served.

One that would change the answer and is not served here is refused, never left out in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.edges.openai.faults import Unfit
from openfang.edges.openai.schemas import REQUEST

if TYPE_CHECKING:
    from collections.abc import Mapping

IGNORED: Final = frozenset(
    {
        *("seed", "store", "service_tier", "prediction", "reasoning_effort", "verbosity"),
        *("safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    }
)
"""Hints, and where something is kept: the answer is the same without them."""

NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "stop": ([],),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
    "audio": (),
    "functions": ([],),
    "function_call": ("auto", "none"),
    "web_search_options": (),
}
"""What is not served, with the values that mean as much as nothing."""


def check_parameters(body: Mapping[str, Any]) -> None:
    """Refuse what cannot be honoured."""
    for name, value in body.items():
        if value is None or name in REQUEST["properties"] or name in IGNORED:
            continue
        if name not in NEUTRAL:
            raise Unfit(
                f"Unrecognized request argument supplied: {name[:100]}.",
                name[:100],
                rule="unknown_parameter",
            )
        if value not in NEUTRAL[name]:
            raise _unserved(name)


def _unserved(name: str) -> Unfit:
    means = NEUTRAL[name]
    kept = f"leave it out, or send {' or '.join(map(repr, means))}" if means else "leave it out"
    return Unfit(
        f"{name} is not served here: it would change the answer.",
        name,
        rule="unsupported_parameter",
        way_out=kept,
    )
