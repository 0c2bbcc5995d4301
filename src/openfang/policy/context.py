"""What the gates read is bound to the caller; a call chooses among it, or tightens (C7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.calls import Caller, Context, Excess, Mode
from openfang.core.errors import PolicyViolation
from openfang.core.tools import TAGS
from openfang.core.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable


@value
class Wish:
    """What a call asks for in its `context`. `spec_frozen` is not here: it is looked up."""

    mode: Mode | None = None
    project_id: str | None = None
    spec_hash: str | None = None
    task_id: str | None = None
    blacklist: frozenset[str] = frozenset()


NO_WISH = Wish()


def bind(caller: Caller, wish: Wish = NO_WISH, blacklist: Iterable[str] = ()) -> Context:
    """Return the context of a call. A wish for more than is bound goes with it, to be refused."""
    return Context(
        mode=wish.mode or caller.mode,
        project=wish.project_id or next(iter(caller.projects), None),
        spec_hash=wish.spec_hash or caller.spec,
        task_id=wish.task_id,
        blacklist=caller.blacklist.union(wish.blacklist, blacklist),
        excess=None if wish is NO_WISH else _excess(caller, wish),
    )


def check_bound(context: Context) -> None:
    """Refuse a call whose wish exceeds what is bound."""
    excess = context.excess
    if excess is not None:
        raise PolicyViolation(
            f"Policy violation: {excess.message}", rule=excess.rule, way_out=excess.way_out
        )


def _excess(caller: Caller, wish: Wish) -> Excess | None:
    if wish.mode is Mode.EXECUTION and caller.mode is Mode.PLANNING:
        return _not_bound("mode", "execution", f"{caller.id} is bound to planning", "--mode")
    if wish.project_id and wish.project_id not in caller.projects:
        return _not_bound("project", wish.project_id, _bound_projects(caller), "--project")
    if unknown := wish.blacklist - TAGS:
        return Excess(
            rule="context.blacklist",
            message=f"unknown side effect {min(unknown)} in the blacklist",
            way_out=f"known side effects: {', '.join(sorted(TAGS))}",
        )
    return None


def _bound_projects(caller: Caller) -> str:
    return f"{caller.id} is bound to {', '.join(caller.projects) or 'no project'}"


def _not_bound(what: str, value: str, bound: str, option: str) -> Excess:
    return Excess(
        rule=f"context.{what}",
        message=f"{what} {value} may not be chosen: {bound}",
        way_out=f"a key made with: openfang keys create NAME {option} {value}",
    )
