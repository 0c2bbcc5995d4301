"""`openfang schedules`, in process and over a daemon: the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C6.2", "C12.5")


@pytest.fixture(scope="module", params=["in-process", "daemon"])
def cli(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    made = make_home()
    if request.param == "in-process":
        yield made
        return
    with serving(made):
        yield made


def make(cli: Cli, *more: str) -> str:
    made = cli("schedules", "create", "assistant", "weekdays at 9:30", "the time?", *more, "--json")
    assert made.code == 0, made.err
    return made.json["id"]


def test_one_is_made_listed_shown_and_deleted(cli: Cli) -> None:
    schedule = make(cli, "--timezone", "Europe/Berlin", "--overlap", "queue")
    listed = cli("schedules", "list")
    assert schedule in listed.out
    assert "assistant, weekdays at 9:30 (Europe/Berlin), next at 20" in listed.out
    shown = cli("schedules", "show", schedule)
    assert "30 9 * * 1-5" in shown.out
    assert "queue" in shown.out
    assert cli("schedules", "show", schedule, "--json").json["message"] == "the time?"
    assert cli("schedules", "delete", schedule).out == f"{schedule} is deleted.\n"
    gone = cli("schedules", "show", schedule)
    assert (gone.code, gone.err.splitlines()[0]) == (1, f"error: No schedule {schedule}.")


def test_one_is_paused_resumed_and_due_at_once(cli: Cli) -> None:
    schedule = make(cli, "--message", "what time is it?")
    assert cli("schedules", "pause", schedule).out == f"{schedule} is paused.\n"
    body = cli("schedules", "show", schedule, "--json").json
    assert (body["state"], body["reason"]) == ("paused", "paused by key:admin")
    again = cli("schedules", "pause", schedule)
    assert (again.code, f"{schedule} is paused" in again.err) == (1, True)
    assert cli("schedules", "resume", schedule).out == f"{schedule} runs again.\n"
    assert cli("schedules", "run", schedule).out == f"{schedule} is due now.\n"


def test_nonsense_says_what_is_understood(cli: Cli) -> None:
    refused = cli("schedules", "create", "assistant", "every blue moon", "x")
    assert refused.code == 1
    assert '"every blue moon" is no schedule that is understood.' in refused.err
    assert "weekdays at 9:30" in refused.err


def test_a_home_without_any_says_how_one_is_made(make_home: Callable[[], Cli]) -> None:
    assert "openfang schedules create AGENT" in make_home()("schedules", "list").err
