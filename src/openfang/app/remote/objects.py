"""What a daemon answers, as what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


def an_object(body: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON
    """Read an answer that is a JSON object."""
    if not isinstance(body, dict):
        raise TypeError(type(body).__name__)
    return cast("dict[str, Any]", body)
