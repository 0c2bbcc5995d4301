"""The log of the daemon: one event, one line, no secrets, and nobody waits for it."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.app.logs.file import File
from openfang.app.logs.lines import LONGEST, JsonLines, TextLines
from openfang.app.logs.log import Drain, Logs, open_logs
from openfang.core.errors import HomeError, PolicyViolation
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.core.trace import CURRENT_TRACE
from openfang.safety.redact import Redactor
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C14.2")

KNOWN = "correct-horse-battery"
GITHUB = "ghp_" + "a1B2" * 9
REDACTOR = Redactor(b"k" * 32, [KNOWN])
LOG = logging.getLogger("openfang.tests")
WAIT = 20.0


def redact(text: str) -> str:
    return REDACTOR.json_text(text).text


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def messages(file: Path) -> list[str]:
    return [line["message"] for line in read(file)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "daemon.log"


@pytest.fixture
def logs(file: Path) -> Generator[Logs]:
    with open_logs("info", file=file, redact=redact) as opened:
        yield opened


@contextmanager
def pipe() -> Generator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            with suppress(OSError):
                os.close(end)


def within(seconds: float, act: Callable[[], None]) -> bool:
    """Whether it was done in time."""
    thread = Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def drained(reading: int, writing: int, logs: Logs) -> bytes:
    """Everything that comes out of a pipe until the log is closed."""
    chunks: list[bytes] = []
    reader = Thread(target=lambda: chunks.extend(iter(lambda: os.read(reading, 65_536), b"")))
    reader.start()
    logs.close()
    os.close(writing)
    reader.join(WAIT)
    return b"".join(chunks)


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        os.sched_yield()


def record(text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord("openfang.tests", logging.INFO, "", 0, text, values, None)


def fail(error: Exception) -> None:
    raise error


@contextmanager
def told() -> Generator[None]:
    try:
        yield
    except ValueError:
        LOG.exception("It broke")
        raise


# What a line says


async def echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments["text"])


async def test_calls_are_told_in_the_words_of_the_seed_with_their_trace(
    tmp_path: Path, file: Path, logs: Logs
) -> None:
    low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    table = {"echo": (low, echo), "off": ({**low, "enabled": False}, echo)}
    source = TableSource(Kind.MCP, "demo", table)
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        allowed = app.make("mcp:demo:echo", {"text": "x"})
        await app.invoke(allowed)
        denied = app.make("mcp:demo:off", {"text": "x"})
        with pytest.raises(PolicyViolation) as caught:
            await app.invoke(denied)
    await to_thread.run_sync(logs.close)
    lines = await to_thread.run_sync(read, file)
    assert [{**line, "time": ""} for line in lines] == [
        {
            "time": "",
            "level": "info",
            "logger": "openfang.pipeline",
            "message": "Tool invoked: mcp:demo:echo, result: True",
            "trace": allowed.chain.trace_id,
        },
        {
            "time": "",
            "level": "warning",
            "logger": "openfang.pipeline",
            "message": caught.value.message,
            "trace": denied.chain.trace_id,
        },
    ]
    assert caught.value.message.startswith("Policy violation: ")


def test_a_line_has_its_time_in_utc_and_the_fields_that_were_added(file: Path, logs: Logs) -> None:
    LOG.info("Connected", extra={"server": "echo-math", "tools": 3, "time": "never"})
    logs.close()
    (line,) = read(file)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "openfang.tests",
        "message": "Connected",
        "server": "echo-math",
        "tools": 3,
    }


def test_an_exception_is_told_with_its_cause_and_where_it_was_raised(
    file: Path, logs: Logs
) -> None:
    with suppress(ValueError), told():
        try:
            fail(KeyError("inner"))
        except KeyError as error:
            raise ValueError("outer\nline") from error
    logs.close()
    (line,) = read(file)
    outer, inner = line["exception"].split(" <- ")
    assert outer.startswith("ValueError: outer\nline (app/test_logs.py:")
    assert re.match(r"KeyError: 'inner' \(app/test_logs\.py:\d+ in fail, app/test_logs", inner)


def test_the_level_can_be_changed_while_it_is_open(file: Path, logs: Logs) -> None:
    LOG.debug("unheard")
    logs.set_level("debug")
    LOG.debug("heard")
    logs.set_level("error")
    LOG.warning("unheard")
    logs.close()
    assert messages(file) == ["heard"]


def test_errors_of_the_loop_and_of_the_server_are_in_it_and_their_chatter_is_not(
    file: Path, logs: Logs
) -> None:
    logging.getLogger("asyncio").error("Task exception was never retrieved")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logs.close()
    assert messages(file) == [
        "Task exception was never retrieved",
        "Invalid HTTP request received.",
    ]


def test_what_python_warns_of_is_in_it_and_nowhere_else(file: Path) -> None:
    script = f"""
import warnings
from pathlib import Path
from openfang.app.logs.log import open_logs
with open_logs("info", file=Path({str(file)!r}), redact=str):
    warnings.warn("a coroutine was never awaited", RuntimeWarning)
"""
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, check=True)
    (said,) = messages(file)
    assert "a coroutine was never awaited" in said
    assert done.stderr == b""


def test_closing_leaves_logging_as_it_was(file: Path) -> None:
    def state() -> list[object]:
        switches = (logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
        trees = [logging.getLogger(name) for name in ("", "openfang")]
        return [
            *switches,
            *((tree.level, tree.propagate, list(tree.handlers)) for tree in trees),
        ]

    before = state()
    assert logging.logThreads
    with open_logs("debug", file=file, redact=redact) as logs:
        assert state() != before
    assert state() == before
    logs.close()
    assert state() == before


# Secrets


class Spelled:
    def __str__(self) -> str:
        return f"token {GITHUB}"


@pytest.mark.requirement("C18.3")
def test_no_secret_gets_into_a_line_wherever_it_was(file: Path, logs: Logs) -> None:
    LOG.info("Calling with %s", KNOWN)
    LOG.info("Calling with %s", Spelled())
    LOG.info("Added", extra={"api_key": "hunter2-hunter2", "deep": [{"text": f"is {KNOWN}"}]})
    LOG.info("Added", extra={"object": Spelled()})
    LOG.info("Long %s", "x" * 2 * LONGEST + KNOWN)
    for cut in range(len(GITHUB)):
        LOG.info("%s", "x" * (LONGEST - cut) + " " + GITHUB + "x" * LONGEST)
    with suppress(ValueError), told():
        fail(ValueError(GITHUB))
    logs.close()
    text = file.read_text()
    assert not [secret for secret in (KNOWN, GITHUB, "hunter2") if secret in text]
    assert "ghp_" not in text
    assert len(text.splitlines()) == len(GITHUB) + 6


@pytest.mark.requirement("C18.3")
@given(before=st.integers(0, 40), after=st.integers(0, 3 * LONGEST))
@settings(max_examples=60, deadline=None)
def test_a_text_that_is_cut_shows_no_part_of_a_secret(before: int, after: int) -> None:
    text = "y" * (2 * LONGEST - before) + f" {GITHUB} " + "z" * after
    assert b"ghp_" not in JsonLines(redact).line(record("%s", text))


# One event is one line


@given(st.text(max_size=60), st.text(max_size=20))
@settings(max_examples=300, deadline=None)
def test_whatever_was_written_is_one_line_of_json_that_reads_back(text: str, value: str) -> None:
    given_record = record("%s", text)
    given_record.value = value
    line = JsonLines(str).line(given_record).decode()
    assert line.splitlines(keepends=True) == [line]
    assert line.endswith("\n")
    assert line[:-1].isprintable()
    told = json.loads(line)
    assert (told["message"], told["value"]) == (text, value)


@given(st.text(max_size=60), st.text(max_size=20))
@settings(max_examples=300, deadline=None)
def test_whatever_was_written_is_one_line_of_text_that_steers_no_terminal(
    text: str, value: str
) -> None:
    given_record = record("%s", text)
    given_record.value = value
    line = TextLines(str, colour=False).line(given_record).decode()
    assert line.splitlines(keepends=True) == [line]
    assert line[:-1].isprintable()


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\r\nb", "a\x1b[2Jb", "a\x9bb", "a\u2028b", "a\u202eb", "a\x7fb"],
    ids=ascii,
)
def test_a_forged_line_stays_inside_its_own(file: Path, logs: Logs, text: str) -> None:
    forged = '{"level":"info","message":"Tool invoked"}'
    LOG.warning("Unknown tool: %s", f"{text}\n{forged}")
    logs.close()
    assert messages(file) == [f"Unknown tool: {text}\n{forged}"]
    assert file.read_text()[:-1].isprintable()


# Lines that cannot be put into words


class Mute:
    def __str__(self) -> str:
        raise RuntimeError(KNOWN)


def test_a_line_that_cannot_be_put_into_words_harms_nobody(file: Path) -> None:
    with open_logs("info", file=file, redact=redact):
        LOG.info("%d", "no number")
        LOG.info("%s", Mute())
        LOG.error("Kept", exc_info=type("Odd", (Exception,), {"__str__": Mute.__str__})())
    lines = read(file)
    assert [line["message"] for line in lines] == [
        "A line of openfang.tests could not be put into words: TypeError",
        "A line of openfang.tests could not be put into words: RuntimeError",
        "Kept",
    ]
    assert lines[2]["exception"] == "Odd: (no words)"


def test_a_redactor_that_breaks_lets_nothing_through(file: Path) -> None:
    def broken(text: str) -> str:
        raise ValueError(text)

    with open_logs("info", file=file, redact=broken):
        LOG.info("is %s", KNOWN)
    assert messages(file) == ["A line of openfang.tests could not be put into words: ValueError"]


class Chatty:
    def __str__(self) -> str:
        LOG.error("inner")
        return "outer"


def test_who_logs_while_a_line_is_written_is_heard_too(file: Path) -> None:
    with open_logs("info", file=file, redact=redact):
        LOG.info("%s", Chatty())
    assert messages(file) == ["inner", "outer"]


# Where it goes


def test_a_stream_that_is_no_terminal_gets_json() -> None:
    with pipe() as (reading, writing):
        with open_logs("info", file=None, redact=redact, stream=writing):
            LOG.info("Hello")
        os.close(writing)
        told = json.loads(os.read(reading, 65_536))
    assert (told["level"], told["message"]) == ("info", "Hello")


def shown(environ: Mapping[str, str]) -> str:
    """What a person sees in a terminal of 80 columns."""
    ours, theirs = os.openpty()
    token = CURRENT_TRACE.set("4bf92f3577b34da6a3ce929d0e0e4736")
    try:
        with open_logs("info", file=None, redact=redact, stream=theirs, environ=environ):
            LOG.warning("Two\nlines and %s", KNOWN, extra={"server": "demo"})
        return os.read(ours, 65_536).decode()
    finally:
        CURRENT_TRACE.reset(token)
        os.close(theirs)
        os.close(ours)


def test_a_terminal_gets_one_coloured_line_without_secrets() -> None:
    line = shown({"TERM": "xterm"})
    assert line.count("\n") == 1
    assert line.count("\x1b[33mWARNING \x1b[0m") == 1
    assert KNOWN not in line


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_none(environ: Mapping[str, str]) -> None:
    mark = REDACTOR.text(KNOWN).text
    told = shown(environ).split(" ", 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", told[0])
    assert told[1] == (
        f"WARNING  tests: Two\\nlines and {mark} "
        "trace=4bf92f3577b34da6a3ce929d0e0e4736 server=demo\r\n"
    )


def test_the_file_is_its_owners_alone(file: Path, logs: Logs) -> None:
    logs.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "daemon.log"
    file.write_text("before\n")
    file.chmod(0o644)
    File(file).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "before\n"


def test_what_cannot_be_a_log_is_refused_at_the_start(tmp_path: Path) -> None:
    target = tmp_path / "somewhere"
    target.write_text("")
    link, fifo, below = tmp_path / "link", tmp_path / "fifo", target / "daemon.log"
    link.symlink_to(target)
    os.mkfifo(fifo)
    for path in (link, fifo, below, tmp_path):
        with pytest.raises(HomeError):
            open_logs("info", file=path, redact=redact)


def test_nothing_is_lost_and_all_is_in_order_at_a_clean_end(file: Path, logs: Logs) -> None:
    for number in range(5_000):
        LOG.info("%s", number)
    logs.close()
    assert messages(file) == [str(number) for number in range(5_000)]
    assert logs.dropped == 0


# Rotation


def test_a_full_file_is_moved_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    file = File(tmp_path / "log", max_bytes=100, keep=2)
    for number in range(10):
        assert file.write(b"%039d\n" % number) == 0
    file.close()
    kept = {path.name: path.read_text().split() for path in tmp_path.iterdir()}
    assert {name: [int(line) for line in lines] for name, lines in kept.items()} == {
        "log": [8, 9],
        "log.1": [6, 7],
        "log.2": [4, 5],
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@given(st.lists(st.integers(0, 60), max_size=40))
@settings(max_examples=40, deadline=None)
def test_rotation_loses_no_line_that_is_not_the_oldest(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    written = [b"%d" % number + b"x" * length + b"\n" for number, length in enumerate(lengths)]
    file = File(folder / "log", max_bytes=100, keep=3)
    assert not any(file.write(line) for line in written)
    file.close()
    names = [name for name in ("log.3", "log.2", "log.1", "log") if (folder / name).exists()]
    kept = [(folder / name).read_bytes() for name in names]
    assert all(len(content) <= 100 for content in kept)
    assert b"".join(written).endswith(b"".join(kept))


@pytest.mark.parametrize("act", ["moved", "removed", "emptied", "folder"])
def test_a_file_that_somebody_else_rotated_is_opened_again(tmp_path: Path, act: str) -> None:
    path = tmp_path / "logs" / "log"
    file = File(path)
    file.write(b"one\n")
    match act:
        case "moved":
            path.rename(path.with_name("log.old"))
        case "removed":
            path.unlink()
        case "emptied":
            os.truncate(path, 0)
        case _:
            path.parent.rename(tmp_path / "old")
    assert file.write(b"two\n") == 0
    file.close()
    assert path.read_text() == "two\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Targets that block or fail


@dataclass
class Recorder:
    """A target in memory that a test can hold up."""

    may_go: Event = field(default_factory=Event)
    arrived: Event = field(default_factory=Event)
    written: list[bytes] = field(default_factory=list[bytes])

    def write(self, lines: bytes) -> int:
        assert self.may_go.wait(WAIT)
        self.written += lines.splitlines()
        self.arrived.set()
        return 0

    def close(self) -> None:
        self.written.append(b"closed")


def notice(lost: int) -> bytes:
    return b"lost %d\n" % lost


def test_an_error_does_not_wait_for_others() -> None:
    target = Recorder()
    target.may_go.set()
    drain = Drain(target, notice, gather=10 * WAIT)
    drain.put(b"later\n", urgent=False)
    assert not target.arrived.is_set()
    drain.put(b"now\n", urgent=True)
    assert target.arrived.wait(WAIT)
    drain.close()
    assert target.written == [b"later", b"now", b"closed"]


def test_a_lone_line_is_written_without_another_one() -> None:
    target = Recorder()
    target.may_go.set()
    drain = Drain(target, notice)
    drain.put(b"lone\n", urgent=False)
    assert target.arrived.wait(WAIT)
    drain.close()


def test_a_reader_that_stops_reading_holds_nobody_up_and_hears_what_it_missed() -> None:
    total = 40_000

    def log() -> None:
        for number in range(total):
            LOG.error("%06d %s", number, "x" * 200)

    with pipe() as (reading, writing):
        logs = open_logs("info", file=None, redact=str, stream=writing)
        assert within(WAIT, log)
        assert logs.dropped > 0
        text = drained(reading, writing, logs)
    lines = [json.loads(line) for line in text.splitlines()]
    told = [line["message"] for line in lines if line["logger"] == "openfang.logs"]
    heard = [int(line["message"][:6]) for line in lines if line["logger"] == "openfang.tests"]
    lost = sum(int(text.rpartition(" ")[2]) for text in told)
    assert heard == sorted(set(heard))
    assert lost == logs.dropped == total - len(heard)


def test_a_target_that_never_takes_anything_does_not_hold_up_the_end() -> None:
    with pipe() as (_, writing):
        logs = open_logs("info", file=None, redact=str, stream=writing)
        for _ in range(2_000):
            LOG.error("x" * 200)
        assert within(WAIT, logs.close)


def test_a_stream_that_does_not_block_loses_nothing_either() -> None:
    total = 3_000
    with pipe() as (reading, writing):
        os.set_blocking(writing, False)
        logs = open_logs("info", file=None, redact=str, stream=writing)
        for number in range(total):
            LOG.info("%06d %s", number, "x" * 200)
        text = drained(reading, writing, logs)
    lines = [json.loads(line)["message"][:6] for line in text.splitlines()]
    assert lines == [f"{number:06d}" for number in range(total)]
    assert logs.dropped == 0


def test_a_reader_that_has_gone_harms_nobody() -> None:
    with pipe() as (reading, writing):
        os.close(reading)
        logs = open_logs("info", file=None, redact=str, stream=writing)
        LOG.error("nobody reads this")
        logs.close()
    assert logs.dropped == 1


def test_a_full_device_harms_nobody() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        logs = open_logs("info", file=None, redact=str, stream=full)
        LOG.error("no room for this")
        logs.close()
    finally:
        os.close(full)
    assert logs.dropped == 1


# A file that may not grow is, to whoever writes it, a disk that is full.
FULL_DISK = """
import resource, sys
from pathlib import Path
from openfang.app.logs.file import File, Stream

def may_grow_to(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def lines(start, stop):
    return b"".join(b"%04d\\n" % number for number in range(start, stop))

folder = Path(sys.argv[1])
file = File(folder / "file")
handle = open(folder / "stream", "wb", buffering=0)
stream = Stream(handle.fileno())
for target in (file, stream):
    may_grow_to(52)
    assert target.write(lines(0, 20)) == 10
    assert target.write(lines(20, 25)) == 5
    may_grow_to(resource.RLIM_INFINITY)
    assert target.write(lines(30, 32)) == 0
"""


def test_lines_that_find_a_full_disk_are_counted_and_the_next_ones_are_whole(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], check=True, timeout=60)
    kept = [f"{number:04d}" for number in (*range(10), 30, 31)]
    assert (tmp_path / "file").read_text().split() == kept
    stream = (tmp_path / "stream").read_text().split()
    assert [line for line in stream if len(line) == 4] == kept


def test_a_log_that_works_again_says_how_much_is_missing(file: Path) -> None:
    with open_logs("info", file=file, redact=redact) as logs:
        folder = file.parent
        folder.rename(folder.with_name("aside"))
        folder.write_text("in the way")
        LOG.error("lost")
        assert within(WAIT, lambda: until(lambda: logs.dropped == 1))
        folder.unlink()
        LOG.error("kept")
    assert messages(file) == ["Log lines dropped, they could not be written: 1", "kept"]
