"""What the gates read is bound to the caller; a call chooses among it, or tightens (C7.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openfang.core.calls import Caller, Context, Mode
from openfang.core.errors import PolicyViolation
from openfang.core.tools import TAGS

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a call asks for in its `context`. `spec_frozen` is not here: it is looked up."""

    mode: Mode | None = None
    project_id: str | None = None
    spec_hash: str | None = None
    task_id: str | None = None
    blacklist: frozenset[str] = frozenset()


NO_WISH = Wish()


def bind(caller: Caller, wish: Wish = NO_WISH, blacklist: Iterable[str] = ()) -> Context:
    """Return the context of a call, or refuse a wish for more than is bound."""
    if wish.mode is Mode.EXECUTION and caller.mode is Mode.PLANNING:
        raise _not_bound("mode", "execution", f"{caller.id} is bound to planning", "--mode")
    if wish.project_id and wish.project_id not in caller.projects:
        raise _not_bound("project", wish.project_id, _bound_projects(caller), "--project")
    if unknown := wish.blacklist - TAGS:
        raise PolicyViolation(
            f"Policy violation: unknown side effect {min(unknown)} in the blacklist",
            rule="context.blacklist",
            way_out=f"known side effects: {', '.join(sorted(TAGS))}",
        )
    return Context(
        mode=wish.mode or caller.mode,
        project=wish.project_id or next(iter(caller.projects), None),
        spec_hash=wish.spec_hash or caller.spec,
        task_id=wish.task_id,
        blacklist=caller.blacklist.union(wish.blacklist, blacklist),
    )


def _bound_projects(caller: Caller) -> str:
    return f"{caller.id} is bound to {', '.join(caller.projects) or 'no project'}"


def _not_bound(what: str, value: str, bound: str, option: str) -> PolicyViolation:
    return PolicyViolation(
        f"Policy violation: {what} {value} may not be chosen: {bound}",
        rule=f"context.{what}",
        way_out=f"a key made with: openfang keys create NAME {option} {value}",
    )
