"""A server that does everything wrong harms nobody but itself."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from anyio import to_thread
from tests.sources.mcp.hostility import QUICK, gone, hostile, scene, until

from openfang.app.admin import Admin
from openfang.core.errors import CallTimedOut, InvalidArguments, PolicyViolation, SourceFailed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sources.mcp.hostility import Scene

pytestmark = pytest.mark.requirement("C3.1", "C3.7")
IMPATIENT = "timeout_secs = 0.5"


async def notes(node: Scene, method: str) -> list[Any]:
    """What the server was told by us."""
    found = (await node.call("seen")).structured["notes"]
    return [one["params"] for one in found if one["method"] == method]


# It hangs, stops and dies


@pytest.mark.requirement("C3.5")
async def test_a_server_that_hangs_is_given_up_and_told_so(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(more=IMPATIENT)) as node:
        await node.process()
        async with node.watched():
            error = await node.fails("hang")
        assert isinstance(error, CallTimedOut)
        assert "timeout_secs" in error.way_out
        calls = (await node.call("seen")).structured["calls"]
        cancelled = await notes(node, "notifications/cancelled")
        assert [one["requestId"] for one in cancelled] == [calls[1]]


async def test_a_server_that_is_stopped_is_begun_anew(tmp_path: Path) -> None:
    pace = replace(QUICK, probe=0.3, probe_limit=0.3)
    async with scene(tmp_path, hostile(more=IMPATIENT), pace=pace) as node:
        first = await node.process()
        async with node.watched():
            assert isinstance(await node.fails("stop"), CallTimedOut)
            await until(lambda: "3 times in a row" in node.bad.health.error)
            await node.well()
        assert await node.process() != first
        await gone([first])


@pytest.mark.parametrize(
    ("act", "arguments", "reason"),
    [
        ("end", {}, "It ended with exit code 7"),
        ("kill", {}, "It was ended by the signal SIGKILL"),
        ("kill", {"signal": int(signal.SIGSEGV)}, "It was ended by the signal SIGSEGV"),
    ],
)
async def test_a_death_fails_what_is_in_flight_at_once_and_it_comes_back(
    tmp_path: Path, act: str, arguments: dict[str, int], reason: str
) -> None:
    async with scene(tmp_path, hostile()) as node:
        first, failed = await node.process(), list[str]()

        async def wait() -> None:
            error = await node.fails("hang")
            assert isinstance(error, SourceFailed)
            failed.append(error.message)

        async with node.watched(), anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait)
            await until(lambda: node.servers.parts.pipeline.guards.slots.used("mcp:bad") == 3)
            began = anyio.current_time()
            failed.append((await node.fails(act, **arguments)).message)
            await until(lambda: len(failed) == 4)
            assert anyio.current_time() - began < 1
        assert all(reason in message for message in failed)
        await gone([first])
        await node.well()


async def test_a_server_that_cannot_start_says_why_and_is_back_when_it_can(tmp_path: Path) -> None:
    memory = f"memory={tmp_path / 'starts'}"
    async with scene(tmp_path / "home", hostile(memory, "fail_starts=2")) as node:
        assert node.bad.health.error == "It ended with exit code 5"
        assert node.servers.health() == {"bad": "unhealthy", "good": "healthy"}
        assert node.servers.said["bad"][0] == "I will not start."
        async with node.watched():
            await until(lambda: node.bad.connected)
            await node.well()


@pytest.mark.requirement("C3.3")
async def test_a_server_that_dies_of_the_probe_is_not_asked_again(tmp_path: Path) -> None:
    memory = tmp_path / "starts"
    async with scene(tmp_path / "home", hostile(f"memory={memory}", "probe=die")) as node:
        await node.well()
        assert await to_thread.run_sync(memory.read_text) == "xx"


# It floods


LINES = (
    b"a line of words\n",
    b"\n",
    b"\x1b[31m\x00\xff\xfe\x9d\r\n\xe2\x80\xae",
    b"without an end ",
)


@pytest.mark.requirement("C3.8")
async def test_a_flood_on_standard_error_is_thinned(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node:
        for piece in LINES:
            async with node.watched():
                answer = await node.call("stderr", hex=piece.hex(), megabytes=64)
            assert answer.text == "written"
            said = node.servers.said.get("bad", ())
            assert len(said) <= 200
            assert all(len(line) < 5000 and line.isprintable() for line in said)
        await node.well()


NOISE = (
    *((b"\n", 16_000_000), (b"noise\n", 4_000_000), (b"{\n", 1_000_000)),
    *((b"\x00\xff\n", 1_000_000), (b'{"a":1}\n', 500_000), (b"[7]\n", 200_000)),
    (b"{aaaaaaaaaaaaa\n", 500_000),
)


async def test_noise_between_messages_is_passed_over(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile("start=html")) as node:
        for piece, size in NOISE:
            async with node.watched():
                answer = await node.call("stdout", hex=piece.hex(), bytes=size)
            assert answer.text == "written"
        assert "[stdout] <!DOCTYPE html>" in node.servers.said["bad"]
        await node.well()


async def test_a_line_over_the_limit_ends_the_connection_and_one_within_is_read(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, hostile()) as node:
        async with node.watched():
            error = await node.fails("big", bytes=64_000_000)
        assert "48000000 bytes" in error.message
        await node.well()
        async with node.watched():
            result = await node.call("big", bytes=32_000_000)
        assert len(result.text) < 51_000


async def test_words_for_people_are_thinned_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "openfang.mcp")
    async with scene(tmp_path, hostile()) as node, node.watched():
        assert (await node.call("babble", times=10_000)).text == "babbled"
    said = [record for record in caplog.records if "bad says" in record.getMessage()]
    assert 0 < len(said) < 5_000
    assert all(len(record.getMessage()) < 5_000 for record in said)


# It talks when it should not


async def test_answers_that_belong_to_nobody_are_dropped(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node, node.watched():
        assert (await node.call("twice")).text == "first"
        assert (await node.call("others")).text == "as a string"
        assert (await node.call("batch")).text == "in a batch"
        assert (await node.call("drip")).text == "drip"
        assert (await node.call("echo", text="on")).text == "on"


async def test_ten_thousand_requests_of_its_own_are_no_burden(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node, node.watched():
        replies = 0
        for method in ("ping", "sampling/createMessage", "roots/list", "no/such"):
            assert (await node.call("ask", method=method, times=10_000)).text == "asked"
            before, replies = replies, (await node.call("seen")).structured["replies"]
            assert before < replies <= 40_000


@pytest.mark.requirement("C3.6")
async def test_a_storm_of_changes_is_answered_by_one_look(tmp_path: Path) -> None:
    pace = replace(QUICK, breath=1.0)
    async with scene(tmp_path, hostile(), pace=pace) as node:
        async with node.watched():
            for _ in range(5):
                assert (await node.call("storm", times=2_000)).text == "stormed"
        began, since = anyio.current_time(), node.bad._since
        lists = (await node.call("seen")).structured["lists"]
        assert lists <= 2 + (began - since) / pace.breath


@pytest.mark.requirement("C3.6", "C1.3")
async def test_a_new_list_each_time_is_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfang.sources.mcp.source._MOST_NAMES", 330)
    async with scene(tmp_path, hostile("tools=fresh")) as node:
        async with node.watched():
            await until(lambda: any("330 other tools" in why for why in node.bad.rejected.values()))
        names = [
            name for name in node.app.parts.registry.names.names if name.startswith("mcp:bad:")
        ]
        assert len(names) == 330
        assert (await node.call("echo", text="still there")).text == "still there"


@pytest.mark.requirement("C3.5")
async def test_progress_without_end_ends_at_the_absolute_limit(tmp_path: Path) -> None:
    config = "[tools]\ntimeout_secs = 2"
    async with scene(tmp_path, hostile(more="timeout_secs = 1"), config=config) as node:
        async with node.watched():
            assert (await node.call("progress", times=5_000)).text == "progressed"
            # Longer than the server's own limit, because it tells of progress all the time.
            assert (await node.call("forever", seconds=1.5)).text == "at last"
            began = anyio.current_time()
            error = await node.fails("forever")
        assert isinstance(error, CallTimedOut)
        assert "within 2 s" in error.message
        assert anyio.current_time() - began < 20


# It answers in the wrong shape

ANSWERED = {
    "no list": ('[no list of parts, but:] "words"', None),
    "a number": ("[no list of parts, but:] 7", None),
    "null": ("", None),
    "missing": ("", None),
    "parts": ("7\nnull\nwords\n[1]", None),
    "flags": ("", [1]),
    "utf-8": ("caf\ufffd \ufffd\ufffd", None),
}
REFUSED = ("result list", "result null", "result text", "nothing", "nan", "infinity")
UNREADABLE = ("deep", "surrogate", "numbers", "objects", "half", "huge")


@pytest.mark.requirement("C3.4")
async def test_an_answer_in_any_shape_is_an_answer_or_a_failure(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(), config="[guard]\nbreaker_secs = 0.01") as node:
        async with node.watched():
            for kind, (words, structured) in ANSWERED.items():
                result = await node.call("wrong", kind=kind)
                assert (result.text, result.structured) == (words, structured), kind
            for kind in (*REFUSED, *UNREADABLE):
                error = await node.fails("wrong", kind=kind)
                assert isinstance(error, SourceFailed), kind
                assert "answered wrongly" in error.message, kind
                assert (await node.call("echo", text=kind)).text == kind
            for kind in ("error text", "error shape"):
                assert (await node.call("wrong", kind=kind)).is_error
        endings = [e for e in await node.app.events() if e.event_type == "tool_invocation_end"]
        starts = [e for e in await node.app.events() if e.event_type == "tool_invocation_start"]
        assert len(endings) == len(starts)


# It lists nonsense


@pytest.mark.requirement("C3.6", "C2.6")
async def test_a_list_that_cannot_be_is_that_servers_matter(tmp_path: Path) -> None:
    kinds = ("many", "endless", "no_list", "names", "schemas", "long_words", "circle")
    servers = [hostile(f"tools={kind}", name=f"bad-{kind}") for kind in kinds]
    async with scene(tmp_path, *servers, settle=False) as node:
        node.servers.want()
        await node.well("good")
        async with node.watched() as seen:
            await node.servers.settled()
        assert seen.calls > 0
        found = {kind: node.servers.find(f"bad-{kind}") for kind in kinds}
        errors = {kind: source.health.error for kind, source in found.items()}
        assert "20000 entries" in errors["many"]
        assert "100 pages" in errors["endless"]
        assert "no list of tools" in errors["no_list"]
        for kind in ("names", "schemas", "long_words", "circle"):
            assert errors[kind] == "", kind
            await node.well(f"bad-{kind}")


@pytest.mark.requirement("C1.2", "C1.3", "C3.4")
async def test_names_are_taken_as_they_are_or_left_out(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile("tools=names")) as node:
        ids = {tool.id for tool in node.bad.tools()}
        assert {"mcp:bad:echo", "mcp:bad:../../etc/passwd", "mcp:bad:mcp:good:echo"} <= ids
        assert all(tool.isprintable() and len(tool) < 300 for tool in ids)
        shown = node.bad.rejected
        assert all(name.isprintable() and len(name) < 600 for name in shown)
        assert "4000 characters" in shown["x" * 100 + "..."]
        assert "control characters" in shown["\\x1b[31mred"]
        # Nobody's name was taken: what is called so is still the other's.
        assert (await node.app.call("mcp:good:echo", text="mine")).text == "mine"
        builtin = node.app.parts.registry.find("file_read")
        assert builtin
        assert builtin.id == "builtin:file_read"
        names = [tool.wire_name for tool in node.app.parts.registry.snapshot.tools.values()]
        assert len(names) == len(set(names))
        assert all(len(name) <= 64 for name in names)


@pytest.mark.requirement("C7.5")
async def test_a_schema_that_cannot_be_refuses_calls_of_its_tool_only(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile("tools=schemas")) as node, node.watched():
        for name in ("deep", "list"):
            assert f"s_{name}" in node.bad.rejected
        for name in ("remote", "file", "type", "large"):
            with pytest.raises(InvalidArguments) as caught:
                await node.call(f"s_{name}", text="x")
            assert caught.value.rule == "schema_broken", name
        for name in ("loop", "ring"):
            with pytest.raises(InvalidArguments):
                await node.call(f"s_{name}", text="x")
        with pytest.raises(InvalidArguments):
            await node.call("s_pattern", text="a" * 50_000 + "!")


@pytest.mark.requirement("C3.6")
async def test_a_refresh_that_fails_keeps_the_tools(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node:
        await node.call("refuse_list")
        await until(lambda: node.bad.health.failures)
        assert node.servers.health()["bad"] == "degraded"
        assert node.bad.health.error.startswith("its tools: no list today!!!")
        assert len(node.bad.health.error) < 600
        assert node.bad.health.error.isprintable()
        assert "no list today" in await node.bad.renew()
        assert "no list today" in await node.bad.renew()
        assert node.servers.health()["bad"] == "unhealthy"
        assert (await node.call("echo", text="kept")).text == "kept"
        await node.call("refuse_list", on=False)
        await until(lambda: node.servers.health()["bad"] == "healthy")


@pytest.mark.requirement("C11.3")
async def test_a_tool_that_changes_its_words_is_held_until_accepted(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node:
        await node.call("redescribe", text="Says it, and sends your files to me.")
        await until(lambda: "mcp:bad:echo" in node.app.parts.registry.snapshot.held)
        with pytest.raises(PolicyViolation) as caught:
            await node.call("echo", text="x")
        assert caught.value.rule == "tool_held"
        assert (await node.call("pid")).text
        await Admin(node.app.parts, node.app.caller).accept_tool("mcp:bad:echo")
        assert (await node.call("echo", text="x")).text == "x"


@pytest.mark.requirement("C1.3")
async def test_a_tool_renamed_onto_anothers_name_gets_a_suffix(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(), hostile(name="bad-x")) as node:
        registry = node.app.parts.registry
        owner = registry.find("mcp_bad_x_echo")
        assert owner
        assert owner.id == "mcp:bad-x:echo"
        await node.call("rename", text="x_echo")
        await until(lambda: registry.find("mcp:bad:x_echo"))
        late = registry.find("mcp:bad:x_echo")
        assert late
        assert late.wire_name.startswith("mcp_bad_x_echo_")
        assert registry.find("mcp_bad_x_echo") == owner


# It holds on to pipes and processes


@pytest.mark.parametrize(("fd", "reason"), [(1, "standard output"), (0, "standard input")])
async def test_a_pipe_that_it_closes_ends_the_connection(
    tmp_path: Path, fd: int, reason: str
) -> None:
    async with scene(tmp_path, hostile(more="timeout_secs = 2")) as node:
        await node.process()
        async with node.watched():
            error = await node.fails("close", fd=fd)
            if isinstance(error, CallTimedOut):
                error = await node.fails("echo", text="x")  # only who writes notices
            assert reason in error.message
            await node.well()


@pytest.mark.requirement("C3.8")
async def test_nothing_is_left_of_a_server_that_ignores_every_word(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile("stubborn")) as node:
        await node.process()
        async with node.watched():
            for _ in range(2):
                forked = (await node.call("fork", times=10)).structured["pids"]
                node.pids.update(forked)
            dead = (await node.call("fork", times=3, die=True)).structured["pids"]
            # They hold its pipes; that it has died is heard all the same.
            await until(lambda: not node.bad.connected)
            node.pids.update(dead)
            await node.well()
            await gone(node.pids)
        await node.process()


async def test_a_server_that_never_reads_is_given_up_and_takes_no_memory(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(more=IMPATIENT)) as node:
        large = "x" * 900_000
        async with node.watched():
            async with anyio.create_task_group() as group:
                group.start_soon(node.fails, "freeze")
                for _ in range(40):
                    group.start_soon(fails_soon, node, large)
            child = node.bad._connection
            assert child
        assert "bad" in (await node.fails("echo", text="x")).message


async def fails_soon(node: Scene, words: str) -> None:
    await node.fails("echo", text=words)


# It greets in no way that is known

GREETED_WITHIN = 10.0
HANDSHAKES = {
    "version": "1999-12-31",
    "no text": "no revision known here",
    "error": "go away",
    "null": "The result is null",
    "list": "The result is a list",
    "nothing": f"no connection in {GREETED_WITHIN:g} s",
    "html": f"no connection in {GREETED_WITHIN:g} s",
}


@pytest.mark.requirement("C3.2", "C3.3", "C2.6")
async def test_a_bad_handshake_is_that_servers_matter(tmp_path: Path) -> None:
    names = {kind: f"bad-{kind.replace(' ', '-')}" for kind in (*HANDSHAKES, "types", "large")}
    servers = [hostile(f"greeting={kind}", name=name) for kind, name in names.items()]
    silent = hostile("start=silent", name="bad-silent")
    pace = replace(QUICK, connect=GREETED_WITHIN)
    async with scene(tmp_path, *servers, silent, pace=pace, settle=False) as node:
        node.servers.want()
        await node.well("good")  # nobody waits for those that are slow
        async with node.watched():
            await node.servers.settled()
        for kind, reason in HANDSHAKES.items():
            health = node.servers.find(names[kind]).health
            assert (health.word, reason in health.error) == ("unhealthy", True), (kind, health)
        for kind in ("types", "large"):
            await node.well(names[kind])
        info = node.servers.find(names["large"]).server_info
        assert len(orjson.dumps(info)) < 1000
