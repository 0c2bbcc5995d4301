from __future__ import annotations

import pytest

from openfang.app.cluster.silence import SAID_SO, SILENT_SECONDS, Silence
from openfang.storage.processes import Vanished

pytestmark = pytest.mark.requirement("C13.3")


def one(name: str, beat: int = 1, heir: str = "") -> Vanished:
    return Vanished(id=name, low_water=1, beat_at=beat, heir=heir)


def left(silence: Silence, now: float, *processes: Vanished) -> list[str]:
    silence.look(processes, now)
    return [found.id for found in silence.left(processes, now)]


def test_who_shows_the_same_beat_for_long_is_dead_whatever_time_it_names() -> None:
    silence = Silence()
    for now in range(int(SILENT_SECONDS)):
        assert left(silence, now, one("me", now + 1), one("other", 10**18)) == []
    assert left(silence, SILENT_SECONDS, one("me", 99), one("other", 10**18)) == ["other"]
    assert left(silence, SILENT_SECONDS + 1, one("me", 100), one("other", 7)) == []


def test_who_lost_sight_of_the_others_begins_to_watch_anew() -> None:
    silence = Silence()
    assert left(silence, 0.0, one("other")) == []
    silence.lost()
    assert left(silence, SILENT_SECONDS, one("other")) == []
    assert left(silence, 2 * SILENT_SECONDS, one("other")) == ["other"]


def test_what_a_living_process_sees_to_is_left_to_it_and_what_a_dead_one_did_is_not() -> None:
    silence = Silence()
    dead = one("dead", SAID_SO, heir="heir")
    assert left(silence, 0.0, dead, one("heir", 1)) == []
    assert left(silence, SILENT_SECONDS, dead, one("heir", 1)) == ["dead", "heir"]
    assert left(silence, SILENT_SECONDS, dead) == ["dead"]


def test_who_said_that_others_shall_go_on_is_not_waited_for() -> None:
    assert left(Silence(), 0.0, one("ended", SAID_SO)) == ["ended"]
