"""Error codes, and the one exception that carries an error of the protocol."""

from __future__ import annotations

from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002  # up to 2025-11-25; INVALID_PARAMS since
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022


class RpcError(Exception):
    """A request was answered with an error, or is to be."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:  # noqa: ANN401 - any JSON
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class BadAnswer(RpcError):  # noqa: N818 - it reads as what it is
    """The other side answered, but not in the protocol's shape."""

    def __init__(self, message: str) -> None:
        super().__init__(INTERNAL_ERROR, message)
