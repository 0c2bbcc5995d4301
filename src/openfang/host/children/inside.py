"""What runs inside of a warm child: it reads the lines of its parent, and serves its runs.

It is loaded by its path under the child's own Python, by the file that says what is served: it
needs the standard library alone. Messages are lines of JSON on descriptors that nobody else knows;
the code finds an empty standard input, and what it prints goes where its errors go.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import resource
import sys
import threading
import time
import traceback
import types
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field  # noqa: TID251 - this runs where nothing of ours is
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.host.children.context import Failed, Refused


def bring(name: str, file: Path) -> types.ModuleType:
    """Load a file by its path, under the name by which others import it: its classes are one."""
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None and found.loader is not None  # noqa: PT018, S101 - it is a file
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    _context = bring("openfang.host.children.context", Path(__file__).with_name("context.py"))
    Failed, Refused = _context.Failed, _context.Refused

LARGEST = 10_000_000
PLAIN_AT_ONCE = 32
_STACK = 2 << 20
_CHUNK = 1 << 16
_LINGERS = 0.25
_LONGEST_TRACE = 20_000
LONGEST_REASON = 2000


class Stop(BaseException):
    """The run is over for everybody else."""


class Channel:
    """The two descriptors to the parent. After a fork the copy has none."""

    def __init__(self) -> None:
        self.forked = False
        self._read = os.dup(0)
        self._write = os.dup(1)
        self._nowhere = os.open(os.devnull, os.O_RDWR)
        self._lock = threading.Lock()
        self._line = bytearray()
        self._encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        os.dup2(self._nowhere, 0)
        os.dup2(2, 1)
        os.set_blocking(self._read, False)
        os.register_at_fork(after_in_child=self._forsake)

    def _forsake(self) -> None:
        self.forked = True
        self._lock = threading.Lock()
        for descriptor in (self._read, self._write):
            os.dup2(self._nowhere, descriptor, inheritable=False)

    def send(self, say: str, run: int = 0, /, **fields: object) -> None:
        """Write one message. Its line begins anew, whatever stands there already."""
        body = self._encoder.encode({"id": run, "say": say, **fields})
        line = body.encode("utf-8", "replace")
        if len(line) > LARGEST:
            raise ValueError(f"{say}: {len(line)} bytes are more than {LARGEST}")
        rest = memoryview(b"\n" + line + b"\n")
        try:
            with self._lock:
                while rest:
                    rest = rest[os.write(self._write, rest) :]
        except OSError:
            leave(0)

    def first(self) -> dict[str, Any]:
        """Wait for what the parent says before anything else."""
        os.set_blocking(self._read, True)
        while b"\n" not in self._line:
            data = os.read(self._read, _CHUNK)
            if not data:
                leave(0)
            self._line += data
        os.set_blocking(self._read, False)
        line, _, rest = bytes(self._line).partition(b"\n")
        self._line = bytearray(rest)
        return json.loads(line)

    def listen(self, heard: Callable[[dict[str, Any]], None]) -> None:
        """Hand on each message that comes; when none can come any more, all ends."""
        asyncio.get_running_loop().add_reader(self._read, self._ready, heard)

    def _ready(self, heard: Callable[[dict[str, Any]], None]) -> None:
        try:
            data = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            leave(0)
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._line += line
            if self._line:
                message = json.loads(self._line)
                self._line = bytearray()
                heard(message)
        self._line += rest


def leave(code: int) -> NoReturn:
    """End at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


@dataclass
class Run:
    """One message on its way to an answer."""

    number: int
    channel: Channel
    numbers: count[int]
    told: dict[str, Any]
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(
        default_factory=dict[int, "asyncio.Future[dict[str, Any]]"]
    )
    begun: bool = False
    stopped: bool = False
    task: asyncio.Task[None] | None = None

    def send(self, say: str, **fields: object) -> None:
        """Tell the parent something about this run."""
        if self.stopped:
            raise Stop
        self.channel.send(say, self.number, **fields)

    async def request(self, say: str, **fields: object) -> dict[str, Any]:
        """Ask the parent for something, and wait for it."""
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(say, call=number, **fields)
            answer = await self.waiting[number]
        finally:
            del self.waiting[number]
        if "reason" in answer:
            kind = Refused if answer.get("refused") else Failed
            raise kind(answer["reason"], answer.get("way_out", ""), answer.get("code", ""))
        return answer

    def stop(self) -> None:
        """Stop whoever waits for the parent, now and later."""
        self.stopped = True
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Stop())


class Server(ABC):
    """Runs functions, as many at once as it is asked to."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count(1)
        self._runs: dict[int, Run] = {}
        self._threads = ThreadPoolExecutor(PLAIN_AT_ONCE, thread_name_prefix="run")

    @abstractmethod
    def is_asynchronous(self, run: Run) -> bool:
        """Whether what is to run has to be awaited, and not to be put into a thread."""

    @abstractmethod
    async def awaited(self, run: Run) -> object:
        """Run it, and wait for its answer."""

    @abstractmethod
    def plain(self, run: Run, loop: asyncio.AbstractEventLoop) -> object:
        """Run it, in a thread of its own."""

    @abstractmethod
    def said(self, answer: object) -> dict[str, Any]:
        """Put an answer into a message."""

    def refused(self, error: BaseException) -> tuple[str, dict[str, Any]] | None:
        """Say what an exception means that is no failure."""
        del error
        return None

    def heard(self, message: dict[str, Any]) -> None:
        """Take a message of the parent's."""
        run = self._runs.get(message["id"])
        match message["do"]:
            case "run":
                self._begin(Run(message["id"], self._channel, self._numbers, message))
            case "cancel" if run is not None:
                self._cancel(run)
            case "answer" if run is not None:
                future = run.waiting.get(message["call"])
                if future is not None and not future.done():
                    future.set_result(message)
            case _:
                pass

    def _begin(self, run: Run) -> None:
        self._runs[run.number] = run
        run.task = asyncio.get_running_loop().create_task(self._run(run))

    def _cancel(self, run: Run) -> None:
        run.stop()
        # A task that is cancelled before its first step would never say that it ended.
        if self.is_asynchronous(run) and run.begun and run.task is not None:
            run.task.cancel()
        asyncio.get_running_loop().call_later(_LINGERS, self._lingers, run.number)

    def _lingers(self, number: int) -> None:
        if number in self._runs:
            self._channel.send("lingers", number)

    async def _run(self, run: Run) -> None:
        run.begun = True
        try:
            say, fields = await self._ended(run)
        finally:
            if self._channel.forked:
                leave(0)
            del self._runs[run.number]
        self._channel.send(say, run.number, **fields)

    async def _ended(self, run: Run) -> tuple[str, dict[str, Any]]:
        """Run to the end, and say what that was. Whatever the code raises ends its run alone."""
        try:
            said = self.said(await self._answer(run))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the code's own
            if run.stopped:
                return "ended", {}
            return self.refused(error) or ("error", described(error))
        return "result", {**said, "cpu": time.process_time()}

    async def _answer(self, run: Run) -> object:
        if run.stopped:
            raise Stop
        if self.is_asynchronous(run):
            return await self.awaited(run)
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, self._plainly, run, loop)
        return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer

    def _plainly(self, run: Run, loop: asyncio.AbstractEventLoop) -> object:
        try:
            return None if run.stopped else self.plain(run, loop)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(words(error)) from error
        finally:
            if self._channel.forked:
                leave(0)


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Whether a function has to be awaited."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - to look at it
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def described(error: BaseException) -> dict[str, str]:
    """Say what was raised, and where."""
    trace = "".join(traceback.format_exception(error))
    return {
        "type": type(error).__name__,
        "message": words(error)[:LONGEST_REASON],
        "traceback": trace[-_LONGEST_TRACE:],
    }


def words(error: BaseException) -> str:
    """Say what was raised, even where it cannot say so itself."""
    if isinstance(error, SystemExit):
        return f"It called sys.exit({error.code!r})"
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the code's own exception cannot even be shown
        return "It cannot be put into words"


def load(file: Path) -> types.ModuleType:
    """Run a file of the code's. No compiled copy of it is ever read."""
    sys.path.insert(0, str(file.parent))
    module = types.ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)  # noqa: S102 - its purpose
    return module


def _bound() -> None:
    """Put in force what can only be bounded from here: user code comes after this."""
    seconds = int(os.environ.pop("OPENFANG_CPU", "0"))
    processes = int(os.environ.pop("OPENFANG_PROCESSES", "0"))
    if seconds:
        # The softer end comes first, and says what it was.
        resource.setrlimit(
            resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
        )
    if processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


async def _serve(channel: Channel, server: Server) -> None:
    channel.listen(server.heard)
    channel.send("ready")
    await asyncio.Event().wait()


def serve(make: Callable[[Channel], Server]) -> None:
    """Serve until the parent has gone."""
    channel = Channel()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    threading.stack_size(_STACK)
    _bound()
    try:
        server = make(channel)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the code's own
        channel.send("broken", **described(error))
        leave(1)
    asyncio.run(_serve(channel, server))
