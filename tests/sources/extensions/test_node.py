"""An extension in Node: exported functions in a file, by the same protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.sources.extensions.stage import logged, stage

from openfang.core.calls import Grants
from openfang.core.errors import CallTimedOut, SourceFailed
from openfang.core.extensions import Capability, Permissions
from openfang.core.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.progress import Told

pytestmark = [pytest.mark.requirement("C6.3", "C16.1"), pytest.mark.needs("bwrap")]


async def test_its_functions_answer_in_words_json_and_parts(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.put(
            """
            export default {
              greet: ({ name }) => `Hi ${name}`,
              async add({ a, b }, context) {
                console.log("noise");
                return { sum: a + b, unit: context.config.unit };
              },
              parts: (args, context) => {
                context.artifact("a.txt", "made");
                return context.result([{ type: "text", text: "one" }], { n: 1 }, true);
              },
              fails: () => { throw new TypeError("no such city"); },
            };
            export function named() { return [1, 2]; }
            """,
            *("greet", "add", "parts", "fails", "named"),
            kind="node",
            config={"unit": "EUR"},
        )
        assert await on.text("greet", name="Ann") == "Hi Ann"
        added = await on.call("add", a=1, b=2)
        assert added.structured == {"sum": 3, "unit": "EUR"}
        parts = await on.call("parts")
        assert (parts.is_error, parts.structured) == (True, {"n": 1})
        assert [part.get("text") for part in parts.content] == ["one", "made"]
        failed = await on.call("fails")
        assert (failed.is_error, failed.text) == (True, "TypeError: no such city")
        assert await on.text("named") == "[1,2]"
        assert on.state().how == "running"


async def test_it_calls_back_remembers_logs_and_says_how_far_it_is(tmp_path: Path) -> None:
    heard: list[Told] = []
    async with stage(tmp_path) as on:
        await on.put(
            """
            export async function work(args, context) {
              context.log("at it");
              context.progress(1, 2, "half");
              await context.memory.set("seen", { times: 3 });
              const time = await context.call("system_time");
              let why = "";
              try { await context.call("file_list"); } catch (error) { why = error.name; }
              return { seen: await context.memory.get("seen"), ok: !time.isError, why };
            }
            """,
            "work",
            kind="node",
            permissions=Permissions(
                grants=Grants(
                    tools=("builtin:system_time",), memory_read=("*",), memory_write=("*",)
                )
            ),
        )
        call = on.app.make("ext:tester:work", {}, progress=heard.append)
        with logged() as log:
            result = await on.app.invoke(call)
            await log.says("tester: at it")
        assert result.structured == {"seen": {"times": 3}, "ok": True, "why": "Refused"}
        assert heard == [Progress(progress=1, total=2, message="half")]


async def test_many_calls_share_one_process_and_a_cancelled_one_is_told(tmp_path: Path) -> None:
    slow = Capability(name="slow", input_schema={"type": "object"}, timeout=0.5)
    async with stage(tmp_path) as on:
        await on.put(
            """
            import { setTimeout as rest } from "node:timers/promises";
            let stopped = 0;
            export async function slow(args, context) {
              try { await rest(60_000, null, { signal: context.signal }); }
              finally { stopped += 1; }
            }
            export const count = async ({ n }) => { await rest(5); return `${n} ${process.pid}`; };
            export const stops = () => `${stopped}`;
            """,
            *(slow, "count", "stops"),
            kind="node",
        )
        answers: list[str] = []

        async def ask(number: int) -> None:
            answers.append(await on.text("count", n=number))

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(ask, number)
        numbers, pids = zip(*(one.split() for one in answers), strict=True)
        assert sorted(map(int, numbers)) == list(range(30))
        assert len(set(pids)) == 1
        with pytest.raises(CallTimedOut):
            await on.call("slow")
        assert await on.text("stops") == "1"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("export const other = () => 1;", "there is no function for work"),
        (
            "export const work = () => 1; export default { work: () => 2 };",
            "there are two functions for work",
        ),
        ("export const work = ;", "SyntaxError"),
    ],
)
async def test_what_cannot_be_loaded_says_why(tmp_path: Path, source: str, reason: str) -> None:
    async with stage(tmp_path) as on:
        await on.put(source, "work", kind="node")
        with pytest.raises(SourceFailed) as caught:
            await on.call("work")
        assert reason in caught.value.message
        assert on.state().how == "failed"
        assert reason in on.state().reason


async def test_without_node_it_is_failed_and_says_what_helps(tmp_path: Path) -> None:
    async with stage(tmp_path, path=str(tmp_path)) as on:
        with logged() as log:
            await on.put("export const work = () => 1;", "work", kind="node")
            await log.says("cannot run")
        state = on.state()
        assert (state.how, state.reason) == ("failed", "Node.js was not found.")
        assert "node --version" in state.way_out
        with pytest.raises(SourceFailed) as caught:
            await on.call("work")
        assert caught.value.message == "Node.js was not found."


async def test_what_its_processes_hold_is_bounded(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.put(
            """
            const kept = [];
            export async function hoard() {
              for (;;) {
                kept.push(Buffer.alloc(8 << 20, 1));
                await new Promise((go) => setTimeout(go, 5));
              }
            }
            export const work = () => "here";
            """,
            *("hoard", "work"),
            kind="node",
            runtime={"memory_bytes": 128 << 20},
        )
        await on.put("export const work = () => 'good';", "work", kind="node", name="other")
        with pytest.raises(SourceFailed) as caught:
            await on.call("hoard")
        assert "held more than 128 MB" in caught.value.message
        assert await on.text("work", "other") == "good"
        assert await on.text("work") == "here"
        assert on.state().restarts == 1
