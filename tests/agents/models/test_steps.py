"""Agents with real models: what providers say over the wire becomes calls, words and reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.agents.models.minds import KEY, settings, thinker, thinking
from tests.agents.models.scripted import Asked, Fails, Garbage, Says, Want, scripted

from openfang.core.agents import Ended, Made, Wanted, Words

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.models.scripted import Answer, Script

    from openfang.core.progress import Told
    from openfang.core.results import Result
    from openfang.testing import OpenApp

pytestmark = [
    pytest.mark.requirement("C6.4", "C6.5"),
    # What a library says of itself when it is first compiled.
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning"),
]
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-script", "google": "gemini-2.5-flash"}
WRITE = Want(tool="file_write", arguments={"path": "a.txt", "content": "figs"})
READ = Want(tool="file_read", arguments={"path": "a.txt"})


async def ask(
    app: OpenApp, message: str = "go", heard: list[Told] | None = None, **more: Any
) -> Result:
    arguments = {"message": message, **more}
    listening = heard if heard is not None else []
    return await app.parts.invoke(app.make("agent:thinker", arguments, progress=listening.append))


def ended(result: Result) -> tuple[str, str]:
    assert result.structured
    return result.structured["ending"], result.structured["response"]


async def answered(
    folder: Path, *answers: Answer, provider: str = "openai", more: str = "", config: str = ""
) -> tuple[Script, Result]:
    """Let an agent answer once, by this script."""
    thinker(folder, provider=provider, model=MODELS[provider], more=more)
    with scripted(*answers) as server:
        url = getattr(server, provider)
        async with thinking(folder, settings(url, provider=provider, more=config)) as (app, _):
            return server, await ask(app)


@pytest.mark.parametrize("provider", MODELS)
async def test_calls_over_several_steps_take_the_one_path_and_words_stream(
    tmp_path: Path, provider: str
) -> None:
    thinker(tmp_path, provider=provider, model=MODELS[provider])
    script = (Says("", [WRITE]), Says("I look: ", [READ]), Says(["It says ", "figs."]))
    heard: list[Told] = []
    with scripted(*script) as server:
        config = settings(getattr(server, provider), provider=provider)
        async with thinking(tmp_path, config) as (app, _):
            result = await ask(app, heard=heard)
            started = [
                event.context["tool"]
                for event in await app.events()
                if event.event_type == "tool_invocation_start"
                and event.context["caller"] == "agent:thinker"
            ]

    assert ended(result) == ("answered", "It says figs.")
    assert started == ["builtin:file_write", "builtin:file_read"]
    words = [one.text for one in heard if isinstance(one, Words)]
    assert words == ["I look: ", "It says ", "figs."]
    assert [type(one) for one in heard if isinstance(one, Wanted | Made)] == [Wanted, Made] * 2
    assert isinstance(heard[-1], Ended)
    assert result.structured
    usage = result.structured["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (3, 33, 21)
    assert (usage["cost_usd"] > 0) == (provider != "anthropic")  # that name has no price


async def test_what_is_asked_is_the_whole_conversation_with_its_results(tmp_path: Path) -> None:
    server, _ = await answered(tmp_path, Says("", [WRITE]), Says("done"))

    first, second = server.asked
    assert first.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
    ]
    assert [one["role"] for one in second.messages] == ["system", "user", "assistant", "tool"]
    assert second.messages[-1]["tool_call_id"] == "call_1_0"
    assert "a.txt" in second.messages[-1]["content"]
    assert set(first.tools) >= {"file_read", "file_write", "system_time"}
    assert "shell_exec" not in first.tools


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_tools_of_the_providers_own_stay_off(tmp_path: Path, provider: str) -> None:
    server, _ = await answered(tmp_path, Says("hi"), provider=provider)
    tools = server.asked[0].body["tools"]
    assert {one.get("type", "plain") for one in tools} <= {"function", "plain", "custom"}


async def test_calls_of_one_step_are_all_made_and_answered_in_their_order(tmp_path: Path) -> None:
    reads = [Want(tool="memory_recall", arguments={"key": key}) for key in ("a", "b", "c")]
    server, result = await answered(tmp_path, Says("", reads), Says("three"))

    assert ended(result) == ("answered", "three")
    ids = [one["tool_call_id"] for one in server.asked[1].messages if one["role"] == "tool"]
    assert ids == ["call_1_0", "call_1_1", "call_1_2"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("wrong", ['{"path": ', "[1, 2]", "no JSON at all"])
async def test_arguments_that_nobody_can_read_are_answered_with_an_error(
    tmp_path: Path, provider: str, wrong: str
) -> None:
    script = (Says("", [Want(tool="file_read", arguments=wrong)]), Says("sorry"))
    server, result = await answered(tmp_path, *script, provider=provider)

    assert ended(result) == ("answered", "sorry")
    told = str(server.asked[1].messages[-1])
    assert "no JSON object" in told


async def test_a_tool_that_is_not_there_is_answered_with_an_error(tmp_path: Path) -> None:
    script = (Says("", [Want(tool="launch rockets!", arguments={})]), Says("so be it"))
    server, result = await answered(tmp_path, *script)

    assert ended(result) == ("answered", "so be it")
    assert "Unknown tool" in server.asked[1].messages[-1]["content"]
    assert server.asked[1].messages[-2]["tool_calls"][0]["function"]["name"] == "launch_rockets_"


@pytest.mark.parametrize("provider", MODELS)
async def test_an_answer_that_is_cut_off_says_so(tmp_path: Path, provider: str) -> None:
    _, result = await answered(tmp_path, Says("Once upon", stop="length"), provider=provider)
    ending, text = ended(result)
    assert ending == "length"
    assert text.startswith("Once upon\n\nI stopped: the answer is longer than max_tokens allows.")


@pytest.mark.parametrize("provider", MODELS)
async def test_a_refusal_is_one(tmp_path: Path, provider: str) -> None:
    _, result = await answered(tmp_path, Says("I will not.", stop="refusal"), provider=provider)
    assert ended(result) == ("rejected", "I will not.\n\nI do not do that.")
    assert result.is_error


@pytest.mark.parametrize("provider", MODELS)
async def test_thoughts_are_no_words(tmp_path: Path, provider: str) -> None:
    says = Says("Yes.", thinks="should I?")
    _, result = await answered(tmp_path, says, provider=provider)
    assert ended(result) == ("answered", "Yes.")


async def test_limits_of_the_manifest_reach_the_model(tmp_path: Path) -> None:
    more = "max_tokens = 77\ntemperature = 0.25\n"
    server, _ = await answered(tmp_path, Says("hi"), more=more)
    body = server.asked[0].body
    assert (body["max_completion_tokens"], body["temperature"]) == (77, 0.25)
    server, _ = await answered(tmp_path, Says("hi"), more=more, provider="anthropic")
    body = server.asked[0].body
    assert (body["max_tokens"], body["temperature"]) == (77, 0.25)


async def test_a_rate_limit_is_waited_for_as_long_as_it_says(tmp_path: Path) -> None:
    script = (Fails(429, "slow down", after="1"), Says("now"))
    server, result = await answered(tmp_path, *script)
    assert ended(result) == ("answered", "now")
    first, second = server.asked
    assert second.at - first.at >= 1


async def test_a_wait_longer_than_the_model_may_think_is_not_begun(tmp_path: Path) -> None:
    more = "\n[limits]\nmodel_timeout_secs = 20\n"
    server, result = await answered(tmp_path, Fails(429, "no", after="3600"), more=more)
    ending, text = ended(result)
    assert (ending, len(server.asked)) == ("failed", 1)
    assert text.startswith("I stopped: openai says that it was asked too often.")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_errors_of_the_server_pass(tmp_path: Path, provider: str) -> None:
    script = (Fails(500), Fails(503), Says("here"))
    server, result = await answered(tmp_path, *script, provider=provider)
    assert (ended(result), len(server.asked)) == (("answered", "here"), 3)


async def test_retries_are_bounded(tmp_path: Path) -> None:
    script = [Fails(500, f"secret thing {number}") for number in range(5)]
    server, result = await answered(tmp_path, *script, config="retries = 1")
    assert len(server.asked) == 2
    assert ended(result) == ("failed", "I stopped: openai has an error of its own.")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("broken", [Says("", [READ], dies=True), Says("", [READ], ends=True)])
async def test_a_stream_that_dies_before_a_word_is_asked_for_again(
    tmp_path: Path, provider: str, broken: Says
) -> None:
    server, result = await answered(tmp_path, broken, Says("whole"), provider=provider)
    assert (ended(result), len(server.asked)) == (("answered", "whole"), 2)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_stream_that_dies_after_words_ends_the_run_with_a_reason(
    tmp_path: Path, provider: str
) -> None:
    script = (Says(["Half ", "of"], dies=True), Says("never"))
    server, result = await answered(tmp_path, *script, provider=provider)
    ending, text = ended(result)
    assert (ending, len(server.asked)) == ("failed", 1)
    assert text.startswith("Half of\n\nI stopped: The answer broke off:")


@pytest.mark.parametrize(
    "garbage", [Garbage(), Garbage(b"{}", "application/json"), Garbage(b"\xff\x00", "text/plain")]
)
async def test_garbage_is_a_reason(tmp_path: Path, garbage: Garbage) -> None:
    _, result = await answered(tmp_path, garbage, garbage)
    assert ended(result) == ("failed", "I stopped: openai answered with what nobody understands.")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_who_cannot_answer_piece_by_piece_is_asked_for_the_whole(
    tmp_path: Path, provider: str
) -> None:
    script = [
        Says("", [WRITE], whole=True),
        Says("", [WRITE]),
        Says("done", whole=True),
        Says("done"),
    ]
    server, result = await answered(tmp_path, *script, provider=provider)
    assert (ended(result), len(server.asked)) == (("answered", "done"), 4)
    assert [bool(one.body.get("stream")) for one in server.asked] == [True, False] * 2


async def test_a_model_that_never_stops_calling_is_stopped(tmp_path: Path) -> None:
    def again(asked: Asked) -> Answer:
        number = len(asked.messages)
        return Says("", [Want(tool="memory_recall", arguments={"key": f"k{number}"})])

    thinker(tmp_path, more="\n[limits]\ntool_rounds = 3\n")
    with scripted(*[again] * 9) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app)

    assert (ended(result)[0], len(server.asked)) == ("steps", 4)


async def test_a_window_that_is_too_small_is_tried_once_with_less(tmp_path: Path) -> None:
    full = Fails(400, "too long", code="context_length_exceeded")
    thinker(tmp_path)
    script = (Says("one"), full, Says("two"), full, full)
    with scripted(*script) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            await ask(app, "first " * 400)
            fits = await ask(app, "second")
            fails = await ask(app, "third")

    assert ended(fits) == ("answered", "two")
    whole, less = server.asked[1:3]
    assert len(str(less.messages)) < len(str(whole.messages))
    assert less.messages[-1]["content"] == "second"
    ending, text = ended(fails)
    assert ending == "failed"
    assert text.startswith("I stopped: openai/gpt-4o-mini cannot read so much at once.")


async def test_the_key_goes_to_the_provider_and_nowhere_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    thinker(tmp_path)
    wrong = Fails(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    with scripted(wrong) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app)
            events = await app.events()

    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert ended(result)[1].startswith("I stopped: openai refused the key. Way out: another ")
    assert KEY not in f"{result}{events}{caplog.text}"
    assert "Incorrect API key provided: [key]" in caplog.text
