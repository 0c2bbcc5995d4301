"""The bus of news: everybody who wants to hear of a change does, whatever the others do."""

from __future__ import annotations

import pytest

from openfang.app.news import News
from openfang.core import news
from openfang.core.news import Listed, Updated

pytestmark = pytest.mark.requirement("C4.5")


def test_everybody_hears_until_they_want_to_hear_no_more() -> None:
    bus, first, second = News(), list[news.News](), list[news.News]()
    stop, _ = bus.subscribe(first.append), bus.subscribe(second.append)
    bus.publish(Listed.PROMPTS)
    stop()
    stop()
    bus.publish(Updated("peer", "memo://1"))
    assert first == [Listed.PROMPTS]
    assert second == [Listed.PROMPTS, Updated("peer", "memo://1")]


def test_the_same_hearer_twice_is_two_hearers() -> None:
    bus, heard = News(), list[news.News]()
    stop = bus.subscribe(heard.append)
    bus.subscribe(heard.append)
    bus.publish(Listed.TOOLS)
    stop()
    bus.publish(Listed.TOOLS)
    assert len(heard) == 3


def test_a_hearer_that_fails_does_not_deafen_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = News(), list[news.News]()

    def fails(one: news.News) -> None:
        raise ZeroDivisionError(one)

    bus.subscribe(fails)
    bus.subscribe(heard.append)
    bus.publish(Listed.RESOURCES)
    assert heard == [Listed.RESOURCES]
    assert "ZeroDivisionError" in caplog.text


def test_who_stops_hearing_while_news_is_told_harms_nobody() -> None:
    bus, heard = News(), list[news.News]()
    stops = [bus.subscribe(lambda _: stops[0]()), bus.subscribe(heard.append)]
    bus.publish(Listed.TOOLS)
    bus.publish(Listed.TOOLS)
    assert len(heard) == 2
