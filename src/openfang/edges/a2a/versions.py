"""Which version of A2A a request speaks, and what that version has: methods, media types.

No I/O and no library: a request without a version speaks 0.3, and a patch number says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from collections.abc import Mapping

V1: Final = "1.0"
V03: Final = "0.3"
VERSIONS: Final = (V1, V03)
HEADER: Final = "A2A-Version"
A2A_JSON: Final = "application/a2a+json"
LARGE: Final = 256 * 1024
"""A body of this many bytes is read beside the others, not before them."""
OUTPUT_MODES: Final = ("text/plain", "application/json")
"""What every agent answers with; what it makes besides has a type of its own."""

_HEADER: Final = HEADER.lower().encode()
_NUMBERS: Final = re.compile(r"([0-9]{1,9}\.[0-9]{1,9})(?:\.[0-9]{1,9})?")
_JSON: Final = b"application/json"
_ANY_OUTPUT: Final = frozenset({"*", "*/*", "text", "text/*", "application/*", *OUTPUT_MODES})

METHODS: Final[Mapping[str, frozenset[str]]] = {
    V1: frozenset(
        {
            "SendMessage",
            "SendStreamingMessage",
            "GetTask",
            "ListTasks",
            "CancelTask",
            "SubscribeToTask",
            "CreateTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "DeleteTaskPushNotificationConfig",
            "GetExtendedAgentCard",
        }
    ),
    V03: frozenset(
        {
            "message/send",
            "message/stream",
            "tasks/get",
            "tasks/cancel",
            "tasks/resubscribe",
            "tasks/pushNotificationConfig/set",
            "tasks/pushNotificationConfig/get",
            "tasks/pushNotificationConfig/list",
            "tasks/pushNotificationConfig/delete",
            "agent/getAuthenticatedExtendedCard",
        }
    ),
}
STREAMS: Final = frozenset(
    {"SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"}
)
SENDS: Final = frozenset({"SendMessage", "SendStreamingMessage", "message/send", "message/stream"})


def asked_version(headers: Mapping[bytes, bytes], query: bytes) -> str:
    """Read the version that is asked for, as it is written; the header counts first."""
    written = headers.get(_HEADER, b"").strip().decode("latin-1")
    return written or _in_query(query) or V03


def _in_query(query: bytes) -> str:
    if _HEADER not in query.lower():
        return ""
    pairs = parse_qsl(query.decode("latin-1"))
    return next((value.strip() for name, value in pairs if name.lower() == HEADER.lower()), "")


def known_version(written: str) -> str | None:
    """Return the version of ours that this is; none if it is another."""
    numbers = _NUMBERS.fullmatch(written)
    return numbers[1] if numbers and numbers[1] in VERSIONS else None


def version_of_method(method: str) -> str | None:
    """Return the version that has this method, if one has."""
    return next((version for version in VERSIONS if method in METHODS[version]), None)


def is_json(headers: Mapping[bytes, bytes], *, rest: bool) -> bool:
    """Whether a body says that it is JSON; one that says nothing is taken for it."""
    kind = headers.get(b"content-type", _JSON).partition(b";")[0].strip().lower()
    return kind == _JSON or (rest and kind == A2A_JSON.encode())


def is_served(mode: str) -> bool:
    """Whether an answer of this media type can be expected of every agent."""
    return mode.partition(";")[0].strip().lower() in _ANY_OUTPUT
