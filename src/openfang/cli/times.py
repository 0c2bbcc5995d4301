"""Times as people and programs read them; inside they are nanoseconds."""

from __future__ import annotations

_SECOND = 1_000_000_000
_NEVER = 2**62
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def span(length: int) -> str:
    """How long something still lasts, in its two greatest units."""
    if length >= _NEVER // 2:
        return "never"
    if length <= 0:
        return "over"
    left, words = length // _SECOND, list[str]()
    for size, unit in _STEPS:
        if left >= size:
            words.append(f"{left // size}{unit}")
            left %= size
    return " ".join(words[:2]) or "1s"
