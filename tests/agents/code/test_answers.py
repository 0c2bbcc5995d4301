"""What a code agent is handed, what it can say, and what becomes of what it returns."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from tests.agents.code.stage import logged, stage

from openfang.core.agents import (
    Artifact,
    Ended,
    Ending,
    Made,
    Message,
    Speaker,
    Wanted,
    Wish,
    Words,
)
from openfang.core.errors import CallTimedOut, PolicyViolation, SourceFailed
from openfang.core.progress import Progress
from openfang.core.results import error_result, text_result

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.results import Result

pytestmark = [pytest.mark.requirement("C6.1", "C16.1"), pytest.mark.needs("bwrap")]


async def test_a_returned_string_is_the_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def run(message, context):\n    return message.upper()")
        assert await on.say(spec, "hi") == Ended(answer="HI")
        assert on.heard == [Ended(answer="HI")]


async def test_what_a_function_returns_becomes_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            RETURNED = {
                "table": {"a": [1, None], "ü": True},
                "nothing": None,
                "number": 42,
                "broken": "half \\ud800 a character",
                "other": ValueError("in words"),
            }

            async def run(message, context):
                return RETURNED[message]
            """)
        answers = {
            "table": '{"a": [1, null], "ü": true}',
            "nothing": "",
            "number": "42",
            "broken": "half ? a character",
            "other": "in words",
        }
        assert {word: await on.answer(spec, word) for word in answers} == answers


@pytest.mark.parametrize(
    "source",
    [
        "async def run(message): return message",
        "def run(message, context): return message",
        "async def run(message, context):\n    yield message[:1]\n    yield message[1:]",
        "async def late(text): return text\ndef run(message): return late(message)",
        "class Agent:\n    async def __call__(self, message): return message\nrun = Agent()",
    ],
)
async def test_every_kind_of_function_can_answer(tmp_path: Path, source: str) -> None:
    async with stage(tmp_path) as on:
        assert await on.answer(on.agent(source), "hi") == "hi"


async def test_another_function_can_be_named(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def other(message): return 'other'", function="other")
        assert await on.answer(spec) == "other"


async def test_what_is_streamed_is_told_at_once_and_is_the_answer_if_there_is_no_other(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                context.stream("one ")
                context.progress(1, 2, "half")
                context.stream("two")
                """)
        ended = await on.say(spec)
        assert ended == Ended(answer="one two")
        assert on.heard == [
            Words("one "),
            Progress(progress=1, total=2, message="half"),
            Words("two"),
            ended,
        ]


PLAIN = """
def run(message, context):
    found = context.call("echo", {"text": message, "n": 1})
    return {"text": found.text, "structured": found.structured, "is_error": found.is_error}
"""


@pytest.mark.parametrize(
    "source",
    [PLAIN, PLAIN.replace("def run", "async def run").replace("context.c", "await context.c")],
)
async def test_a_call_brings_back_text_and_structure(tmp_path: Path, source: str) -> None:
    async with stage(tmp_path) as on:
        ended = await on.say(on.agent(source), "hi")
        assert ended.answer == (
            '{"text": "hi", "structured": {"text": "hi", "n": 1}, "is_error": false}'
        )
        wish = Wish(id="run-1.1", tool="echo", arguments={"text": "hi", "n": 1})
        assert on.heard == [Wanted(wish), Made(wish=wish, outcome="ok", text="hi"), ended]


async def test_a_refusal_can_be_caught_and_says_why(tmp_path: Path) -> None:
    async def refuse(wish: Wish) -> Result:
        del wish
        raise PolicyViolation("Tool is disabled", rule="enabled", way_out="openfang tools enable")

    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                try:
                    await context.call("shell_exec", {"command": "id"})
                except context.Refused as refusal:
                    return [refusal.reason, refusal.way_out, refusal.code]
            """)
        ended = await on.say(spec, call=refuse)
        assert ended.answer == '["Tool is disabled", "openfang tools enable", "enabled"]'
        assert [one.outcome for one in on.heard if isinstance(one, Made)] == ["refused"]


async def test_a_refusal_that_nobody_catches_fails_the_run_with_its_reason(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def run(message, context): await context.call('nothing')")
        with pytest.raises(SourceFailed, match="Refused: Unknown tool: nothing"):
            await on.say(spec)


async def test_a_call_that_failed_can_be_caught_apart_from_a_refusal(tmp_path: Path) -> None:
    async def late(wish: Wish) -> Result:
        raise CallTimedOut(f"{wish.tool} took too long")

    async with stage(tmp_path) as on:
        spec = on.agent("""
            def run(message, context):
                try:
                    context.call("slow")
                except context.Failed as failure:
                    return failure.code + ": " + failure.reason
            """)
        assert (await on.say(spec, call=late)).answer == "timeout: slow took too long"


async def test_the_errors_are_the_ones_that_can_be_imported(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            from openfang.agents.code.context import Context, Refused

            async def run(message: str, context: Context) -> str:
                try:
                    await context.call("nothing")
                except Refused as refusal:
                    return refusal.code
                return "it ran"
            """)
        assert await on.answer(spec) == "unknown_tool"


async def test_memory_is_two_tools_like_any_other(tmp_path: Path) -> None:
    kept: dict[str, Any] = {}

    async def memory(wish: Wish) -> Result:
        key = wish.arguments["key"]
        if wish.tool == "memory_store":
            kept[key] = wish.arguments["value"]
            return text_result(f"Remembered {key}.")
        if key in kept:
            return text_result("...", structured={"value": kept[key]})
        return error_result(f"Nothing is remembered under {key}.")

    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                seen = await context.memory.get("seen", [])
                await context.memory.set("seen", [*seen, message])
                return seen
            """)
        answers = [(await on.say(spec, word, call=memory)).answer for word in ("a", "b", "c")]
        assert answers == ["[]", '["a"]', '["a", "b"]']
        assert [one.wish.tool for one in on.heard if isinstance(one, Wanted)] == [
            *("memory_recall", "memory_store")
        ] * 3


async def test_what_was_made_comes_with_the_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                context.artifact("note.md", "# Hi", mime="text/markdown")
                context.artifact("dot.bin", b"\\x00\\xff")
                context.artifact("table", {"rows": [1, 2]})
                context.artifact("both", parts=[{"type": "text", "text": "x"}])
                return "made"
            """)
        ended = await on.say(spec)
        data = base64.b64encode(b"\x00\xff").decode()
        mime = "application/octet-stream"
        assert ended.artifacts == (
            Artifact(
                name="note.md",
                parts=({"type": "text", "text": "# Hi", "mime_type": "text/markdown"},),
            ),
            Artifact(
                name="dot.bin",
                parts=({"type": "file", "name": "dot.bin", "mime_type": mime, "data": data},),
            ),
            Artifact(name="table", parts=({"type": "data", "data": {"rows": [1, 2]}},)),
            Artifact(name="both", parts=({"type": "text", "text": "x"},)),
        )


async def test_a_rejection_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                try:
                    context.reject("I only count.")
                except Exception:
                    return "it went on"
            """)
        assert await on.say(spec) == Ended(answer="I only count.", ending=Ending.REJECTED)


async def test_a_question_says_that_nobody_can_be_asked(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                try:
                    return await context.ask("Really?")
                except context.Refused as refusal:
                    return refusal.code
            """)
        assert await on.answer(spec) == "nobody_to_ask"


async def test_a_question_reaches_whoever_answers_for_the_person(tmp_path: Path) -> None:
    async def person(question: str) -> str:
        return f"{question} Yes."

    async with stage(tmp_path) as on:
        spec = on.agent("def run(message, context): return context.ask('Really?')")
        assert (await on.say(spec, ask=person)).answer == "Really? Yes."


async def test_what_came_along_with_the_message_is_there(tmp_path: Path) -> None:
    wish = Wish(id="w", tool="echo", arguments={"text": "x"})
    history = [
        Message(speaker=Speaker.USER, text="before"),
        Message(speaker=Speaker.AGENT, wishes=(wish,)),
        Message(speaker=Speaker.TOOL, text="x", answers="w"),
    ]
    async with stage(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                turns = [(one["role"], one["text"], len(one["calls"])) for one in context.history]
                return [context.message_id, context.session, context.parts, context.metadata, turns]
            """)
        ended = await on.say(
            spec,
            message_id="m1",
            parts=[{"type": "data", "data": {"n": 1}}],
            metadata={"k": "v"},
            history=history,
        )
        assert ended.answer == (
            '["m1", "s1", [{"type": "data", "data": {"n": 1}}], {"k": "v"}, '
            '[["user", "before", 0], ["agent", "", 1], ["tool", "x", 0]]]'
        )


async def test_what_it_prints_and_logs_goes_to_the_log_under_its_name(tmp_path: Path) -> None:
    words = ("printed", "shouted", "written", "echoed", "logged")
    with logged() as log:
        async with stage(tmp_path) as on:
            spec = on.agent("""
                import os, subprocess, sys

                async def run(message, context):
                    print("printed")
                    print("shouted", file=sys.stderr)
                    os.write(1, b"written\\n")
                    subprocess.run(["/bin/echo", "echoed"], check=True)
                    context.log("logged")
                    return repr(sys.stdin.read())
                """)
            assert await on.answer(spec) == "''"
            for word in words:
                await log.says(f"tester: {word}")
    assert len(log.lines) == len(words)
