"""Resources and prompts of several real servers in one place: whose they are, and who may."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.app.offering.shop import Shop, call, names, refusals, shop
from tests.app.offering.test_agents import put

from openfang.app.offering.local import local_caller
from openfang.core.errors import NotFound, Rejected, UnknownTool
from openfang.core.events import TOOL_INVOCATION_START
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.news import Listed, Updated
from openfang.core.results import text_result
from openfang.core.session import NO_OPTIONS, Options
from openfang.core.tools import Risk
from openfang.edges.mcp.ports import COMPLETIONS, PROMPTS, SUBSCRIPTIONS, Place
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from openfang.core.news import News
    from openfang.core.results import Result
    from openfang.edges.mcp.ports import Offer

pytestmark = pytest.mark.requirement("C3.10", "C4.6")
LIBRARIAN = Path(__file__).parent / "librarian.py"


def library(name: str, *more: str, **known: Any) -> str:
    """A server of the configuration that is not asked about."""
    arguments = json.dumps([str(LIBRARIAN), json.dumps(known), name])
    return "\n".join(
        (
            "[[mcp_servers]]",
            f'name = "{name}"',
            'trust = "high"',
            'risk = "LOW"',
            'sandbox = "off"',
            *more,
            f'transport = {{ type = "stdio", command = "{sys.executable}", args = {arguments} }}',
            "",
        )
    )


A = library(
    "a", resources=["book://one", "book://both"], templates=["item://a/{id}"], prompts=["Greet"]
)
B = library(
    "b",
    resources=["book://both", "book://two"],
    templates=["item://b/{+path}", "item://a/{id}"],
    prompts=["greet", "x" * 70],
)


@asynccontextmanager
async def libraries(folder: Path, *config: str) -> AsyncGenerator[Shop]:
    async with shop(folder, "\n".join(config)) as here:
        await here.at().settled()
        yield here


async def read(offer: Offer, uri: str) -> Result:
    return await offer.read(uri, NO_OPTIONS)


def text(result: Result) -> str:
    return result.content[0]["resource"]["text"]


def addresses(offer: Offer) -> list[str]:
    return [one["uri"] for one in offer.resources()]


BOTH_OF_B = "openfang://servers/b/book%3A%2F%2Fboth"


async def test_addresses_stay_and_the_first_server_by_name_keeps_what_two_have(
    tmp_path: Path,
) -> None:
    async with libraries(tmp_path, B, A) as here:
        offer = here.at()

        assert addresses(offer) == ["book://one", "book://both", BOTH_OF_B, "book://two"]
        assert text(await read(offer, "book://both")) == "a has book://both"
        assert text(await read(offer, "book://two")) == "b has book://two"
        second = await read(offer, BOTH_OF_B)
        assert text(second) == "b has book://both"
        assert second.content[0]["resource"]["uri"] == BOTH_OF_B
        quoted = "openfang://servers/a/book%3A%2F%2Fone"
        assert text(await read(offer, quoted)) == "a has book://one"


async def test_what_nobody_lists_is_of_the_server_whose_template_fits(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at()
        templates = [one["uriTemplate"] for one in offer.templates()]

        assert templates == [
            "item://a/{id}",
            "item://b/{+path}",
            "openfang://servers/b/item%3A%2F%2Fa%2F{id}",
        ]
        assert text(await read(offer, "item://a/7")) == "a has item://a/7"
        assert text(await read(offer, "item://b/x/y")) == "b has item://b/x/y"
        assert text(await read(offer, "openfang://servers/b/item%3A%2F%2Fa%2F7")) == (
            "b has item://a/7"
        )
        for nobody in ("item://a/7/8", "else://x", "openfang://servers/c/book%3A%2F%2Fone"):
            with pytest.raises(NotFound):
                await read(offer, nobody)


async def test_with_one_server_every_address_is_its_own(tmp_path: Path) -> None:
    async with libraries(tmp_path, A) as here:
        assert text(await read(here.at(), "else://x")) == "a has else://x"


async def test_prompts_are_named_like_tools_and_all_can_be_got(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at()
        listed = [one["name"] for one in offer.prompts()]
        got = {name: await offer.prompt(name, {"who": "me"}, NO_OPTIONS) for name in listed}
        with pytest.raises(NotFound, match="No prompt Greet"):
            await offer.prompt("Greet", {}, NO_OPTIONS)

    assert listed[:2] == ["mcp_a_greet", "mcp_b_greet"]
    assert len(listed[2]) == 64
    assert got["mcp_a_greet"].text == "a says Greet {'who': 'me'}"
    assert got["mcp_b_greet"].text == "b says greet {'who': 'me'}"
    assert got[listed[2]].text == f"b says {'x' * 70} {{'who': 'me'}}"
    assert got["mcp_a_greet"].content[0]["role"] == "user"


async def test_arguments_of_prompts_and_templates_are_completed_by_their_server(
    tmp_path: Path,
) -> None:
    argument = {"name": "who", "value": "m"}
    async with libraries(tmp_path, A, B) as here:
        offer = here.at()

        async def completed(**ref: str) -> Any:
            params = {"ref": ref, "argument": argument, "_meta": {"x": 1}}
            return (await offer.complete(params, NO_OPTIONS)).structured["values"]

        prompt = await completed(type="ref/prompt", name="mcp_b_greet")
        template = await completed(type="ref/resource", uri="item://a/{id}")
        other = await completed(
            type="ref/resource", uri="openfang://servers/b/item%3A%2F%2Fa%2F{id}"
        )
        for wrong in ({"type": "ref/prompt", "name": "none"}, {"type": "ref/else"}, {}):
            with pytest.raises(NotFound):
                await completed(**wrong)

    assert prompt == [json.dumps({"type": "ref/prompt", "name": "greet"}), "b"]
    assert template == [json.dumps({"type": "ref/resource", "uri": "item://a/{id}"}), "a"]
    assert other == [json.dumps({"type": "ref/resource", "uri": "item://a/{id}"}), "b"]


@pytest.mark.requirement("C4.7")
async def test_wanting_completions_of_what_is_hidden_is_on_record(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at(caller=here.holder("mcp:a:prompts/get"))

        async def completed(**ref: str) -> Any:
            params = {"ref": ref, "argument": {"name": "who", "value": "m"}}
            return (await offer.complete(params, NO_OPTIONS)).structured

        for name in ("mcp_b_greet", "mcp_c_greet"):
            with pytest.raises(NotFound, match=f"No prompt {name} is there"):
                await completed(type="ref/prompt", name=name)
        with pytest.raises(NotFound):
            await completed(type="ref/resource", uri="item://a/{id}")
        nothing = await completed(type="ref/prompt", name="mcp_a_greet")
        events = await refusals(here.app)

    assert nothing == {"values": []}
    assert [event.payload["rule"] for event in events] == [
        "unknown_prompt",
        "unknown_prompt",
        "unknown_resource",
        "unknown_completion",
    ]
    assert {event.context["caller"] for event in events} == {"key:some"}


@pytest.mark.requirement("C4.5")
async def test_only_what_can_be_there_is_announced(tmp_path: Path) -> None:
    exposed = '[mcp]\nexpose_resources = ["book://*"]\n'
    put(tmp_path, f'name = "coder"\n[capabilities]\ntools = ["mcp:a:*"]\n{exposed}')
    toolsets = '[toolsets.crew]\nagents = ["*"]\n[toolsets.b]\nservers = ["b"]\n'
    everything = {SUBSCRIPTIONS, PROMPTS, COMPLETIONS}
    async with libraries(tmp_path, A, B, toolsets) as here:
        parts = here.app.parts
        prompter = here.holder("mcp:b:prompts/get")

        assert here.at().features == everything
        assert here.at(caller=local_caller(parts, Place())).features == set()
        assert here.at(Place(agent="coder")).features == {SUBSCRIPTIONS}
        assert here.at(Place(agent="echo")).features == set()
        assert here.at(Place(toolset="crew")).features == set()
        assert here.at(Place(toolset="b")).features == everything
        assert here.at(Place(toolset="b"), prompter).features == {PROMPTS}


async def test_a_server_that_completes_nothing_suggests_nothing(tmp_path: Path) -> None:
    mute = library("mute", prompts=["greet"], without=["completions"])
    async with libraries(tmp_path, mute) as here:
        ref = {"type": "ref/prompt", "name": "mcp_mute_greet"}
        params = {"ref": ref, "argument": {"name": "x", "value": ""}}
        result = await here.at().complete(params, NO_OPTIONS)

    assert (result.structured, result.fault) == ({"values": []}, None)


async def test_reading_and_getting_are_calls_on_the_one_path(tmp_path: Path) -> None:
    async with libraries(tmp_path, A) as here:
        offer = here.at()
        result = await read(offer, "book://one")
        await offer.prompt("mcp_a_greet", {}, NO_OPTIONS)
        events = await here.app.events()

    assert result.receipt is not None
    started = [e.context["tool"] for e in events if e.event_type == TOOL_INVOCATION_START]
    assert started == ["mcp:a:resources/read", "mcp:a:prompts/get"]
    assert {event.context["edge"] for event in events} == {"mcp"}


@pytest.mark.requirement("C4.7")
async def test_only_servers_whose_operations_the_caller_may_use_are_there(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at(caller=here.holder("mcp:b:resources/*", "mcp:a:prompts/get"))

        assert addresses(offer) == ["book://both", "book://two"]
        assert [one["name"] for one in offer.prompts()] == ["mcp_a_greet"]
        assert text(await read(offer, "book://both")) == "b has book://both"
        assert names(offer) == []
        for hidden in ("book://one", "openfang://servers/a/book%3A%2F%2Fone"):
            with pytest.raises(NotFound):
                await read(here.at(caller=here.holder("mcp:b:list")), hidden)
        with pytest.raises(NotFound):
            await read(offer, "openfang://servers/a/book%3A%2F%2Fone")


@pytest.mark.requirement("C17.1")
async def test_a_toolset_has_the_resources_of_its_servers(tmp_path: Path) -> None:
    toolset = '[toolsets.small]\nservers = ["b"]\n'
    async with libraries(tmp_path, A, B, toolset) as here:
        offer = here.at(Place(toolset="small"))

        assert addresses(offer) == ["book://both", "book://two"]
        assert offer.prompts()[0]["name"] == "mcp_b_greet"
        assert text(await read(offer, "book://both")) == "b has book://both"
        assert text(await read(offer, "book://one")) == "b has book://one"
        assert offer.instructions == ""


@pytest.mark.requirement("C17.1")
async def test_one_server_without_a_prefix_is_seen_as_it_is(tmp_path: Path) -> None:
    toolset = '[toolsets.small]\nservers = ["b"]\nprefix = false\n'
    async with libraries(tmp_path, A, B, toolset) as here:
        offer = here.at(Place(toolset="small"))
        with pytest.raises(NotFound):
            here.at(Place(toolset="small"), here.holder("mcp:a:*"))

        assert names(offer) == ["asked", "link", "touch", "write"]
        assert [one["name"] for one in offer.prompts()] == ["greet", "x" * 70]
        assert addresses(offer) == ["book://both", "book://two"]
        assert offer.instructions == "Ask for books."
        assert (await offer.prompt("greet", {}, NO_OPTIONS)).text == "b says greet {}"


@pytest.mark.requirement("C4.10")
async def test_an_agent_shows_the_resources_that_it_exposes_and_can_read(tmp_path: Path) -> None:
    exposed = '[mcp]\nexpose_resources = ["book://*", "item://a/*"]\n'
    put(tmp_path, f'name = "coder"\n[capabilities]\ntools = ["mcp:a:*"]\n{exposed}')
    async with libraries(tmp_path, A, B) as here:
        offer = here.at(Place(agent="coder"))

        assert addresses(offer) == ["book://one", "book://both"]
        assert [one["uriTemplate"] for one in offer.templates()] == ["item://a/{id}"]
        assert list(offer.prompts()) == []
        assert text(await read(offer, "item://a/1")) == "a has item://a/1"
        outside = (
            "item://b/1",
            "item://a/../../b/1",
            "file:///etc/passwd",
            "openfang://servers/a/file%3A%2F%2F%2Fx",
            "openfang://servers/a/item%3A%2F%2Fa%2F%252e%252e%2Fb",
        )
        for hidden in (*outside, BOTH_OF_B):
            with pytest.raises(NotFound):
                await read(offer, hidden)
        with pytest.raises(UnknownTool):
            await call(offer, "mcp:a:resources/read", uri="file:///etc/passwd")


async def test_results_name_the_addresses_that_things_have_here(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at()

        async def linked(server: str, uri: str) -> list[str]:
            result = await call(offer, f"mcp_{server}_link", uri=uri)
            link, embedded = result.content
            return [link["uri"], embedded["resource"]["uri"]]

        assert await linked("a", "book://both") == ["book://both"] * 2
        assert await linked("b", "book://both") == [BOTH_OF_B] * 2
        new = "openfang://servers/a/new%3A%2F%2Fx"
        assert await linked("a", "new://x") == [new] * 2
        assert text(await read(offer, new)) == "a has new://x"
        assert await linked("a", "https://x.org/y") == ["https://x.org/y"] * 2


@pytest.mark.requirement("C7.12")
async def test_the_whole_of_a_result_that_was_cut_is_a_resource_of_its_owner(
    tmp_path: Path,
) -> None:
    async with libraries(tmp_path, A, "[results]\nmax_chars = 10\n") as here:
        cut = await call(here.at(), "mcp_a_asked")
        uri = cut.text.rpartition(", ")[2].rstrip("]")
        whole = await read(here.at(), uri)
        with pytest.raises(NotFound):
            await read(here.at(caller=here.holder("*")), uri)

    resource = whole.content[0]["resource"]
    assert (resource["uri"], resource["mimeType"]) == (uri, "application/json")
    assert json.loads(resource["text"])["content"][0]["type"] == "text"


@pytest.mark.requirement("C9.1")
async def test_a_run_that_reads_the_whole_of_a_result_holds_what_that_carries(
    tmp_path: Path,
) -> None:
    async with libraries(tmp_path, "[results]\nmax_chars = 10\n") as here:

        async def page(_: object) -> Result:
            return text_result("x" * 50, labels=Labels.EXTERNAL_NETWORK)

        facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
        here.app.add(TableSource(Kind.MCP, "demo", {"page": (facts, page)}))
        cut = await here.at().call("mcp:demo:page", {}, Options(run="first"))
        uri = cut.text.rpartition(", ")[2].rstrip("]")
        whole = await here.at().read(uri, Options(run="second"))
        held = (await here.app.parts.pipeline.runs.store.kept(f"{here.app.caller.id}/second"))[0]
        assert Labels.EXTERNAL_NETWORK & whole.labels
        assert Labels.EXTERNAL_NETWORK & held


class Heard:
    """What was told, and an event for each."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self._more = anyio.Event()

    def __call__(self, news: News) -> None:
        self.news.append(news)
        self._more.set()

    async def until(self, enough: Callable[[list[News]], bool]) -> None:
        with anyio.fail_after(20):
            while not enough(self.news):
                self._more = anyio.Event()
                await self._more.wait()


@pytest.mark.requirement("C4.5")
async def test_changed_lists_are_told_to_those_who_can_see_them(tmp_path: Path) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer = here.at()
        mine, others = Heard(), Heard()
        stop = offer.watch(mine)
        stop_others = here.at(caller=here.holder("mcp:b:*")).watch(others)
        await call(offer, "mcp_a_write", list="resources", entry="book://new")
        await mine.until(lambda news: Listed.RESOURCES in news)
        await call(offer, "mcp_a_write", list="prompts", entry="farewell")
        await mine.until(lambda news: Listed.PROMPTS in news)

        assert "book://new" in addresses(offer)
        assert mine.news == [Listed.RESOURCES, Listed.PROMPTS]
        assert others.news == []
        stop()
        stop_others()


@pytest.mark.requirement("C4.6")
async def test_changes_of_a_resource_are_told_by_the_address_that_it_has_here(
    tmp_path: Path,
) -> None:
    async with libraries(tmp_path, A, B) as here:
        offer, heard, blind = here.at(), Heard(), Heard()
        stops = [offer.watch(heard), here.at(caller=here.holder("mcp:a:*")).watch(blind)]
        await offer.subscribe(BOTH_OF_B, NO_OPTIONS)
        await call(offer, "mcp_b_touch", uri="book://both")
        await heard.until(lambda news: Updated("b", BOTH_OF_B) in news)

        assert Updated("b", "book://both") not in heard.news
        assert blind.news == []
        for stop in stops:
            stop()


async def test_a_server_watches_until_the_last_one_lets_go(tmp_path: Path) -> None:
    async with libraries(tmp_path, A) as here:
        one, other = here.at(), here.at(caller=here.holder("mcp:a:*"))
        await one.subscribe("book://one", NO_OPTIONS)
        await other.subscribe("book://one", NO_OPTIONS)
        await one.unsubscribe("book://one", NO_OPTIONS)
        await one.unsubscribe("book://one", NO_OPTIONS)
        before = json.loads((await call(one, "mcp_a_asked")).text)
        await other.unsubscribe("book://one", NO_OPTIONS)
        after = json.loads((await call(one, "mcp_a_asked")).text)

    assert "resources/subscribe book://one" in before
    assert "resources/unsubscribe book://one" not in before
    assert "resources/unsubscribe book://one" in after


async def test_a_server_that_tells_of_no_changes_is_not_watched(tmp_path: Path) -> None:
    async with libraries(
        tmp_path, library("a", resources=["book://one"], without=["subscribe"])
    ) as here:
        with pytest.raises(Rejected, match="a tells nobody"):
            await here.at().subscribe("book://one", NO_OPTIONS)
        with pytest.raises(NotFound):
            await here.at(caller=here.holder("builtin:*")).subscribe("book://one", NO_OPTIONS)


@pytest.mark.requirement("C4.1", "C3.2")
async def test_the_first_list_waits_a_little_for_the_servers(tmp_path: Path) -> None:
    async with shop(tmp_path, A) as here:
        offer = here.at()
        await offer.settled()

        assert "mcp_a_asked" in names(offer)
        assert addresses(offer) == ["book://one", "book://both"]


@pytest.mark.requirement("C4.6", "C3.2")
async def test_a_sleeping_server_is_woken_only_by_who_may_call_it(tmp_path: Path) -> None:
    async with libraries(tmp_path, library("a", "lazy = true")) as here:
        assert here.app.parts.servers
        source = here.app.parts.servers.find("a")
        with pytest.raises(UnknownTool):
            await call(here.at(caller=here.holder("builtin:*")), "mcp:a:asked")
        assert not source.connected

        assert (await call(here.at(), "mcp_a_asked")).text == "[]"
