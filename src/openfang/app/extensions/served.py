"""Extensions that are MCP servers: connected as any server is, under the names of extensions."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.app.extensions.state import State
from openfang.app.servers.connecting import Connecting
from openfang.config.servers import MOST_MEMORY_MB, MOST_PROCESSES
from openfang.core.errors import OpenFangError
from openfang.core.extensions import Capability
from openfang.core.ids import Kind
from openfang.core.values import dataclass
from openfang.host.folders import seal_of
from openfang.safety.environment import child_environment
from openfang.sources.extensions.adapter import declared_of
from openfang.sources.extensions.recipe import PLACE
from openfang.sources.mcp.pace import Pace
from openfang.sources.mcp.spec import Override, ServerSpec, Stdio

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Mapping
    from pathlib import Path

    from anyio.abc import TaskGroup

    from openfang.app.parts import Parts
    from openfang.core.extensions import ExtensionSpec
    from openfang.host.machine import Layer
    from openfang.registry.classify import Declared, ForeignTool
    from openfang.registry.rules import Rules
    from openfang.sources.mcp.source import McpSource

_FILE: Final = "./"
# Where nothing keeps it from writing there, its folder stays what was accepted.
_NO_COPIES: Final = {"PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(slots=True, kw_only=True)
class Served:
    """Implements `Keeping`: connects the servers that extensions bring."""

    parts: Parts
    environ: Mapping[str, str]
    tasks: TaskGroup
    said: dict[str, deque[str]] = field(default_factory=dict[str, "deque[str]"])
    layers: dict[str, tuple[Layer, ...]] = field(default_factory=dict[str, "tuple[Layer, ...]"])
    pace: Pace = field(default_factory=Pace)
    connected: Counter[str] = field(default_factory=Counter[str])
    _connecting: Connecting = field(init=False)

    def __post_init__(self) -> None:
        self._connecting = Connecting(self)

    @property
    def variables(self) -> Mapping[str, str]:
        """What an extension can be permitted to know."""
        return self.environ

    def changed(self, source: McpSource) -> None:
        """Offer what it offers now, unless another has taken its place."""
        if self.parts.sources.get((Kind.EXTENSION, source.name)) is source:
            self.parts.add(Kind.EXTENSION, source)

    def back(self, source: McpSource) -> None:
        """Let the next call try it, however often it failed before."""
        self.connected[source.name] += 1
        breakers = self.parts.pipeline.guards.breakers
        key = f"{Kind.EXTENSION.value}:{source.name}"
        breakers.revived(key, self.parts.clock.monotonic())

    async def begin(self, spec: ExtensionSpec, rules: Rules) -> Serving:
        """Connect to it when it is called; at once if nobody knows yet what it offers."""
        reached, fault = await to_thread.run_sync(self._reached, spec)
        source = self._connecting.source(server_of(spec, reached), fault, rules)
        self._connecting.recall(source)
        if not source.tools():
            self.tasks.start_soon(source.settled)
        self.tasks.start_soon(source.run)
        return Serving(self, spec, source)

    def _reached(self, spec: ExtensionSpec) -> tuple[Stdio, str]:
        try:
            return stdio_of(spec, self.environ, self.parts.home.path), ""
        except OpenFangError as error:
            return Stdio(argv=spec.runtime.entry, cwd=spec.folder), error.message


@dataclass(frozen=True, slots=True)
class Serving:
    """One of them, as it is kept."""

    served: Served
    spec: ExtensionSpec
    source: McpSource

    async def settled(self) -> None:
        """Wait for its first list of tools, unless it is known what it offered last."""
        if not self.source.tools():
            await self.source.settled()

    def state(self) -> State:
        """Say how it is."""
        source, name = self.source, self.spec.id
        health = source.health
        return State(
            how="running" if source.pid else "failed" if health.error else "idle",
            reason="" if source.pid else health.error,
            pid=source.pid,
            layers=tuple(one.name for one in self.served.layers.get(name, ()) if one.present),
            restarts=max(0, self.served.connected[name] - 1),
            held_back=source.withheld,
        )


def server_of(spec: ExtensionSpec, reached: Stdio) -> ServerSpec:
    """Say what is known of it as a server."""
    return ServerSpec(
        kind=Kind.EXTENSION,
        name=spec.id,
        reached=reached,
        timeout=spec.timeout,
        trust=spec.trust,
        allow_tools=tuple(one.name for one in spec.capabilities),
        overrides={one.name: Override(timeout=one.timeout) for one in spec.capabilities},
        lazy=True,
        at_once=spec.at_once,
        weigh=partial(_weighed, spec, {one.name: one for one in spec.capabilities}),
    )


def stdio_of(spec: ExtensionSpec, environ: Mapping[str, str], home: Path) -> Stdio:
    """Say how it is started: what of its command is a file of its folder is that file."""
    own, may = home / f"{PLACE}{spec.id}", spec.permissions
    return Stdio(
        argv=tuple(_word(spec.folder, word) for word in spec.runtime.entry),
        cwd=own,
        environment=child_environment(
            environ,
            names=may.variables,
            literal=_NO_COPIES,
            home=str(own / "home"),
            tmp=str(own / "tmp"),
        ),
        sandbox=spec.sandbox,
        network=may.network,
        read=may.read,
        write=may.write,
        own=(spec.folder,),
        workspace=spec.workspace,
        trusted=False,
        memory=MOST_MEMORY_MB << 20,
        processes=MOST_PROCESSES,
        seal=seal_of(spec.folder, spec.digest),
    )


def _word(folder: Path, word: str) -> str:
    if word.startswith(("-", "/")):
        return word
    file = folder / word.removeprefix(_FILE)
    return str(file) if ".." not in file.parts and file.exists() else word


def _weighed(
    spec: ExtensionSpec, said: Mapping[str, Capability], foreign: ForeignTool, rules: Rules
) -> Declared:
    one = said.get(foreign.name, Capability(name=foreign.name))
    return declared_of(spec, one, foreign, rules)
