"""The extensions that run here: put in, replaced and taken out while everything else goes on."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from anyio import to_thread

from openfang.app.servers.sealing import secrets_in
from openfang.app.servers.translate import rules_of
from openfang.config.home import user_home
from openfang.core.errors import NotFound
from openfang.core.ids import Kind
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from openfang.app.extensions.state import State
    from openfang.app.parts import Parts
    from openfang.core.extensions import ExtensionSpec
    from openfang.registry.rules import Rules
    from openfang.sources.extensions.source import ExtensionSource
    from openfang.sources.mcp.source import McpSource

ENVIRONMENTS: Final = "extensions-env"
_SETTLE_SECONDS: Final = 10.0


class Kept(Protocol):
    """One of them: what it is made of, its tools, and how it is."""

    @property
    def spec(self) -> ExtensionSpec:
        """What it is."""
        ...

    @property
    def source(self) -> ExtensionSource | McpSource:
        """Its tools, and who runs them."""
        ...

    async def settled(self) -> None:
        """Wait until it is known what it offers."""
        ...

    def state(self) -> State:
        """Say how it is."""
        ...


@dataclass(frozen=True, slots=True)
class _Opened:
    """What makes them, once anything was put in: with processes of ours, or with MCP servers."""

    own: Callable[[ExtensionSpec, Rules], Kept]
    served: Callable[[ExtensionSpec, Rules], Awaitable[Kept]]

    async def begin(self, spec: ExtensionSpec, rules: Rules) -> Kept:
        """Make one."""
        if spec.runtime.kind == "mcp":
            return await self.served(spec, rules)
        return self.own(spec, rules)


@dataclass(slots=True)
class Extensions:
    """Keeps one source for each extension; their processes live while `run` runs."""

    parts: Parts
    environ: Mapping[str, str]
    _kept: dict[str, Kept] = field(default_factory=dict[str, Kept])
    _opened: _Opened | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _begun: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Wait until one is put in, and hold every process until the node ends."""
        await self._wanted.wait()
        async with anyio.create_task_group() as tasks:
            self._opened = await to_thread.run_sync(_opened, self.parts, self.environ, tasks)
            self._begun.set()
            await anyio.sleep_forever()

    async def put(self, spec: ExtensionSpec) -> None:
        """Offer an extension, or replace one; what is under way goes on to its end."""
        opened = await self._open()
        former, rules = self._kept.get(spec.id), rules_of(self.parts.config)
        if former is not None and former.spec == spec:
            former.source.judge(rules)
            self.parts.add(Kind.EXTENSION, former.source)
            return
        await to_thread.run_sync(self._learn, spec)
        kept = self._kept[spec.id] = await opened.begin(spec, rules)
        self.parts.add(Kind.EXTENSION, kept.source)
        if former is not None:
            former.source.retire()

    def _learn(self, spec: ExtensionSpec) -> None:
        """Know the secrets that it is given: it may tell them again. Blocks."""
        names = [name for name in spec.permissions.variables if name in self.environ]
        given = {name: self.environ[name] for name in names}
        self.parts.redactor.learn(secrets_in(given), spec.caller_id)

    async def _open(self) -> _Opened:
        self._wanted.set()
        await self._begun.wait()
        assert self._opened is not None  # noqa: S101 - it was just opened
        return self._opened

    async def drop(self, extension: str) -> None:
        """Take an extension and its tools away; one that is not there is no fault."""
        kept = self._kept.pop(extension, None)
        if kept is not None:
            self.parts.remove(Kind.EXTENSION, extension)
            kept.source.retire()

    async def settled(self, extension: str) -> None:
        """Wait until it is known what an extension offers, but never long."""
        kept = self._kept.get(extension)
        if kept is not None:
            with anyio.move_on_after(_SETTLE_SECONDS):
                await kept.settled()

    def state(self, extension: str) -> State:
        """Say how an extension is; `NotFound` where there is none."""
        kept = self._kept.get(extension)
        if kept is None:
            raise NotFound(f"No extension {extension} is enabled.", way_out="openfang ext list")
        return kept.state()


def _opened(parts: Parts, environ: Mapping[str, str], tasks: TaskGroup) -> _Opened:
    # Sandbox, processes and the client of MCP take a while to import, and many homes have no
    # extension.
    from openfang.app.confine import Confiner  # noqa: PLC0415 - as above
    from openfang.app.extensions.calls import made  # noqa: PLC0415 - as above
    from openfang.app.extensions.own import Owned  # noqa: PLC0415 - as above
    from openfang.app.extensions.served import Served  # noqa: PLC0415 - as above
    from openfang.host.children.environments import Environments  # noqa: PLC0415 - as above
    from openfang.host.children.keeper import Means  # noqa: PLC0415 - as above
    from openfang.sources.extensions.source import Surroundings  # noqa: PLC0415 - as above

    confiner = Confiner(parts.home.path, user_home(environ))
    means = Means(
        confine=confiner.program,
        environments=Environments(parts.home.path / ENVIRONMENTS, environ),
        witness=confiner.layers,
        tasks=tasks,
    )
    around = Surroundings(
        means=means,
        check=parts.pipeline.stamper.check,
        made=made,
        invoke=parts.invoke,
        environ=environ,
    )
    served = Served(parts=parts, environ=environ, tasks=tasks)
    return _Opened(partial(Owned, around), served.begin)
