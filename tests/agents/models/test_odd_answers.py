"""Answers that no model should give: halves of characters, numbers out of bounds, no end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.agents.models.minds import settings, thinker, thinking
from tests.agents.models.scripted import Says, Want, scripted
from tests.agents.models.test_steps import MODELS, answered, ask, ended

from openfang.agents.models.characters import MOST
from openfang.core.agents import Ended, Words

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.progress import Told

pytestmark = [
    pytest.mark.requirement("C6.4", "C6.5"),
    # What a library says of itself when it is first compiled.
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning"),
]


async def test_a_character_that_came_in_two_halves_is_whole_again(tmp_path: Path) -> None:
    thinker(tmp_path)
    heard: list[Told] = []
    with scripted(Says(("Yes \ud83d", "\ude00 indeed", " \ud83d"))) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app, heard=heard)
    assert ended(result) == ("answered", "Yes 😀 indeed �")
    assert "".join(one.text for one in heard if isinstance(one, Words)) == "Yes 😀 indeed �"


@pytest.mark.parametrize("value", ["1" + "0" * 30, '"\\ud83d"'])
async def test_arguments_that_cannot_be_written_down_are_answered_with_an_error(
    tmp_path: Path, value: str
) -> None:
    written = (
        f'<tool_call>{{"name": "memory_store", "arguments": {{"key": "a", "value": {value}}}}}'
        "</tool_call>"
    )
    server, result = await answered(tmp_path, Says(written), Says("I see."))
    assert ended(result) == ("answered", "I see.")
    assert "not made" in server.asked[-1].messages[-1]["content"]


async def test_a_provider_that_counts_wrong_breaks_no_run(tmp_path: Path) -> None:
    _, result = await answered(tmp_path, Says("Much.", tokens=(10**25, 10**25)))
    assert ended(result) == ("answered", "Much.")


@pytest.mark.parametrize("provider", MODELS)
async def test_what_a_provider_does_not_count_is_counted_by_its_length(
    tmp_path: Path, provider: str
) -> None:
    _, result = await answered(tmp_path, Says("x" * 400, tokens=(0, 0)), provider=provider)
    assert result.structured
    usage = result.structured["usage"]
    assert usage["output_tokens"] == 100
    assert usage["input_tokens"] > 0


async def test_what_is_not_counted_uses_up_the_budget_all_the_same(tmp_path: Path) -> None:
    thinker(tmp_path, more="[resources]\nmax_llm_tokens_per_hour = 100\n")
    with scripted(*[Says("x" * 400, tokens=(0, 0))] * 3) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            await ask(app)
            assert ended(await ask(app))[0] == "tokens"


async def test_a_model_that_does_not_stop_speaking_is_stopped(tmp_path: Path) -> None:
    thinker(tmp_path)
    heard: list[Told] = []
    pieces = ["word " * 10_000] * (3 * MOST // 50_000)
    with scripted(Says(pieces)) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app, heard=heard)
    (end,) = (one for one in heard if isinstance(one, Ended))
    assert result.is_error
    assert f"openai does not come to an end: it said {MOST} characters." in end.why
    assert sum(len(one.text) for one in heard if isinstance(one, Words)) < 2 * MOST


async def test_a_call_with_half_a_character_in_its_name_is_answered(tmp_path: Path) -> None:
    _, result = await answered(tmp_path, Says(wants=[Want(tool="to\ud83dol")]), Says("No such."))
    assert ended(result) == ("answered", "No such.")
