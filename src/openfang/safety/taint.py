"""Where content may flow: the rules on labels and sinks (C9).

The rules stand in the contract's order, with one clarification: where one rule asks and another
refuses, the refusal wins, because an approval would let through what must never leave. So:

1. A secret never leaves: refused at every external sink. No approval stands in for it, and naming
   the target does not help; a secret travels by reference only.
2. Private and untrusted together never reach an external sink that the user did not name: refused.
3. Untrusted and exec, money or identity: a person is asked, always, named target or not.
4. Untrusted and any other effect: a person is asked, unless every target was named by the user.
5. The rest passes.

`provenance` says whether every target stands word for word in trusted text. Where nobody has
looked (None), it counts as no; `turns_on_targets` says whether somebody should look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.decisions import ALLOW, Ask, Decision, Deny
from openfang.core.labels import Labels
from openfang.core.tools import Effect

if TYPE_CHECKING:
    from openfang.core.tools import Sink

_ALWAYS_ASKED = frozenset({Effect.EXEC, Effect.MONEY, Effect.IDENTITY})


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


def turns_on_targets(labels: Labels, sink: Sink) -> bool:
    """Whether it makes a difference who has named the targets."""
    if not labels.untrusted or (labels & Labels.SECRET and sink.external):
        return False
    if labels.confidential and sink.external:
        return True
    return sink.effect is not Effect.NONE and sink.effect not in _ALWAYS_ASKED


_SECRET = Deny(
    "A secret must not leave this machine",
    "secret_leaves",
    "Store it (openfang secrets set NAME) and name it as ${NAME} in the entry of its server",
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
