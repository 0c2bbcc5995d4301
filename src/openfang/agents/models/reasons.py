"""Why a provider did not answer, as sentences: the address, the key, the model, or its own fault.

Pure. What others said is for the log, without the key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.safety.urls import AddressRefused

if TYPE_CHECKING:
    from openfang.agents.models.providers import Endpoint

_LONGEST_DETAIL: Final = 500
_LATER: Final = (408, 409, 425)
_ERROR: Final = 500
_OPENS: Final = "allow_private"
_WINDOW = re.compile(
    r"context.{0,12}(length|window|size)|prompt is too long|too many (input )?tokens|"
    r"maximum.{0,20}tokens",
    re.IGNORECASE,
)


def by_status(status: int, said: str) -> tuple[Trouble, str]:
    """Judge by the status of an answer, where nothing better is known."""
    if status >= _ERROR or status in _LATER:
        return Trouble.BUSY, f"has an error of its own ({status})"
    if _WINDOW.search(said):
        return Trouble.WINDOW, "cannot read so much at once"
    return Trouble.REJECTED, f"did not take the request ({status})"


def failed(
    endpoint: Endpoint, trouble: Trouble, words: str, error: Exception | None = None
) -> ModelFailed:
    """Make a failure of what a provider did; `error` is what a library made of it."""
    who = endpoint.provider
    if trouble in {Trouble.NO_MODEL, Trouble.WINDOW}:
        who = f"{endpoint.provider}/{endpoint.model}" if trouble is Trouble.WINDOW else who
        words = f"{words}: {endpoint.model}" if trouble is Trouble.NO_MODEL else words
    detail = f"{type(error).__name__}: {error}" if error else ""
    secret = endpoint.key or "\0"
    return ModelFailed(
        f"{who} {words}.",
        trouble=trouble,
        way_out=_way_out(endpoint, trouble),
        detail=detail.replace(secret, "[key]")[:_LONGEST_DETAIL],
        retry_after=getattr(error, "retry_after", None),
    )


def _way_out(endpoint: Endpoint, trouble: Trouble) -> str:
    if trouble is not Trouble.WRONG_KEY:
        return _WAYS_OUT.get(trouble, "")
    if not endpoint.key:
        return "api_key_env, beside the base_url"
    name = endpoint.key_name
    return f"another {name}" + ("" if name.startswith("[") else f": openfang secrets set {name}")


_WAYS_OUT: Final = {
    Trouble.NO_MODEL: "[model] model",
    Trouble.WINDOW: "a smaller [model] context_window",
    Trouble.RATE: "a moment later, or [[fallback_models]]",
}


def refused_by_us(error: BaseException | None) -> AddressRefused | None:
    """Find out whether it was we who did not let the request out."""
    while error is not None and not isinstance(error, AddressRefused):
        error = error.__cause__ or error.__context__
    return error


def address_way_out(endpoint: Endpoint, refused: AddressRefused) -> str:
    """Say what opens an address; what nothing opens is another address's turn."""
    if _OPENS in refused.way_out:
        return f"[providers.{endpoint.provider}] {_OPENS}, if that is meant"
    return refused.way_out or "another base_url"
