"""What changed in a definition, part by part, for the person who decides. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from openfang.core.values import dataclass
from openfang.safety.unseen import revealed, shown, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any
_MISSING: Final = object()
_MOST: Final = 200
_LONGEST: Final = 4_000
_CUT: Final = " [cut]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One part that is not what it was; `None` where it was or is not there. All of it is seen.

    `hidden` says what was added that nobody sees.
    """

    path: str
    before: str | None
    after: str | None
    hidden: tuple[str, ...] = ()

    def body(self) -> dict[str, Any]:
        """The change as JSON."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "hidden": list(self.hidden),
        }


def changes(before: Json, after: Json) -> tuple[Change, ...]:
    """Compare two definitions; there is always at least one change if they differ."""
    found: list[Change] = []
    for change in _compared("", before, after):
        found.append(change)
        if len(found) == _MOST:
            break
    return tuple(found)


def _compared(path: str, before: Json, after: Json) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _members(path, cast("dict[str, Any]", before), cast("dict[str, Any]", after))
    elif isinstance(before, list) and isinstance(after, list):
        old, new = cast("list[Any]", before), cast("list[Any]", after)
        for number in range(max(len(old), len(new))):
            yield from _compared(f"{path}[{number}]", _item(old, number), _item(new, number))
    elif _told(before) != _told(after):
        yield _change(path, before, after)


def _members(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        inside = f"{path}.{shown(name)}" if path else shown(name)
        one, other = before.get(name, _MISSING), after.get(name, _MISSING)
        if one is _MISSING and unseen_in(name):
            yield _change(f"{inside} (its name)", _MISSING, name)
        yield from _compared(inside, one, other)


def _item(values: list[Any], number: int) -> Any:  # noqa: ANN401 - any JSON
    return values[number] if number < len(values) else _MISSING


def _change(path: str, before: Json, after: Json) -> Change:
    text = after if isinstance(after, str) else json.dumps(after, default=str)
    old = before if isinstance(before, str) else ""
    return Change(
        path=path,
        before=_readable(before),
        after=_readable(after),
        hidden=tuple(one for one in unseen_in(text) if one not in unseen_in(old)),
    )


def unseen_in(text: str) -> tuple[str, ...]:
    """Say what of a text nobody sees: of each kind how much, and what it spells."""
    runs = [(run, text[run.start : run.end]) for run in unseen(text)]
    counts: dict[str, int] = {}
    for run, part in runs:
        for kind in run.kinds:
            counts[kind] = counts.get(kind, 0) + len(part)
    said = revealed("".join(part for _, part in runs))
    spelled = (f"it spells: {shown(said)[:_LONGEST]}",) if said else ()
    return (*(f"{kind} ({count})" for kind, count in counts.items()), *spelled)


def _told(value: Json) -> str | None:
    """Write a value exactly: `1` and `True` and `1.0` are three."""
    return None if value is _MISSING else json.dumps(value, sort_keys=True)


def _readable(value: Json) -> str | None:
    if value is _MISSING:
        return None
    if isinstance(value, str):
        text = "\n".join(map(shown, value.split("\n")))
    else:
        text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + _CUT
