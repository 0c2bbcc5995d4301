"""What servers ask is taken to the client of the call that it belongs to, as a call (C1.6)."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.mcp.federation import (
    ANSWERS,
    EVERYTHING,
    ROOTS,
    WORDS,
    Node,
    Person,
    accept,
    entry,
    node,
    until,
    web,
)
from tests.sources.mcp.peers.federated_web import FederatedWeb
from tests.sources.mcp.peers.web import serving

from openfang.core.calls import Caller, Grants, Mode
from openfang.core.clients import QUESTIONS
from openfang.core.errors import CallTimedOut
from openfang.core.results import Result, error_result
from openfang.protocols.mcp.errors import RpcError
from openfang.sources.mcp.questions import check_offered, prepared

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.core.events import AuditEvent

pytestmark = pytest.mark.requirement("C1.6", "C3.10")
ERAS = ("handshake", "modern")
WAYS = [(era, way) for era in ERAS for way in ("stdio", "http")]
everywhere = pytest.mark.parametrize(("era", "way"), WAYS)
FORM = {
    "mode": "form",
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
    },
}
SAMPLING: Mapping[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 9},
}
ELICITATION: Mapping[str, Any] = {"method": "elicitation/create", "params": FORM}
LIST_ROOTS: Mapping[str, Any] = {"method": "roots/list", "params": {}}
ACCEPTED = {"action": "accept", "content": {"age": 7, "name": "Ada"}}
WITH_ROOTS = "roots = true"


@asynccontextmanager
async def opened(
    folder: Path, era: str, way: str = "stdio", more: str = ""
) -> AsyncGenerator[Node]:
    if way == "stdio":
        async with node(folder, entry("peer", era, more=more)) as it:
            yield it
        return
    async with serving(FederatedWeb(era)) as url, node(folder, web("peer", url, more)) as it:
        yield it


async def ask(
    it: Node, client: Person | None, *questions: Mapping[str, Any], aside: bool = False
) -> Result:
    return await it.call("ask", client, questions=list(questions), aside=aside)


def replies(result: Result) -> list[Any]:
    return result.structured["replies"]


def refused(result: Result) -> Any:
    """The error that the server got in the place of an answer."""
    (reply,) = replies(result)
    return reply["error"]


# Who is asked, and what


@everywhere
async def test_each_question_reaches_the_client_and_its_answer_the_server(
    tmp_path: Path, era: str, way: str
) -> None:
    person = Person()
    async with opened(tmp_path, era, way, WITH_ROOTS) as it:
        for question, answer in ((SAMPLING, WORDS), (ELICITATION, ACCEPTED), (LIST_ROOTS, ROOTS)):
            assert replies(await ask(it, person, question)) == [{"result": answer}]
        assert [method for method, _ in person.asked] == [
            "sampling/createMessage",
            "elicitation/create",
            "roots/list",
        ]
        assert person.asked[1][1] == FORM
        assert person.announced == ([1, 1, 1] if era == "modern" else [])
        assert person.missed == 0


@pytest.mark.parametrize("aside", [False, True])
async def test_a_session_may_ask_on_either_of_its_streams(tmp_path: Path, aside: bool) -> None:  # noqa: FBT001 - a case
    async with opened(tmp_path, "handshake", "http") as it:
        assert replies(await ask(it, Person(), SAMPLING, aside=aside)) == [{"result": WORDS}]


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_is_a_call_of_the_servers_on_record(tmp_path: Path, era: str) -> None:
    def of(events: list[AuditEvent], kind: str) -> AuditEvent:
        (found,) = (event for event in events if event.event_type == kind)
        return found

    async with opened(tmp_path, era) as it:
        await ask(it, Person(), ELICITATION)
        outer = of(await it.audited("mcp:peer:ask"), "tool_invocation_start")
        events = await it.audited("client:ada:elicitation/create")
        start, end = of(events, "tool_invocation_start"), of(events, "tool_invocation_end")
        assert start.context["caller"] == "mcp:peer"
        assert start.context["depth"] == 2
        assert start.context["ancestors"] == ["mcp:peer"]
        assert start.context["trace"] == outer.context["trace"]
        assert start.context["run"] == outer.call_id
        assert start.context["project"] == "default"
        assert start.payload["arguments"] == FORM
        assert end.payload["outcome"] == "ok"
        # Those who are asked are no tools that anybody sees.
        assert not [t for t in it.app.parts.catalog.list(it.app.caller) if t.kind.value == "client"]


@pytest.mark.parametrize("era", ERAS)
async def test_several_questions_are_put_side_by_side(tmp_path: Path, era: str) -> None:
    together = anyio.Event()

    async def wait(params: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(person.asked) == 3:
            together.set()
        await together.wait()
        return {**WORDS, **ROOTS, "action": "decline", "was": params.get("message", "")}

    person = Person(answers=dict.fromkeys(ANSWERS, wait))
    async with opened(tmp_path, era, more=WITH_ROOTS) as it:
        result = await ask(it, person, SAMPLING, ELICITATION, LIST_ROOTS)
        assert {reply["result"]["was"] for reply in replies(result)} == {"", "Who are you?"}
        assert person.announced == ([3] if era == "modern" else [])
        assert sorted(person.names) == (["q0", "q1", "q2"] if era == "modern" else [""] * 3)


@everywhere
async def test_time_stands_still_while_a_client_is_asked(
    tmp_path: Path, era: str, way: str
) -> None:
    async def slow(params: Mapping[str, Any]) -> Mapping[str, Any]:
        del params
        await anyio.sleep(0.9)  # a person takes their time
        return WORDS

    person = Person(answers={"sampling/createMessage": slow})
    async with opened(tmp_path, era, way, "timeout_secs = 0.4") as it:
        assert replies(await ask(it, person, SAMPLING)) == [{"result": WORDS}]


# What is refused


UNOFFERED: list[tuple[Mapping[str, Any], Mapping[str, Any], int]] = [
    ({}, SAMPLING, -32601),
    ({"sampling": {}}, ELICITATION, -32601),
    ({"sampling": None}, SAMPLING, -32601),
    ({"elicitation": {"url": {}}}, ELICITATION, -32602),
    ({"elicitation": {}}, {**ELICITATION, "params": {**FORM, "mode": "url"}}, -32602),
    ({"elicitation": {}}, {**ELICITATION, "params": {**FORM, "mode": 7}}, -32602),
    ({"elicitation": {}}, {**ELICITATION, "params": {**FORM, "mode": ["url"]}}, -32602),
    ({"sampling": {}}, {**SAMPLING, "params": {"tools": []}}, -32602),
    (EVERYTHING, {"method": "tasks/list", "params": {}}, -32601),
]


async def test_what_a_client_does_not_offer_it_is_not_asked(tmp_path: Path) -> None:
    async with opened(tmp_path, "handshake") as it:
        for capabilities, question, code in UNOFFERED:
            person = Person(capabilities=capabilities)
            assert refused(await ask(it, person, question))["code"] == code
            assert person.asked == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
ODD = st.dictionaries(st.sampled_from(["mode", "_meta", "tools", "x"]), JSON, max_size=3)


@settings(max_examples=60, deadline=None)
@given(method=st.sampled_from(QUESTIONS), params=ODD, modes=ODD)
def test_no_question_is_too_odd_to_be_judged(
    method: str, params: dict[str, Any], modes: dict[str, Any]
) -> None:
    offered = {"sampling": modes, "elicitation": modes, "roots": modes}
    with suppress(RpcError):
        check_offered(method, params, offered)
        question = prepared(method, params)
        kept = params.keys() - {"_meta"}
        assert {name: question[name] for name in kept} == {name: params[name] for name in kept}


async def test_a_modern_server_is_told_what_the_client_of_each_call_offers(tmp_path: Path) -> None:
    async def offered(client: Person | None) -> Any:
        result = await it.call("echo", client)
        return result.structured["meta"]["io.modelcontextprotocol/clientCapabilities"]

    rich: Mapping[str, Any] = {
        "sampling": {"tools": {}},
        "elicitation": {},
        "roots": {},
        "tasks": {},
        "x": {},
    }
    async with opened(tmp_path, "modern") as it:
        assert await offered(None) == {}
        assert await offered(Person(capabilities={})) == {}
        assert await offered(Person(capabilities=rich)) == {
            "sampling": {"tools": {}},
            "elicitation": {},
        }


async def test_a_modern_server_that_asks_in_spite_of_it_is_not_answered(tmp_path: Path) -> None:
    person = Person(capabilities={"elicitation": {}})
    async with opened(tmp_path, "modern") as it:
        nobody = await ask(it, None, ELICITATION)
        assert (nobody.is_error, nobody.fault) == (True, None)
        assert "was not answered" in nobody.text
        result = await ask(it, person, ELICITATION, SAMPLING)
        assert "offers no sampling/createMessage" in result.text
    assert person.announced == [2]
    assert person.missed + len(person.asked) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_folders_are_asked_for_only_where_the_operator_says_so(
    tmp_path: Path, era: str
) -> None:
    person = Person()
    for more, declared in (("", False), (WITH_ROOTS, True)):
        async with opened(tmp_path / more, era, more=more) as it:
            if era == "modern":
                meta = (await it.call("echo", person)).structured["meta"]
                said = meta["io.modelcontextprotocol/clientCapabilities"]
            else:
                (greeting,) = await it.params("initialize")
                said = greeting["capabilities"]
                assert said["sampling"] == {}
                assert said["elicitation"] == {"form": {}, "url": {}}
                assert said.get("roots") == ({"listChanged": False} if declared else None)
            assert ("roots" in said) is declared
            result = await ask(it, person, LIST_ROOTS)
            assert result.is_error is (not declared and era == "modern")
    assert len(person.asked) == 1


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_call_without_a_client_has_nobody_to_ask(tmp_path: Path, way: str) -> None:
    async with opened(tmp_path, "handshake", way) as it:
        assert refused(await ask(it, None, SAMPLING))["code"] == -32601


@pytest.mark.requirement("C7.6")
@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_policy_refuses_is_never_put_and_the_server_hears_why(
    tmp_path: Path, era: str
) -> None:
    person = Person()
    poor = Caller(id="key:ada", grants=Grants(tools=("*",)))
    async with opened(tmp_path, era) as it:
        call = it.app.make("mcp:peer:ask", {"questions": [SAMPLING]}, caller=poor)
        result = await it.app.invoke(replace(call, client=person))
        text = result.text if era == "modern" else refused(result)["message"]
        assert "Tool requires project_id" in text
        events = await it.audited("client:ada:sampling/createMessage")
        assert "policy_violation" in [event.event_type for event in events]
    assert person.asked == []
    assert person.missed == (era == "modern")


@pytest.mark.parametrize("era", ERAS)
async def test_a_clients_own_error_is_the_servers_answer(tmp_path: Path, era: str) -> None:
    async def rejects(params: Mapping[str, Any]) -> Result:
        del params
        fault = {"code": -1, "message": "User rejected it", "data": {"x": 1}}
        return replace(error_result("no"), fault=fault)

    async with opened(tmp_path, era) as it:
        result = await ask(it, Person(answers={"sampling/createMessage": rejects}), SAMPLING)
        if era == "modern":
            assert result.is_error
            assert "User rejected it" in result.text
        else:
            error = {"code": -1, "message": "User rejected it", "data": {"x": 1}}
            assert refused(result) == error


async def test_an_answer_that_is_none_is_an_error(tmp_path: Path) -> None:
    given = [Result(), error_result("out of figs"), Result(structured=[1])]

    async def answers(params: Mapping[str, Any]) -> Result:
        del params
        return given.pop()

    async with opened(tmp_path, "handshake") as it:
        while given:
            result = await ask(it, Person(answers={"sampling/createMessage": answers}), SAMPLING)
            assert refused(result)["code"] == -32603


async def test_an_answer_that_is_too_large_is_an_error_and_no_half_answer(tmp_path: Path) -> None:
    async def long(params: Mapping[str, Any]) -> Mapping[str, Any]:
        del params
        return {"role": "assistant", "content": {"type": "text", "text": "x" * 60_000}}

    async with opened(tmp_path, "handshake") as it:
        result = await ask(it, Person(answers={"sampling/createMessage": long}), SAMPLING)
        assert "results.max_chars" in refused(result)["message"]


@pytest.mark.requirement("C18.3")
async def test_no_secret_travels_in_a_question_or_in_its_answer(tmp_path: Path) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6

    async def tells(params: Mapping[str, Any]) -> Mapping[str, Any]:
        del params
        return {"action": "accept", "content": {"name": secret}}

    person = Person(answers={"elicitation/create": tells})
    question = {**ELICITATION, "params": {**FORM, "message": f"say {secret}"}}
    async with opened(tmp_path, "handshake") as it:
        result = await ask(it, person, question)
        assert secret not in str(person.asked)
        assert secret not in str(replies(result))


async def test_an_address_is_known_by_an_id_in_both_eras(tmp_path: Path) -> None:
    params = {"mode": "url", "url": "https://example.com/", "message": "Sign in"}
    person = Person()
    async with opened(tmp_path, "modern") as it:
        await ask(it, person, {"method": "elicitation/create", "params": params})
        named = {**params, "elicitationId": "mine"}
        await ask(it, person, {"method": "elicitation/create", "params": named})
    (first, second) = (params for _, params in person.asked)
    assert first["elicitationId"]
    assert second["elicitationId"] == "mine"


# Whose question it is


@pytest.mark.parametrize("era", ERAS)
async def test_the_same_question_in_call_after_call_is_no_loop(tmp_path: Path, era: str) -> None:
    person = Person()
    async with opened(tmp_path, era) as it:
        for number in range(12):
            made = it.app.make(
                "mcp:peer:ask", {"questions": [ELICITATION], "n": number}, caller=person.caller
            )
            call = replace(made, client=person, run="a session")
            assert replies(await it.app.invoke(call)) == [{"result": ACCEPTED}]
    assert len(person.asked) == 12


async def test_over_a_pipe_clients_take_turns_once_it_is_unclear_whom_a_server_means(
    tmp_path: Path,
) -> None:
    bob, leaving, order = Person(key="bob"), anyio.CancelScope(), list[str]()

    async def hang() -> None:
        with leaving:
            await it.call("hang", bob)

    async def again(key: str) -> None:
        async def answers(params: Mapping[str, Any]) -> Mapping[str, Any]:
            order.append(f"{key} of {it.source()._turns.clients}")
            return await accept(params)

        person = Person(key=key, answers={"elicitation/create": answers})
        assert replies(await ask(it, person, ELICITATION)) == [{"result": ACCEPTED}]

    async with opened(tmp_path, "handshake") as it, anyio.create_task_group() as group:
        group.start_soon(hang)
        await until(lambda: it.source()._turns.clients == 1)
        result = await ask(it, Person(key="ada"), ELICITATION)
        assert refused(result)["code"] == -32600
        assert "Several callers" in refused(result)["message"]
        for count, key in enumerate(("cleo", "ada", "bob"), 1):
            group.start_soon(again, key)
            await until(lambda count=count: len(it.source()._turns._waiting) == count)
        assert order == []
        leaving.cancel()
    assert order == ["cleo of 1", "ada of 1", "bob of 1"]
    assert bob.asked == []


async def test_over_a_pipe_nobody_is_asked_about_the_call_of_another(tmp_path: Path) -> None:
    """Whoever has no client could be meant as well."""
    ada = Person()
    async with opened(tmp_path, "handshake") as it, anyio.create_task_group() as group:
        group.start_soon(it.call, "hang", None)
        await until(lambda: it.source()._turns.others == 1)
        assert refused(await ask(it, ada, ELICITATION))["code"] == -32600
        assert ada.asked == []
        group.cancel_scope.cancel()


async def test_over_a_pipe_two_connections_of_one_key_are_told_apart(tmp_path: Path) -> None:
    asks, other = Person(level="debug"), Person(level="debug")
    note = "notifications/message", {"level": "error", "data": "loud"}
    async with opened(tmp_path, "handshake") as it, anyio.create_task_group() as group:
        group.start_soon(it.call, "hang", other)
        await until(lambda: it.source()._turns.clients == 1)
        await it.call("say", asks, notes=[note])
        assert refused(await ask(it, asks, ELICITATION))["code"] == -32600
        group.cancel_scope.cancel()
    assert (other.asked, other.told) == ([], [])
    assert (asks.asked, asks.told) == ([], [])


@pytest.mark.parametrize("asked_by", [None, Person(key="bob"), Person(key="ada")])
async def test_over_a_pipe_a_question_that_nobody_answers_stops_nobody_else(
    tmp_path: Path, asked_by: Person | None
) -> None:
    answered = anyio.Event()

    async def in_the_end(params: Mapping[str, Any]) -> Mapping[str, Any]:
        await answered.wait()
        return await accept(params)

    ada, results = Person(answers={"elicitation/create": in_the_end}), list[Result]()

    async def wait() -> None:
        results.append(await ask(it, ada, ELICITATION))

    async with opened(tmp_path, "handshake") as it, anyio.create_task_group() as group:
        it.source()._turns.grace = 0.05
        group.start_soon(wait)
        await ada.until(lambda: ada.asked)
        assert (await it.call("echo", asked_by, text="well")).text == "well"
        result = await ask(it, asked_by, ELICITATION)
        assert refused(result)["code"] == -32600
        assert results == []
        answered.set()
    assert replies(results[0]) == [{"result": ACCEPTED}]
    assert len(ada.asked) == 1


async def test_a_call_asks_so_many_questions_and_no_more(tmp_path: Path) -> None:
    async def declines(params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"action": "decline", "what": params["message"]}

    person = Person(answers={"elicitation/create": declines})
    questions = [
        {**ELICITATION, "params": {**FORM, "message": f"Are you {number}?"}}
        for number in range(120)
    ]
    async with opened(tmp_path, "handshake") as it:
        given = replies(await it.call("ask", person, questions=questions, row=True))
        assert sum("100 questions" in str(one.get("error")) for one in given) == 20
        assert len(person.asked) == 100
        assert (await it.call("echo", text="well")).text == "well"


async def test_a_question_that_is_too_large_is_never_put(tmp_path: Path) -> None:
    person = Person()
    async with opened(tmp_path, "handshake") as it:
        result = await it.call("ask", person, questions=[SAMPLING], larger=2_000_000)
        assert refused(result)["code"] == -32602
    assert person.asked == []


async def test_who_waits_for_their_turn_does_not_run_out_of_time(tmp_path: Path) -> None:
    async def slow(params: Mapping[str, Any]) -> Mapping[str, Any]:
        await anyio.sleep(0.9)  # a person takes their time
        return await accept(params)

    async with opened(tmp_path, "handshake", more="timeout_secs = 0.4") as it:
        it.source()._turns.strict = True
        async with anyio.create_task_group() as group:
            for key in ("ada", "bob"):
                person = Person(key=key, answers={"elicitation/create": slow})
                group.start_soon(ask, it, person, ELICITATION)
        endings = [
            event.payload["outcome"]
            for event in await it.audited("mcp:peer:ask")
            if event.event_type == "tool_invocation_end"
        ]
        assert endings == ["ok", "ok"]


async def test_over_http_a_question_on_a_calls_own_stream_is_that_calls(tmp_path: Path) -> None:
    ada, bob = Person(key="ada"), Person(key="bob")
    async with opened(tmp_path, "handshake", "http") as it, anyio.create_task_group() as group:
        group.start_soon(it.call, "hang", bob)
        await until(lambda: it.source()._turns.clients == 1)
        assert replies(await ask(it, ada, ELICITATION)) == [{"result": ACCEPTED}]
        assert len(ada.asked) == 1
        assert refused(await ask(it, ada, ELICITATION, aside=True))["code"] == -32600
        group.cancel_scope.cancel()
    assert bob.asked == []


async def test_a_question_does_not_outlast_its_call(tmp_path: Path) -> None:
    async def never(params: Mapping[str, Any]) -> Mapping[str, Any]:
        del params
        await anyio.sleep_forever()
        raise AssertionError

    person = Person(answers=dict.fromkeys(ANSWERS, never))
    async with opened(tmp_path, "handshake") as it:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: it.call("hang", person, questions=[ELICITATION]))
            await person.until(lambda: person.asked)
            group.cancel_scope.cancel()
        await person.until(lambda: person.given_up)
        (end,) = (
            event
            for event in await it.audited("client:ada:elicitation/create")
            if event.event_type == "tool_invocation_end"
        )
        assert end.payload["outcome"] == "cancelled"


async def test_a_server_that_hangs_after_an_answer_is_given_up_all_the_same(
    tmp_path: Path,
) -> None:
    person = Person()
    async with opened(tmp_path, "handshake", more="timeout_secs = 0.3") as it:
        with pytest.raises(CallTimedOut):
            await it.call("hang", person, questions=[ELICITATION])
    assert len(person.asked) == 1


async def test_a_question_is_asked_in_the_mode_of_its_caller(tmp_path: Path) -> None:
    person = Person()
    planner = replace(person.caller, mode=Mode.PLANNING)
    async with opened(tmp_path, "handshake") as it:
        call = it.app.make("mcp:peer:ask", {"questions": [SAMPLING]}, caller=planner)
        assert replies(await it.app.invoke(replace(call, client=person))) == [{"result": WORDS}]
        (decided, *_) = await it.audited("client:ada:sampling/createMessage")
        assert decided.context["mode"] == "planning"
