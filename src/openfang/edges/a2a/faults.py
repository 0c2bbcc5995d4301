"""What went wrong, in the words of A2A: one table from our errors to the protocol's.

The library knows the protocol's own errors. What the protocol leaves to the server is told as
-32000: refused by policy, too much at once, not possible now.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from openfang.core.errors import (
    AuditUnavailable,
    CallRefused,
    Conflict,
    GuardTripped,
    HomeError,
    InvalidArguments,
    NotFound,
    OpenFangError,
    Rejected,
    UnknownTool,
)
from openfang.edges.a2a.sdk import EXCEPTION_MAP, JSONRPCError, errors

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.core.trace import Chain

_log = logging.getLogger("openfang.a2a")
SERVER_ERROR: Final = -32000
WRONG_TYPE: Final = 415
_TOO_LARGE: Final = 413
_NOT_JSON: Final = -32700
_NO_REQUEST: Final = -32600
_NO_TYPE: Final = -32005
_OF_CHAINS: Final = frozenset({"recursion_limit", "reentry", "chain_budget"})
_STOPS: Final = (".", "!", "?", ":")
_UNAVAILABLE: Final = 503


class Refused(errors.A2AError):
    """Policy said no."""


class TooMuch(errors.A2AError):
    """A guard said no."""


class Unavailable(errors.A2AError):
    """It cannot be done now."""


class WrongType(errors.ContentTypeNotSupportedError):
    """The body says that it is something else than JSON: HTTP has a status for this."""


class TooLarge(errors.A2AError):
    """The body has more than is taken."""


def _tell_apart(
    kind: type[errors.A2AError], http: int, status: str, reason: str, code: int = SERVER_ERROR
) -> None:
    """Let the library know an error: it looks them up by their class."""
    errors.JSON_RPC_ERROR_CODE_MAP[kind] = code
    errors.A2A_ERROR_MAPPING[kind] = errors.ErrorMapping(http, status, reason)
    errors.A2A_ERROR_REASONS[kind] = reason
    EXCEPTION_MAP[kind] = JSONRPCError


_tell_apart(Refused, 403, "PERMISSION_DENIED", "POLICY_VIOLATION")
_tell_apart(TooMuch, 429, "RESOURCE_EXHAUSTED", "GUARD_TRIPPED")
_tell_apart(Unavailable, _UNAVAILABLE, "UNAVAILABLE", "UNAVAILABLE")
_tell_apart(errors.JSONParseError, 400, "INVALID_ARGUMENT", "INVALID_JSON", _NOT_JSON)
_tell_apart(WrongType, WRONG_TYPE, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", _NO_TYPE)
_tell_apart(TooLarge, _TOO_LARGE, "INVALID_ARGUMENT", "BODY_TOO_LARGE", _NO_REQUEST)


_KINDS: Final = (
    (GuardTripped, TooMuch),
    (InvalidArguments, errors.InvalidParamsError),
    ((NotFound, UnknownTool), errors.TaskNotFoundError),
    ((AuditUnavailable, HomeError), Unavailable),
    (CallRefused, Refused),
    (Rejected, errors.InvalidParamsError),
)


@contextmanager
def told(
    chain: Chain, conflict: type[errors.A2AError] = errors.UnsupportedOperationError
) -> Generator[None]:
    """Say what goes wrong in here in the protocol's words; `conflict` is what a conflict is."""
    try:
        yield
    except errors.A2AError:
        raise
    except OpenFangError as error:
        raise fault_of(error, chain, conflict) from error
    except Exception:  # noqa: BLE001 - the library would tell the peer all about it, and nobody else
        _log.exception("A request broke")
        raise errors.InternalError("Something broke while this was done.") from None


def fault_of(
    error: OpenFangError,
    chain: Chain,
    conflict: type[errors.A2AError] = errors.UnsupportedOperationError,
) -> errors.A2AError:
    """Say it in the protocol's words. What is hidden sounds like what does not exist."""
    rule = error.rule if isinstance(error, CallRefused | Rejected) else error.code
    return _kind(error, conflict)(sentence(error), {"rule": rule, **_depth(rule, chain)})


def untaken(error: Rejected) -> errors.A2AError:
    """Say why a body was not taken in."""
    kinds = {_TOO_LARGE: TooLarge, WRONG_TYPE: WrongType}
    return kinds.get(error.status, errors.InvalidRequestError)(
        sentence(error), {"rule": error.rule}
    )


def _kind(error: OpenFangError, conflict: type[errors.A2AError]) -> type[errors.A2AError]:
    if isinstance(error, Conflict):
        return conflict
    if isinstance(error, Rejected) and error.status == _UNAVAILABLE:
        return Unavailable
    return next((kind for ours, kind in _KINDS if isinstance(error, ours)), errors.InternalError)


def sentence(error: OpenFangError) -> str:
    """Say what happened and the way out."""
    if not error.way_out:
        return error.message
    stop = "" if error.message.endswith(_STOPS) else "."
    return f"{error.message}{stop} Way out: {error.way_out}."


def _depth(rule: str, chain: Chain) -> dict[str, str]:
    """Tell how deep a chain is that is too deep; the values of these details are text."""
    if rule not in _OF_CHAINS:
        return {}
    return {"depth": str(chain.depth), "path": ",".join(chain.ancestors)}
