"""Who calls, and what that caller may do with the node: decided by the credential alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openfang.app.auth.claims import Bad, Holder
from openfang.core.calls import Role
from openfang.core.errors import (
    INSUFFICIENT_SCOPE,
    INVALID_TOKEN,
    PolicyViolation,
    Unauthenticated,
)
from openfang.core.events import POLICY_VIOLATION, Record

if TYPE_CHECKING:
    import asyncio

    from openfang.app.auth.callers import Credential
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.storage.units import Written

_log = logging.getLogger("openfang.identify")
_OTHER_KEY = "use a key made with: openfang keys create NAME"


async def identify(parts: Parts, secret: str, edge: str) -> Caller:
    """Return who holds this key or token; one that is not in force is nobody's."""
    await parts.issuer.prepare(secret)
    held = await parts.callers.credentials.find(secret)
    if held is None:
        raise await _nobody(parts, secret)
    caller = held.caller()
    if not held.opens(edge):
        await _keep_out(parts, held, caller, edge)
    return caller


async def _nobody(parts: Parts, secret: str) -> Unauthenticated:
    """Put on record that nobody is known by this, and say why."""
    bad = parts.issuer.read(secret) if parts.issuer.reads(secret) else None
    if isinstance(bad, Bad):
        await note_refusal(parts, "nobody", INVALID_TOKEN, f"an access token: {bad.reason}")
        return Unauthenticated(
            f"The access token is not accepted: {bad.reason}.",
            rule=INVALID_TOKEN,
            way_out="get another one from the issuer",
        )
    await note_refusal(parts, "nobody", "unauthenticated", "an unknown, expired or revoked key")
    return Unauthenticated(
        "The key is not known, has expired or was revoked.",
        way_out="look at OPENFANG_API_KEY, if it is set; openfang init mends the home's own; "
        "openfang keys create NAME makes another",
    )


async def _keep_out(parts: Parts, held: Credential, caller: Caller, edge: str) -> None:
    if isinstance(held, Holder) and not held.enough:
        scopes = " ".join(parts.issuer.scopes)
        reason = f"The token of {caller.id} lacks scopes that are needed."
        await refuse(parts, caller, INSUFFICIENT_SCOPE, reason, f"ask the issuer for {scopes}")
    reason = f"{caller.id} may not come in over {edge}."
    await refuse(parts, caller, "edge", reason, f"{_OTHER_KEY} --edge {edge}")


async def require(parts: Parts, caller: Caller, *roles: Role) -> None:
    """Refuse, on record, whoever has none of these roles and is no administrator."""
    if caller.role is Role.ADMIN or caller.role in roles:
        return
    words = " or ".join(role.value for role in (*roles, Role.ADMIN))
    rule = "role" if roles else "admin_only"
    least = (*roles, Role.ADMIN)[0]
    reason = f"{caller.id} is no {words} of this node."
    await refuse(parts, caller, rule, reason, f"{_OTHER_KEY} --role {least.value}")


async def refuse(parts: Parts, caller: Caller, rule: str, reason: str, way_out: str) -> None:
    """Turn somebody away, on record."""
    await note_refusal(parts, caller.id, rule, reason)
    raise PolicyViolation(reason, rule=rule, way_out=way_out)


async def note_refusal(parts: Parts, caller: str, rule: str, reason: str) -> None:
    """Write down that somebody was turned away before any call was made, and count it."""
    await parts.broker.append([_refusal(parts, caller, rule, reason)])


def note_refusal_soon(parts: Parts, caller: str, rule: str, reason: str) -> None:
    """Do the same where nobody can wait: the record is on its way, and the loss of one is told."""
    unit = parts.broker.unit([_refusal(parts, caller, rule, reason)])
    parts.writer.submit(unit).add_done_callback(_tell_loss)


def _tell_loss(written: asyncio.Future[Written]) -> None:
    error = None if written.cancelled() else written.exception()
    if error is not None:
        _log.error("A refusal could not be put on record: %s", error)


def _refusal(parts: Parts, caller: str, rule: str, reason: str) -> Record:
    _log.warning("Policy violation: %s", reason)
    parts.turned_away(rule)
    payload = {"step": "identify", "rule": rule, "reason": reason}
    return Record(
        event=POLICY_VIOLATION, level="warning", payload=payload, context={"caller": caller}
    )
