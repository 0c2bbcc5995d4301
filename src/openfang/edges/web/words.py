"""Numbers, times and characters as a person reads them."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from math import log10
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable

_MILLISECOND: Final = 1_000
_SECOND: Final = 1_000_000
_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400
_TEN: Final = 10
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN: Final = frozenset("\n\t")


def took(us: int | None) -> str:
    """Say how long something took."""
    if us is None:
        return ""
    if us < _MILLISECOND:
        return f"{us} µs"
    if us < _SECOND:
        ms = us / _MILLISECOND
        return f"{ms:.1f} ms" if ms < _TEN else f"{ms:.0f} ms"
    return lasting(us / _SECOND)


def lasting(seconds: float) -> str:
    """Say how long something lasts."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < _TEN else f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"
    return f"{int(seconds // _DAY)} d {int(seconds % _DAY // _HOUR)} h"


def number(count: float) -> str:
    """Write a number with its thousands apart."""
    return f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"


def calls(count: int) -> str:
    """Count calls."""
    return f"{number(count)} call{'' if count == 1 else 's'}"


def moment(text: str | None, form: str = "full") -> Markup:
    """Write a time of ISO 8601, with its zone for who looks closer; scripts make it local."""
    if not text:
        return Markup("")
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return escape(text)
    short = at.strftime("%H:%M:%S" if form == "time" else "%Y-%m-%d %H:%M:%S")
    whole = at.isoformat(timespec="milliseconds")
    return Markup('<time datetime="{}" title="{}" data-form="{}">{}</time>').format(
        whole, whole, form, short
    )


def seconds_between(first: str, last: str) -> float:
    """How many seconds lie between two times."""
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def width(us: int | None) -> float:
    """How long a bar is, of a hundred: logarithmic, from 100 µs to 100 s."""
    return 0 if not us else round(max(2.0, min(100.0, (log10(us) - 2) / 6 * 100)), 1)


def exact(text: object) -> Markup:
    """Show a text to the letter: what is not seen, or turns a line around, as a marked escape."""
    told = str(text)
    if told.replace("\n", "").replace("\t", "").isprintable():
        return escape(told)
    return Markup("").join(map(_letter, told))


def _letter(letter: str) -> Markup:
    if letter in _PLAIN or unicodedata.category(letter) not in _UNSEEN:
        return escape(letter)
    point = ord(letter)
    code = f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004 - a plane
    return Markup("<mark>{}</mark>").format(code)


def pretty(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write JSON for a person."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def written(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write a value on a line of its own: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else pretty(value)


def segment(text: object) -> str:
    """Write a name as one segment of an address."""
    return quote(str(text), safe="")


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "took": took,
    "lasting": lasting,
    "number": number,
    "calls": calls,
    "moment": moment,
    "width": width,
    "exact": exact,
    "pretty": pretty,
    "written": written,
    "segment": segment,
}
