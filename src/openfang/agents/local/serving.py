"""One process that serves one model file, from its start to its end.

The port is ours before the process is there, and stays ours until it is gone: nobody else can be
found behind it. The key is made for this process, and goes to it over its standard input.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import orjson
from anyio import to_thread

from openfang.agents.local.weights import parts
from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.agents.models.providers import LOCAL, Endpoint
from openfang.core.errors import OpenFangError
from openfang.core.trace import CURRENT_TRACE
from openfang.host.children.start import Start
from openfang.host.lines import open_lines
from openfang.host.listen import listen
from openfang.host.process import Limits

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.agents.local.weights import Weights
    from openfang.host.children.start import Confine
    from openfang.host.listen import Listener

_log = logging.getLogger("openfang.agents")
LOADS_SECONDS: Final = 300.0
NAME: Final = "~models"
"""No agent can have it: its folders are the process's alone."""
_INSIDE: Final = Path(__file__).with_name("inside.py")
_LONGEST_LINE: Final = 4096
_LIMITS: Final = Limits(open_files=1024, file_size=1 << 20)
_EXTRA: Final = 'pip install "openfang[local-llm]"'
_LOG: Final = "the log says why; [[fallback_models]] can stand in"


class Means(Protocol):
    """What every model's process is started with, and how long it stays without work."""

    confine: Confine
    home: Path
    python: str
    idle: float


class Serving:
    """A model's process. `known` is set when it serves or cannot, `over` when it takes no more."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.known = anyio.Event()
        self.over = anyio.Event()
        self.failure: ModelFailed | None = None
        self.endpoint: Endpoint | None = None
        self.users = 0
        self.rested = anyio.current_time()
        self.pid = 0
        self._key = token_urlsafe(32)
        self._retired = False

    @contextmanager
    def used(self) -> Generator[None]:
        """Keep it from ending for want of work."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1
            self.rested = anyio.current_time()
            self._end_if_retired()

    def retire(self) -> None:
        """End with the last who uses it."""
        self._retired = True
        self._end_if_retired()

    def _end_if_retired(self) -> None:
        if self._retired and not self.users:
            self.over.set()

    async def live(self, means: Means) -> None:
        """Hold the process until nobody wants it for a while, or it ends by itself."""
        CURRENT_TRACE.set("")
        listener = listen("127.0.0.1", 0)
        try:
            await self._held(means, listener)
        except OpenFangError as error:
            self._fail(f"{self.weights.name} cannot be served: {error.message}", error.way_out)
        except Exception as error:  # noqa: BLE001 - whatever it is, other agents do not notice
            _log.error("The model %s cannot be served", self.weights.file, exc_info=error)
            self._fail(f"{self.weights.name} cannot be served.", _LOG)
        finally:
            listener.close()
            self._fail(f"The process of {self.weights.name} was ended.", "")

    async def _held(self, means: Means, listener: Listener) -> None:
        handed = listener.sockets[0].fileno()
        start = await to_thread.run_sync(_start, self.weights.file, means)
        async with AsyncExitStack() as stack:
            launch = await means.confine(start, stack)
            launch = replace(launch, files=(*launch.files, handed))
            lines = open_lines(launch, self, limit=_LONGEST_LINE)
            lines = await stack.enter_async_context(lines)
            self.pid = lines.process.pid
            self.endpoint = self._endpoint(listener)
            lines.post(self._order(handed))
            with anyio.move_on_after(LOADS_SECONDS):
                await self.known.wait()
            if not self.known.is_set():
                name = self.weights.name
                self._fail(f"{name} was not loaded within {LOADS_SECONDS:g} s.", "a smaller model")
            await self._until_idle(means)

    async def _until_idle(self, means: Means) -> None:
        while not self.over.is_set():
            rests = 0.0 if self.users else anyio.current_time() - self.rested
            left = means.idle - rests
            if left <= 0:
                self.over.set()
            with anyio.move_on_after(left):
                await self.over.wait()

    def _endpoint(self, listener: Listener) -> Endpoint:
        host, port = listener.address
        return Endpoint(
            provider=LOCAL,
            api="openai",
            model=self.weights.name,
            base_url=f"http://{host}:{port}/v1",
            key=self._key,
            allow_private=True,
            sees=False,
        )

    def _order(self, listener: int) -> bytes:
        return orjson.dumps(
            {
                "file": str(self.weights.file),
                "key": self._key,
                "listener": listener,
                "threads": self.weights.threads,
                "window": self.weights.window,
            }
        )

    def heard(self, message: object) -> None:
        """Take what the process says of its start."""
        match message:
            case {"say": "ready"}:
                self.known.set()
            case {"say": "missing"}:
                failure = "A model file needs a library that is not installed."
                self._fail(failure, _EXTRA, Trouble.MISSING)
            case {"say": "broken"}:
                self._fail(f"The model file {self.weights.name} cannot be loaded.", _LOG)
            case _:
                _log.info("%s said what nobody understands", self.weights.name)

    def complained(self, line: str) -> None:
        """Take a line of the library's."""
        _log.info("%s: %s", self.weights.name, line)

    def gone(self, reason: str) -> None:
        """Hear that nothing more will come of it."""
        said = f"{reason[:1].lower()}{reason[1:]}"
        trouble = Trouble.LOST if self.known.is_set() else Trouble.NO_MODEL
        self._fail(f"The process of {self.weights.name} broke off: {said}.", _LOG, trouble)

    def _fail(self, message: str, way_out: str, trouble: Trouble = Trouble.NO_MODEL) -> None:
        if self.failure is None:
            self.failure = ModelFailed(message, trouble=trouble, way_out=way_out)
        self.over.set()
        self.known.set()


def _start(file: Path, means: Means) -> Start:
    """Say what to start: our own Python, which sees the model's files and no network."""
    return Start(
        who="The model of a file",
        name=NAME,
        place=f"children/{NAME}",
        argv=(means.python, "-I", "-B", "-X", "utf8", str(_INSIDE)),
        read=parts(file),
        workspace=means.home / "children" / NAME / "tmp",
        sandbox="auto",
        cpu_seconds=0,
        limits=_LIMITS,
    )
