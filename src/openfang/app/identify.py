"""Who calls: decided by the credential alone."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from openfang.app.home import DEFAULT_PROJECT
from openfang.core.errors import PolicyViolation, Unauthenticated
from openfang.core.events import POLICY_VIOLATION, Record
from openfang.core.keys import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.build import Parts
    from openfang.app.home import Home
    from openfang.core.calls import Caller


def credential(home: Home, environ: Mapping[str, str]) -> str:
    """Find the key of a local command: `OPENFANG_API_KEY`, else the home's own."""
    secret = environ.get("OPENFANG_API_KEY", "").strip()
    if secret:
        return secret
    try:
        return home.key_file.read_text("utf-8", errors="surrogateescape").strip()
    except OSError:
        raise Unauthenticated(
            f"No key: OPENFANG_API_KEY is not set and {home.key_file} cannot be read.",
            way_out="openfang init, or export OPENFANG_API_KEY",
        ) from None


def identify(parts: Parts, secret: str) -> Caller:
    """Return who holds this key; an unknown, expired or revoked one is nobody's."""
    configured = parts.config.api_key
    if configured and _same(configured.get_secret_value(), secret):
        return Key(id="config", name="config", projects=(DEFAULT_PROJECT,)).caller()
    key = parts.keys.find_key(secret)
    if key is None:
        note_refusal(parts, "nobody", "unauthenticated", "an unknown, expired or revoked key")
        raise Unauthenticated(
            "The key is not known, has expired or was revoked.",
            way_out="openfang init if it is the home's own, else: openfang keys create NAME",
        )
    return key.caller()


def _same(one: str, other: str) -> bool:
    """Compare in constant time, whatever bytes the environment held."""
    return hmac.compare_digest(
        one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass")
    )


def require_admin(parts: Parts, caller: Caller) -> None:
    """Refuse whoever may not manage the node, on record."""
    if not caller.admin:
        note_refusal(parts, caller.id, "admin_only", f"{caller.id} may not manage this node.")
        raise PolicyViolation(
            f"{caller.id} may not manage this node.",
            rule="admin_only",
            way_out="use a key made with: openfang keys create NAME --admin",
        )


def note_refusal(parts: Parts, caller: str, rule: str, reason: str) -> None:
    """Write down that somebody was turned away before any call was made."""
    payload = {"step": "identify", "rule": rule, "reason": reason}
    record = Record(
        event=POLICY_VIOLATION, level="warning", payload=payload, context={"caller": caller}
    )
    parts.writer.write_blocking(parts.broker.unit([record]))
