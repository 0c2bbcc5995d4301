"""What content is, and where it may flow: labels from text, and the rules on labels and sinks (C9).

The rules stand in the contract's order, with one clarification: where one rule asks and another
refuses, the refusal wins, because an approval would let through what must never leave. So:

1. A secret never leaves: refused at every external sink. No approval stands in for it, and naming
   the target does not help; a secret travels by reference only.
2. Private and untrusted together never reach an external sink that the user did not name: refused.
3. Untrusted and exec, money or identity: a person is asked, always, named target or not.
4. Untrusted and any other effect: a person is asked, unless every target was named by the user.
5. The rest passes.

`provenance` says whether every target stands word for word in trusted text. Where nobody has
looked (None), it counts as no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.decisions import ALLOW, Ask, Decision, Deny
from openfang.core.labels import Labels
from openfang.core.tools import Effect
from openfang.safety.personal import is_personal
from openfang.safety.redact import looks_secret

if TYPE_CHECKING:
    from openfang.core.tools import Sink
    from openfang.safety.redact import Redactor

MAX_SCANNED = 1_000_000
_ALWAYS_ASKED = frozenset({Effect.EXEC, Effect.MONEY, Effect.IDENTITY})


def labels_of(text: str, *, redactor: Redactor | None = None) -> Labels:
    """Label content by what stands in its first million characters.

    A redactor adds the known values of the secret store to the shapes of credentials.
    """
    scanned = text[:MAX_SCANNED]
    secret = redactor.contains_secret(scanned) if redactor else looks_secret(scanned)
    labels = Labels.SECRET if secret else Labels.NONE
    return labels | Labels.PII if is_personal(scanned) else labels


def judge(labels: Labels, sink: Sink, *, provenance: bool | None = None) -> Decision:
    """Decide whether what carries these labels may reach this sink."""
    if labels & Labels.SECRET and sink.external:
        return _SECRET
    if not labels.untrusted:
        return ALLOW
    if labels.confidential and sink.external and not provenance:
        return _PRIVATE
    if sink.effect in _ALWAYS_ASKED:
        return _ACT
    if sink.effect is not Effect.NONE and not provenance:
        return _EFFECT
    return ALLOW


_SECRET = Deny(
    "A secret must not leave this machine",
    "secret_leaves",
    "Refer to it as secret://NAME instead of passing its value",
)
_PRIVATE = Deny(
    "Private data and untrusted content together must not reach a target that the user did not "
    "name",
    "private_leaves",
    "Name the target in your own message, or start again without the untrusted content",
)
_ACT = Ask(
    "Untrusted content is present, and this tool runs programs, moves money or acts as somebody",
    "untrusted_act",
    "openfang approvals list",
)
_EFFECT = Ask(
    "Untrusted content is present, and this tool changes something at a target that the user did "
    "not name",
    "untrusted_effect",
    "openfang approvals list",
)
