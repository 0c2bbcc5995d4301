"""`web_search` on each engine: what is asked and told, and what becomes of every bad answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.sources.engines import KEY, NAMES, PAGES, Engines, searched

from openfang.core.calls import Grants
from openfang.core.errors import ConfigError, FlowRefused, InvalidArguments, UnknownTool
from openfang.core.labels import Labels
from openfang.sources.builtin.engines import ENGINES
from openfang.testing import ManualClock, OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.2")
KEYS = {"BRAVE_API_KEY": KEY, "TAVILY_API_KEY": KEY}


@pytest.fixture
def engines() -> Generator[Engines]:
    with searched() as found:
        yield found


def config(name: str, engines: Engines, more: str = "") -> str:
    return (
        f'[tools.web_search]\nprovider = "{name}"\nbase_url = "{engines.at(name)}/"\n'
        f"allow_private = true\n{more}"
    )


@asynccontextmanager
async def searching(
    folder: Path, name: str, engines: Engines, more: str = ""
) -> AsyncGenerator[OpenApp]:
    environ = {"HOME": str(folder), **KEYS}
    async with open_test_app(folder, config=config(name, engines, more), environ=environ) as app:
        yield app


@pytest.mark.parametrize("name", NAMES)
async def test_every_engine_is_asked_in_its_own_words_and_understood(
    tmp_path: Path, engines: Engines, name: str
) -> None:
    async with searching(tmp_path, name, engines) as app:
        result = await app.call("web_search", query=" figs & dates ", max_results=2)
    title, url, _ = PAGES[0]
    assert result.structured["provider"] == name
    first, second = result.structured["results"]
    assert (first["title"], first["url"]) == (title, url)
    assert first["snippet"].replace("<b>", "").replace("</b>", "") == (
        "All about <figs>, and dates."
    )
    assert second["url"] == PAGES[1][1]
    lines = result.text.splitlines()
    assert lines[0] == f"2 found by {name}:"
    boundary = lines[1].split()[2].rstrip(":")
    assert lines[2:4] == [f"1. {title}", f"   {url}"]
    assert lines[-1] == f"[end of external content {boundary}]"
    assert result.labels & Labels.EXTERNAL_NETWORK
    (seen,) = engines.seen
    assert seen.query == "figs & dates"
    assert seen.headers["user-agent"].startswith("OpenFang/")


@pytest.mark.parametrize("name", NAMES)
async def test_five_pages_come_unless_others_are_asked_for(
    tmp_path: Path, engines: Engines, name: str
) -> None:
    async with searching(tmp_path, name, engines) as app:
        some = await app.call("web_search", query="figs")
        most = await app.call("web_search", query="figs", max_results=20)
    assert len(some.structured["results"]) == 5
    assert [one["url"] for one in most.structured["results"]] == [page[1] for page in PAGES[:20]]


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_found_is_an_answer(tmp_path: Path, engines: Engines, name: str) -> None:
    async with searching(tmp_path, name, engines) as app:
        result = await app.call("web_search", query="nothing")
    assert not result.is_error
    assert result.text == "Nothing was found for 'nothing'."
    assert result.structured["results"] == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("often", "(try again in 7 s)"),
        ("often-enough", "is asked too often (HTTP 429): Slow down. (try again later)"),
        ("broken", "failed (HTTP 500). (try again later)"),
        ("gone", "refuses (HTTP 404). (tools.web_search.base_url)"),
        ("moved", "sends the question elsewhere (HTTP 302). (tools.web_search.base_url)"),
        ("html", ""),
        ("garbage", ""),
        ("number", ""),
        ("empty", ""),
        ("shapeless", ""),
        ("endless", "answered with more than 2000000 bytes"),
        ("slow", "did not answer within 0.2 s"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
async def test_a_bad_answer_is_an_error_that_names_engine_reason_and_way_out(
    tmp_path: Path, engines: Engines, name: str, query: str, reason: str
) -> None:
    more = "timeout_secs = 0.2\n" if query == "slow" else ""
    async with searching(tmp_path, name, engines, more) as app:
        result = await app.call("web_search", query=query)
    assert result.is_error
    assert reason in result.text
    assert result.text.startswith(f"Error: {ENGINES[name].title} ")
    assert query == "endless" or result.text.endswith(")")
    assert len(engines.seen) == 1


@pytest.mark.parametrize(
    ("name", "query", "reason"),
    [
        ("tavily", "spent", "Tavily has no searches left in the plan of this key (HTTP 432): This"),
        ("searxng", "silent", "SearXNG got no answer from google: CAPTCHA."),
        ("searxng", "html", "SearXNG answered in HTML instead of JSON"),
        ("duckduckgo", "robot", "DuckDuckGo takes this node for a robot"),
    ],
)
async def test_an_engine_that_refuses_in_its_own_way_is_understood(
    tmp_path: Path, engines: Engines, name: str, query: str, reason: str
) -> None:
    async with searching(tmp_path, name, engines) as app:
        result = await app.call("web_search", query=query)
    assert result.is_error
    assert reason in result.text


async def test_results_that_speak_of_a_challenge_are_results(
    tmp_path: Path, engines: Engines
) -> None:
    async with searching(tmp_path, "duckduckgo", engines) as app:
        result = await app.call("web_search", query='class="anomaly-modal__title" anomaly.js')
    assert len(result.structured["results"]) == 5


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("brave", "The provided subscription token is invalid. (tools.web_search.api_key)"),
        ("tavily", "Tavily does not accept the key (HTTP 401): Unauthorized"),
    ],
)
async def test_a_wrong_key_is_told_and_not_shown(
    tmp_path: Path, engines: Engines, name: str, reason: str
) -> None:
    async with searching(tmp_path, name, engines, 'api_key = "wrong-key-0042"\n') as app:
        result = await app.call("web_search", query="figs")
    assert reason in result.text
    assert "wrong-key" not in result.text


@pytest.mark.parametrize("name", ["brave", "tavily"])
async def test_a_key_comes_from_the_secret_store(
    tmp_path: Path, engines: Engines, name: str
) -> None:
    more = 'api_key = "${SEARCHING}"\n'
    async with open_test_app(tmp_path, config=config(name, engines, more)) as app:
        missing = await app.call("web_search", query="figs")
        assert missing.is_error
        assert "openfang secrets set SEARCHING" in missing.text
        assert engines.seen == []
        assert app.parts.servers
        await app.parts.servers.keep({"SEARCHING": KEY})
        found = await app.call("web_search", query="figs")
    assert not found.is_error


async def test_a_key_that_is_sent_is_redacted_from_then_on(
    tmp_path: Path, engines: Engines
) -> None:
    async with searching(tmp_path, "tavily", engines) as app:
        await app.call("web_search", query="figs")
        await app.call("file_write", path="a", content=KEY)
        read = await app.call("file_read", path="a")
    assert KEY not in read.text


async def test_without_a_provider_nobody_is_asked_and_the_key_is_named(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        result = await app.call("web_search", query="figs")
    assert result.is_error
    assert 'provider = "searxng", "brave", "tavily" or "duckduckgo"' in result.text
    assert "[tools.web_search]" in result.text


async def test_searxng_has_no_address_of_its_own(tmp_path: Path) -> None:
    text = '[tools.web_search]\nprovider = "searxng"\n'
    with pytest.raises(ConfigError, match="base_url beside provider"):
        async with open_test_app(tmp_path, config=text):
            pass


@pytest.mark.requirement("C3.9")
async def test_a_private_address_is_asked_only_where_that_is_opened(
    tmp_path: Path, engines: Engines
) -> None:
    text = config("searxng", engines).replace("allow_private = true", "")
    async with open_test_app(tmp_path, config=text) as app:
        result = await app.call("web_search", query="figs")
    assert result.is_error
    assert "allow_private = true" in result.text
    assert engines.seen == []


async def test_the_same_question_is_asked_once_while_its_answer_is_kept(
    tmp_path: Path, engines: Engines
) -> None:
    clock = ManualClock()
    text = config("searxng", engines, "cache_secs = 60\n")
    async with open_test_app(tmp_path, config=text, clock=clock) as app:
        first = await app.call("web_search", query="figs")
        again = await app.call("web_search", query="figs")
        assert again.structured == first.structured
        assert len(engines.seen) == 1
        other = replace(app.caller, id="key:other")
        await app.invoke(app.make("web_search", {"query": "figs"}, caller=other))
        assert len(engines.seen) == 2
        clock.advance(61)
        await app.call("web_search", query="figs")
        assert len(engines.seen) == 3


@pytest.mark.requirement("C9.3")
async def test_a_secret_never_leaves_in_a_question(tmp_path: Path, engines: Engines) -> None:
    secret = "AKIA" + "IOSFODNN7" + "EXAMPLE"
    async with searching(tmp_path, "searxng", engines) as app:
        with pytest.raises(FlowRefused):
            await app.call("web_search", query=f"who owns {secret}")
    assert engines.seen == []


async def test_no_network_grant_is_needed_for_the_operators_own_choice(
    tmp_path: Path, engines: Engines
) -> None:
    async with searching(tmp_path, "searxng", engines) as app:
        limited = replace(app.caller, grants=Grants(tools=("web_search",)))
        found = await app.invoke(app.make("web_search", {"query": "figs"}, caller=limited))
        assert not found.is_error
        nobody = replace(app.caller, grants=Grants(tools=("system_time",)))
        with pytest.raises(UnknownTool):
            await app.invoke(app.make("web_search", {"query": "figs"}, caller=nobody))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": 7},
        {"query": "x" * 401},
        {"query": "figs", "max_results": 0},
        {"query": "figs", "max_results": 21},
        {"query": "figs", "provider": "brave"},
    ],
)
async def test_bad_arguments_are_refused(
    tmp_path: Path, engines: Engines, arguments: dict[str, object]
) -> None:
    async with searching(tmp_path, "searxng", engines) as app:
        with pytest.raises(InvalidArguments):
            await app.invoke(app.make("web_search", arguments))
    assert engines.seen == []


async def test_a_blank_question_is_not_asked(tmp_path: Path, engines: Engines) -> None:
    async with searching(tmp_path, "searxng", engines) as app:
        result = await app.call("web_search", query=" \t ")
    assert result.is_error
    assert engines.seen == []
