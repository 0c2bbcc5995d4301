"""`openfang board`, in process and over a daemon: what agents have to do for whoever asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.2", "C12.5")
LIMITS = "[limits]\ncells_per_minute = 1_000_000\nburst = 1_000_000"


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    if request.param == "in-process":
        yield made
        return
    made.configure(LIMITS)
    with serving(made):
        yield made


def post(cli: Cli, title: str, **more: Any) -> str:
    return cli.call("task_post", title=title, description="Do it.", **more).json["structured"][
        "task_id"
    ]


def test_a_board_is_listed_with_what_came_of_its_tasks(cli: Cli) -> None:
    empty = cli("board", "list")
    assert (empty.code, empty.out, "task_post" in empty.err) == (0, "", True)
    figs, dates = post(cli, "figs"), post(cli, "dates", assigned_to="assistant")
    assert cli.call("task_claim").json["structured"]["task_id"] == figs
    assert cli.call("task_complete", task_id=figs, result="ripe").code == 0
    shown = cli("board", "list").out.splitlines()
    assert [line.strip() for line in shown[:2]] == [dates, "dates"]
    assert shown[2].startswith("  pending, key:admin to agent:assistant, posted at 20")
    assert [line.strip() for line in shown[3:5]] == [figs, "figs"]
    assert shown[5].startswith("  completed, key:admin to key:admin, posted at 20")
    assert shown[6] == "  ripe"
    done = cli("board", "list", "--status", "completed", "--json").json
    assert [(one["task_id"], one["result"]) for one in done["tasks"]] == [(figs, "ripe")]
    assert "1 of 2" in cli("board", "list", "--limit", "1").err


def test_one_task_is_shown_whole(cli: Cli) -> None:
    long = "x" * 5_000
    posted = cli.call("task_post", title="long", description=long).json["structured"]["task_id"]
    assert long in cli("board", "show", posted).out
    assert cli("board", "show", posted, "--json").json["description"] == long
    absent = cli("board", "show", "todo_nothing")
    assert (absent.code, "There is no task todo_nothing" in absent.out) == (4, True)


def test_nobody_sees_the_board_of_another_key(cli: Cli) -> None:
    posted = post(cli, "secret plans")
    secret = cli("keys", "create", "other", "--tools", "task_*").out.strip()
    env = {"OPENFANG_API_KEY": secret}
    assert cli("board", "list", "--json", env=env).json == {"tasks": [], "total": 0}
    assert cli("board", "show", posted, env=env).code == 4
    assert cli.call("task_claim", task_id=posted, env=env).json["outcome"] == "error"


def test_bad_options_are_refused(cli: Cli) -> None:
    assert cli("board", "list", "--status", "lost").code == 2
    assert cli("board", "list", "--limit", "0").code != 0
    assert cli("board", "list", "--limit", "many").code == 2
