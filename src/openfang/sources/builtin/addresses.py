"""Whether the address that a call names is granted to its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.decisions import Deny
from openfang.policy.grants import way_to_grant
from openfang.safety.urls import AddressRefused, host_granted, parse_target

if TYPE_CHECKING:
    from openfang.core.calls import Call


def url_granted(call: Call) -> Deny | None:
    """Say why the host of its `url` is not, if it is not."""
    try:
        target = parse_target(str(call.arguments.get("url", "")))
    except AddressRefused:
        return None  # no address at all: the tool itself says what is wrong with it
    if host_granted(target, call.caller.grants.network):
        return None
    return Deny(
        f"Host {target.host} is not covered by the network grants of {call.caller.id}",
        "network_not_granted",
        way_to_grant(call.caller, "network", target.host),
    )
