"""What the gates read is bound to the caller; a call chooses among it, or tightens."""

from __future__ import annotations

import pytest

from openfang.core.calls import Caller, Context, Mode
from openfang.core.errors import PolicyViolation
from openfang.policy.context import Wish, bind, check_bound

pytestmark = pytest.mark.requirement("C7.7")
CALLER = Caller(
    id="key:me",
    projects=("default", "other"),
    spec="bound spec",
    blacklist=frozenset({"payments"}),
)
PLANNER = Caller(id="key:planner", mode=Mode.PLANNING)


def test_without_a_wish_what_is_bound_counts() -> None:
    assert bind(CALLER) == Context(
        mode=Mode.EXECUTION,
        project="default",
        spec_hash="bound spec",
        blacklist=frozenset({"payments"}),
    )
    assert bind(PLANNER) == Context(mode=Mode.PLANNING)


def test_a_call_chooses_among_what_is_bound_and_tightens() -> None:
    wish = Wish(
        mode=Mode.PLANNING,
        project_id="other",
        spec_hash="its own spec",
        task_id="task 7",
        blacklist=frozenset({"fs.write"}),
    )
    context = bind(CALLER, wish, ["network.http"])
    assert context == Context(
        mode=Mode.PLANNING,
        project="other",
        spec_hash="its own spec",
        task_id="task 7",
        blacklist=frozenset({"payments", "fs.write", "network.http"}),
    )
    check_bound(context)


@pytest.mark.parametrize(
    ("caller", "wish", "rule", "named"),
    [
        (PLANNER, Wish(mode=Mode.EXECUTION), "context.mode", "--mode execution"),
        (CALLER, Wish(project_id="secret"), "context.project", "--project secret"),
        (CALLER, Wish(blacklist=frozenset({"no.tag"})), "context.blacklist", "fs.delete"),
    ],
)
def test_a_wish_for_more_is_refused_and_says_which_key_could(
    caller: Caller, wish: Wish, rule: str, named: str
) -> None:
    with pytest.raises(PolicyViolation) as caught:
        check_bound(bind(caller, wish))
    assert caught.value.rule == rule
    assert named in caught.value.way_out


@pytest.mark.parametrize(("caller", "bound"), [(CALLER, "default, other"), (PLANNER, "no project")])
def test_who_asks_for_another_project_hears_which_are_bound(caller: Caller, bound: str) -> None:
    excess = bind(caller, Wish(project_id="secret")).excess
    assert excess is not None
    assert excess.message.endswith(f"{caller.id} is bound to {bound}")


@pytest.mark.parametrize("caller", [CALLER, PLANNER])
def test_who_asks_for_what_is_bound_anyway_asks_for_no_more(caller: Caller) -> None:
    assert bind(caller, Wish(mode=caller.mode)).excess is None
