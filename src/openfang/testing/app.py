"""An open home of a test's own: real storage, real pipeline, limits out of the way."""

from __future__ import annotations

import tomllib
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from openfang.app.auth.identify import identify
from openfang.app.environment import credential
from openfang.app.home.new import init_home
from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.core.calls import Call
from openfang.core.events import AuditEvent
from openfang.core.trace import new_chain
from openfang.core.values import dataclass
from openfang.pipeline.explain import explain
from openfang.policy.context import NO_WISH, Wish, bind
from openfang.storage.database import Database
from openfang.storage.log import rows
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.decisions import Explanation
    from openfang.core.ports import Clock
    from openfang.core.results import Result
    from openfang.storage.ports import Reader
    from openfang.testing.sources import TableSource

_RAISED_LIMITS = "\n[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"


@dataclass(frozen=True, slots=True)
class OpenApp:
    """An open home and its administrator, who is the caller unless a test says otherwise."""

    parts: Parts
    caller: Caller

    @property
    def file(self) -> Database:
        """The database, which is a file unless a test says otherwise."""
        assert isinstance(self.parts.database, Database)  # noqa: S101 - this is for tests
        return self.parts.database

    @property
    def writer(self) -> Writer:
        """What writes to that file."""
        assert isinstance(self.parts.writer, Writer)  # noqa: S101 - this is for tests
        return self.parts.writer

    def add(self, source: TableSource) -> None:
        """Take a source in, or its changed table."""
        source.check = self.parts.pipeline.stamper.check
        self.parts.add(source.kind, source)

    def make(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller | None = None,
        wish: Wish = NO_WISH,
        **fields: Any,  # noqa: ANN401 - Call's own fields
    ) -> Call:
        """Make a call with its context bound as an edge does it; `fields` are set on it besides."""
        caller = caller or self.caller
        seconds = self.parts.config.guard.deadline_secs
        call = Call(
            tool=tool,
            caller=caller,
            arguments=arguments,
            context=bind(caller, wish, self.parts.config.policy.blacklist),
            chain=replace(new_chain(), deadline=self.parts.clock.monotonic() + seconds),
            edge="test",
        )
        return replace(call, **fields)

    async def invoke(self, call: Call) -> Result:
        """Take a call through the pipeline."""
        return await self.parts.pipeline.invoke(call)

    async def call(self, tool: str, /, **arguments: Any) -> Result:  # noqa: ANN401 - any JSON
        """Make a call and take it through the pipeline."""
        return await self.invoke(self.make(tool, arguments))

    async def explain(self, tool: str, /, **arguments: Any) -> Explanation:  # noqa: ANN401 - any JSON
        """Decide on such a call, and do nothing."""
        return await explain(self.parts.pipeline, self.make(tool, arguments))

    async def events(self) -> list[AuditEvent]:
        """Read what the audit log says of calls."""
        return await self.parts.database.aside(_of_calls)


async def _of_calls(reader: Reader) -> list[AuditEvent]:
    async with aclosing(rows(reader)) as found:
        return [event async for row in found if (event := AuditEvent.of(row)).call_id]


@asynccontextmanager
async def open_test_app(
    folder: Path,
    *,
    config: str = "",
    clock: Clock | None = None,
    sources: Iterable[TableSource] = (),
    environ: Mapping[str, str] | None = None,
) -> AsyncGenerator[OpenApp]:
    """Make a home in `folder` (or open it again), with `config` as its `config.toml`.

    The rate limits are raised unless `config` has `[limits]`. Plugin paths count from `folder`.
    `environ` is the node's environment; of the real one it knows nothing.
    """
    environ = environ or {"HOME": str(folder)}
    home = await to_thread.run_sync(_made, folder, config, environ)
    async with open_app(home, environ, clock=clock) as parts:
        secret = await to_thread.run_sync(credential, home, environ)
        app = OpenApp(parts, await identify(parts, secret, "test"))
        for source in sources:
            app.add(source)
        yield app


def _made(folder: Path, config: str, environ: Mapping[str, str]) -> Home:
    folder.mkdir(parents=True, exist_ok=True)
    limits = "" if "limits" in tomllib.loads(config) else _RAISED_LIMITS
    Home(folder).config_file.write_text(config + limits)
    return init_home(folder, environ)[0]
