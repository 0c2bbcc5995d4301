"""Who calls, and what that caller may do with the node: decided by the credential alone."""

from __future__ import annotations

import hmac
import logging
from typing import TYPE_CHECKING

from openfang.app.home import DEFAULT_PROJECT
from openfang.core.calls import Role
from openfang.core.errors import PolicyViolation, Unauthenticated
from openfang.core.events import POLICY_VIOLATION, Record
from openfang.core.keys import Key

if TYPE_CHECKING:
    from openfang.app.build import Parts
    from openfang.core.calls import Caller

_log = logging.getLogger("openfang.identify")
_OTHER_KEY = "use a key made with: openfang keys create NAME"


async def identify(parts: Parts, secret: str, edge: str) -> Caller:
    """Return who holds this key; an unknown, expired or revoked one is nobody's."""
    key = find_key(parts, secret)
    if key is None:
        await note_refusal(parts, "nobody", "unauthenticated", "an unknown, expired or revoked key")
        raise Unauthenticated(
            "The key is not known, has expired or was revoked.",
            way_out="openfang init if it is the home's own, else: openfang keys create NAME",
        )
    caller = key.caller()
    if not key.opens(edge):
        reason = f"{caller.id} may not come in over {edge}."
        await refuse(parts, caller, "edge", reason, f"{_OTHER_KEY} --edge {edge}")
    return caller


def find_key(parts: Parts, secret: str) -> Key | None:
    """Find the key with this secret, if it is in force."""
    configured = parts.config.api_key
    if configured and _same(configured.get_secret_value(), secret):
        return Key(id="config", name="config", projects=(DEFAULT_PROJECT,))
    return parts.keys.find_key(secret)


def _same(one: str, other: str) -> bool:
    """Compare in constant time, whatever bytes the environment held."""
    return hmac.compare_digest(
        one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass")
    )


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
    _log.warning("Policy violation: %s", reason)
    parts.turned_away(rule)
    payload = {"step": "identify", "rule": rule, "reason": reason}
    record = Record(
        event=POLICY_VIOLATION, level="warning", payload=payload, context={"caller": caller}
    )
    await parts.broker.append([record])
