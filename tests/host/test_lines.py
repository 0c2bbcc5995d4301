"""Children that speak in lines of JSON: fast, tolerant of noise, and gone when they should be."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import alive

from openfang.host.chatter import LINES_A_SECOND, LONGEST_LINE, Chatter
from openfang.host.lines import NOISE_SAID, Gone, Lines, open_lines
from openfang.host.process import Launch, LaunchFailed
from openfang.protocols.mcp.messages import Malformed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.requirement("C3.1", "C3.7", "C3.8")


class Ear:
    """Keeps what it hears, and can be waited on."""

    def __init__(self) -> None:
        self.messages: list[object] = []
        self.lines: list[str] = []
        self.reason = ""
        self._news = anyio.Event()

    def heard(self, message: object) -> None:
        self.messages.append(message)
        self._wake()

    def complained(self, line: str) -> None:
        self.lines.append(line)
        self._wake()

    def gone(self, reason: str) -> None:
        assert not self.reason
        self.reason = reason
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def messages_are(self, count: int) -> list[object]:
        with anyio.fail_after(20):
            while len(self.messages) < count and not self.reason:
                await self._news.wait()
        return self.messages

    async def end(self) -> str:
        with anyio.fail_after(20):
            while not self.reason:
                await self._news.wait()
        return self.reason

    async def lines_are(self, count: int) -> list[str]:
        with anyio.fail_after(20):
            while len(self.lines) < count:
                await self._news.wait()
        return self.lines


def script(source: str, **environment: str) -> Launch:
    return Launch(
        argv=(sys.executable, "-I", "-S", "-c", f"import os, sys, time, signal\n{source}"),
        cwd=Path("/"),
        environment={"PATH": "/usr/bin:/bin", **environment},
    )


ECHO = "for line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"


@asynccontextmanager
async def running(launch: Launch, limit: int = 48_000_000) -> AsyncGenerator[tuple[Lines, Ear]]:
    ear = Ear()
    async with open_lines(launch, ear, limit=limit) as child:
        yield child, ear


async def send_many(child: Lines, count: int) -> None:
    for _ in range(count):
        await child.send(b"x" * 100_000)


async def test_lines_go_there_and_back_in_order() -> None:
    async with running(script(ECHO)) as (child, ear):
        for index in range(500):
            await child.send(b'{"n":%d}' % index)
        assert await ear.messages_are(500) == [{"n": index} for index in range(500)]


async def test_a_line_of_32_megabytes_is_read_in_linear_time() -> None:
    source = "sys.stdout.buffer.write(b'{\"a\":\"' + b'x' * 32_000_000 + b'\"}\\n')"
    async with running(script(f"sys.stdin.readline()\n{source}")) as (child, ear):
        began = time.process_time()
        await child.send(b"go")
        (message,) = await ear.messages_are(1)
        took = time.process_time() - began
    assert isinstance(message, dict)
    assert len(str(message)) > 32_000_000  # pyright: ignore[reportUnknownArgumentType] - any JSON
    assert took < 10


async def test_a_large_line_is_sent_whole_to_a_child_that_reads_slowly() -> None:
    source = "time.sleep(0.2)\nline = sys.stdin.buffer.readline()\nprint('[%d]' % len(line))"
    async with running(script(source)) as (child, ear):
        await child.send(b"x" * 5_000_000)
        assert await ear.messages_are(1) == [[5_000_001]]


async def test_who_writes_more_than_the_child_reads_waits() -> None:
    source = "time.sleep(0.3)\nprint('[%d]' % sum(map(len, sys.stdin.buffer)), flush=True)"
    async with running(script(source)) as (child, ear):
        with anyio.move_on_after(0.1) as early:
            await send_many(child, 40)
        assert early.cancelled_caught
        assert child.crowded is False
        del ear


async def test_noise_is_passed_over_counted_and_told() -> None:
    noise = b'hello\n\n42\n"text"\nnull\n{broken\n\xff\xfe\n\r\n{}\r\n[1]\n'
    source = f"sys.stdout.buffer.write({noise!r})\nsys.stdout.flush()\ntime.sleep(20)"
    async with running(script(source)) as (child, ear):
        assert await ear.messages_are(2) == [{}, [1]]
        assert child.noise == 6
        assert ear.lines[0] == "[stdout] hello"
        assert len(ear.lines) == 6


async def test_of_endless_noise_only_the_beginning_is_told() -> None:
    source = "for n in range(1000): print('noise', n)\nprint('{}')"
    async with running(script(source)) as (child, ear):
        await ear.messages_are(1)
        assert (child.noise, len(ear.lines)) == (1000, NOISE_SAID)


async def test_bytes_that_are_no_text_do_not_lose_a_message() -> None:
    source = 'sys.stdout.buffer.write(b\'{"a":"caf\\xe9"}\\n\')'
    async with running(script(source)) as (_, ear):
        assert await ear.messages_are(1) == [{"a": "caf\ufffd"}]


@pytest.mark.parametrize("ending", ["", "\\n"])
async def test_a_line_over_the_limit_ends_the_connection_with_the_reason(ending: str) -> None:
    source = f"sys.stdout.buffer.write(b'x' * 2_000_000 + b'{ending}')"
    launch = script(f"{source}\nsys.stdout.flush()\nprint('{{}}', flush=True)\ntime.sleep(20)")
    async with running(launch, limit=1_000_000) as (child, ear):
        assert "1000000 bytes" in await ear.end()
        with pytest.raises(Gone, match="1000000"):
            await child.send(b"{}")
    assert ear.messages == []


async def test_a_line_of_exactly_the_limit_is_heard() -> None:
    source = "print('\"' + 'x' * 97 + '\" ')\nprint('{' + ' ' * 98 + '}')"
    async with running(script(source), limit=100) as (child, ear):
        assert await ear.messages_are(1) == [{}]
        assert child.noise == 1


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("os._exit(3)", "It ended with exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "It was ended by the signal SIGKILL"),
        ("sys.exit(0)", "It ended with exit code 0"),
    ],
)
async def test_its_death_is_told_at_once_with_its_last_words(act: str, reason: str) -> None:
    source = "sys.stdin.readline()\nprint('{}', flush=True)\nsys.stderr.write('why')\n"
    async with running(script(f"{source}sys.stderr.flush()\n{act}")) as (child, ear):
        await child.send(b"{}")
        await ear.messages_are(1)
        began = time.perf_counter()
        assert await ear.end() == reason
        assert time.perf_counter() - began < 10
        assert ear.messages == [{}]
        assert ear.lines == ["why"]


async def test_its_death_is_told_although_a_grandchild_holds_the_pipes() -> None:
    source = "if os.fork() == 0: time.sleep(30); os._exit(0)\nos._exit(7)"
    async with running(script(source)) as (_, ear):
        assert await ear.end() == "It ended with exit code 7"


@pytest.mark.parametrize(("fd", "word"), [(0, "input"), (1, "output")])
async def test_a_closed_pipe_ends_the_connection(fd: int, word: str) -> None:
    source = f"os.close({fd})\nsys.stderr.write('closed\\n'); sys.stderr.flush()\ntime.sleep(30)"
    async with running(script(source)) as (child, ear):
        await ear.lines_are(1)
        if fd == 0:
            await child.send(b"{}")
        assert await ear.end() == f"It closed its standard {word}"


async def test_somebody_who_waits_to_write_hears_of_the_death() -> None:
    async with running(script("time.sleep(0.3); os._exit(5)")) as (child, _):
        with anyio.fail_after(30), pytest.raises(Gone, match="exit code 5"):
            await send_many(child, 100)


async def test_the_child_may_end_by_itself_when_its_input_ends(tmp_path: Path) -> None:
    mark = tmp_path / "ended"
    source = f"sys.stdin.read()\nopen({str(mark)!r}, 'w').write('well')"
    async with running(script(source)) as (child, _):
        pid = child.process.pid
    assert await to_thread.run_sync(mark.read_text) == "well"
    assert not await to_thread.run_sync(alive, pid)


async def test_a_child_that_ignores_everything_and_its_family_are_gone_within_a_second() -> None:
    source = (
        "for n in (signal.SIGTERM, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
        "pid = os.fork()\n"
        "if pid == 0: os.setsid(); time.sleep(60); os._exit(0)\n"
        "print('[%d]' % pid, flush=True)\n"
        "while True: time.sleep(1)"
    )
    async with running(script(source)) as (child, ear):
        (message,) = await ear.messages_are(1)
        began = time.perf_counter()
    took = time.perf_counter() - began
    assert isinstance(message, list)
    for pid in (child.process.pid, int(message[0])):  # pyright: ignore[reportUnknownArgumentType] - a pid
        assert not await to_thread.run_sync(alive, pid)
    assert took < 10
    assert ear.reason == "The connection was closed"


async def test_a_stopped_child_is_gone_within_a_second() -> None:
    async with running(script(ECHO)) as (child, ear):
        await child.send(b"{}")
        await ear.messages_are(1)
        child.process.send_signal(signal.SIGSTOP)
        began = time.perf_counter()
    assert time.perf_counter() - began < 10
    assert not await to_thread.run_sync(alive, child.process.pid)


async def test_the_environment_is_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    source = "print('[' + ','.join('\"%s\"' % name for name in sorted(os.environ)) + ']')"
    async with running(script(source, GIVEN="1")) as (_, ear):
        assert await ear.messages_are(1) == [["GIVEN", "LC_CTYPE", "OPENFANG_RUN", "PATH"]]


async def test_a_program_that_is_not_there_is_named() -> None:
    launch = Launch(argv=("no-such-program",), cwd=Path("/"), environment={"PATH": "/usr/bin"})
    with pytest.raises(LaunchFailed, match="no-such-program"):
        async with running(launch):
            pass


def test_chatter_is_cut_at_a_length_and_at_a_rate() -> None:
    said: list[str] = []
    now = 10.0
    chatter = Chatter(said.append, now=lambda: now)
    chatter.feed(b"a\n\n  \nb" + b"x" * LONGEST_LINE)
    chatter.feed(b"yy\r\nnot yet")
    assert said == ["a", "b" + "x" * (LONGEST_LINE - 1) + " [and 4 bytes more]"]
    chatter.feed(b"\n" + b"line\n" * 1000)
    assert len(said) == LINES_A_SECOND
    now += 1
    chatter.feed(b"\xff\n")
    assert said[LINES_A_SECOND:] == ["[803 lines left out]", "\ufffd"]


def test_a_flood_of_chatter_is_counted_and_not_looked_at() -> None:
    said: list[str] = []
    now = 10.0
    chatter = Chatter(said.append, now=lambda: now)
    for _ in range(200):
        chatter.feed(b"\n" * 65_536)  # 13 million lines: one by one they would take a minute
    assert said == []
    now += 1
    chatter.feed(b"after\n" * 10_000 + b"half")
    now += 1
    chatter.feed(b" a line\n")
    assert said[1] == "after"
    assert said[-2:] == ["[9800 lines left out]", "half a line"]
    assert len(said) == LINES_A_SECOND + 3


def test_chatter_does_nothing_to_a_terminal() -> None:
    said: list[str] = []
    chatter = Chatter(said.append)
    chatter.feed(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07and\ttab\x00\x9b \xe2\x80\xaeleft\n")
    assert said == ["red and    tab\ufffd\ufffd \ufffdleft"]


@pytest.mark.requirement("C3.7")
async def test_whoever_gives_us_much_to_think_about_is_not_heard_for_a_while() -> None:
    """A server that prints without end leaves at least half of the time to the others."""
    source = "while True: sys.stdout.buffer.write(b'{aaaaaaaaaaaaa\\n' * 10_000)"
    async with running(script(source)) as (child, _):
        turns, began = 0, time.perf_counter()
        cpu = time.process_time()
        while time.perf_counter() - began < 1:
            await anyio.sleep(0.001)
            turns += 1
        assert child.noise > 0
        assert turns > 5
        assert time.process_time() - cpu < 0.9


async def test_an_answer_that_is_no_json_is_told_with_its_id() -> None:
    broken = b'{"jsonrpc":"2.0","id":7,"result":{"mean":NaN}}\n{"id": 8, "result": \n{"id":9,xyz\n'
    source = f"sys.stdout.buffer.write({broken!r})\nsys.stdout.flush()\ntime.sleep(20)"
    async with running(script(source)) as (child, ear):
        found = await ear.messages_are(3)
        assert [one.id for one in found if isinstance(one, Malformed)] == [7, 8, 9]
        assert child.noise == 0
