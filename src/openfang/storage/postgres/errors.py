"""What a Postgres server's errors mean for whoever runs the node.

A server says what is wrong by five signs; what breaks the connection itself has none. No I/O.
"""

from __future__ import annotations

from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING, Final

from openfang.core.errors import Conflict, HomeError, OpenFangError

if TYPE_CHECKING:
    from openfang.storage.postgres.address import Address

_GONE: Final = ("08", "57P")
_COLLIDED: Final = frozenset({"40001", "40P01"})
_INTEGRITY: Final = "23"
_SAID: Final = {
    "28P01": ("{at} refuses the password.", "write the right one into storage.url"),
    "28000": (
        "{at} does not let this user in: {why}.",
        "name another in storage.url, make it with createuser, or see pg_hba.conf of the server",
    ),
    "3D000": ("{at}: there is no such database.", "make it with createdb, or name another"),
    "42501": ("{at}: {why}.", "give the user the right to it, or name another in storage.url"),
    "25006": ("{at} cannot be written to ({why}).", "name the server that is in charge"),
    "53100": ("The disk of {at} is full.", "free some space there; nothing is lost"),
    "53300": ("{at} takes no more connections.", "raise max_connections there"),
    "57014": ("{at} took too long, and was stopped.", "see what else the server does"),
}


class Unreachable(HomeError):  # noqa: N818 - it reads as what it is
    """The server does not answer, or no longer: it may do so again."""


def sqlstate(error: BaseException) -> str:
    """The five signs by which the server says what is wrong; none if it did not say it."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Whether the connection is of no use any more, whatever was asked of it."""
    broken = isinstance(error, ConnectionError | TimeoutError | Unreachable)
    return broken or sqlstate(error).startswith(_GONE)


def has_collided(error: BaseException) -> bool:
    """Whether another one's change came in between, so that the same may be tried again."""
    return sqlstate(error) in _COLLIDED


def is_taken(error: BaseException) -> bool:
    """Whether a number of the log is taken: somebody else has written for this node."""
    return getattr(error, "constraint_name", None) == "audit_pkey"


def meaning(address: Address, error: Exception) -> OpenFangError:
    """Tell a change that contradicts what is there from all else."""
    if sqlstate(error).startswith(_INTEGRITY):
        return Conflict(f"The database refused the change: {_why(error)}.")
    return explain(address, error)


def explain(address: Address, error: Exception) -> HomeError:
    """Translate an error into a sentence and a way out."""
    if isinstance(error, HomeError):
        return error
    said = _SAID.get(sqlstate(error))
    if said is not None:
        text, way_out = said
        return HomeError(text.format(at=address, why=_why(error)), way_out=way_out)
    if sqlstate(error) and not is_lost(error):
        return HomeError(
            f"{address} could not do it ({sqlstate(error)}: {_why(error)}).",
            way_out="see what the server's log says of it",
        )
    return _unreachable(address, error)


def _unreachable(address: Address, error: Exception) -> HomeError:
    if isinstance(error, SSLCertVerificationError):
        return HomeError(
            f"The certificate of {address} is not accepted: {error.verify_message or _why(error)}.",
            way_out="name who signed it by sslrootcert in storage.url, and the host that it is for",
        )
    if isinstance(error, ValueError):
        return HomeError(
            f"storage.url = {address}: {_why(error)}.",
            way_out='storage.url = "postgresql://user:password@host:5432/database"',
        )
    way_out = "see whether the server runs and storage.url names it"
    if isinstance(error, TimeoutError):
        return Unreachable(f"{address} does not answer in time.", way_out=way_out)
    if type(error).__name__ == "gaierror":
        return Unreachable(f"{address}: nobody knows this host.", way_out=way_out)
    return Unreachable(f"No Postgres server answers at {address} ({_why(error)}).", way_out=way_out)


def _why(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0].rstrip(".")
    return first or type(error).__name__
