"""Whether an agent takes a message: from whom, and how long. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from openfang.core.decisions import Deny
from openfang.policy.grants import agent_name, matches

if TYPE_CHECKING:
    from openfang.agents.spec import AgentSpec
    from openfang.core.calls import Call


_BESIDE = ("parts", "metadata", "history", "instructions", "tools")


def untaken(spec: AgentSpec, call: Call) -> Deny | None:
    """Say why the agent does not take this message, if it does not."""
    sender, senders = agent_name(call.caller), spec.takes.senders
    own = sender == spec.name  # what it tells itself at a later time
    if sender and not own and senders is not None and not matches(senders, sender):
        return Deny(
            f"{spec.id} takes no messages from {call.caller.id}",
            "sender_not_taken",
            f'receive_from = ["{sender}"] in [communication]: openfang agents edit {spec.name}',
        )
    size = _size(call)
    if size > spec.takes.bytes:
        return Deny(
            f"The message has {size} bytes, and {spec.id} takes {spec.takes.bytes}",
            "message_too_large",
            "a shorter one, or communication.max_message_bytes in its manifest",
        )
    return None


def _size(call: Call) -> int:
    size = len(str(call.arguments.get("message", "")).encode(errors="replace"))
    beside = [call.arguments[key] for key in _BESIDE if key in call.arguments]
    return size + (len(orjson.dumps(beside)) if beside else 0)
