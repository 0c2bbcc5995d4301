"""How other people's programs are started: found, given folders, and confined where we can."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.core.errors import NotFound, SourceFailed
from openfang.host.chatter import Chatter
from openfang.host.egress import open_egress, proxy_variables
from openfang.host.household import Household, real
from openfang.host.process import Launch, LaunchFailed
from openfang.host.reach import Wish, confinement
from openfang.host.sandbox import (
    Bare,
    Bridged,
    Bubblewrap,
    Handed,
    Mount,
    SandboxMissing,
    active_layers,
    available,
    choose,
    confined,
    within,
)
from openfang.host.sockets import sweep
from openfang.host.visits import EgressRules, Refused
from openfang.host.witness import look_at
from openfang.safety.environment import DEFAULT_PATH
from openfang.sources.mcp.spec import ServerSpec, Stdio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AsyncExitStack

    from openfang.agents.code.start import Start
    from openfang.host.egress import Egress
    from openfang.host.machine import Layer
    from openfang.host.sandbox import Available, Network
    from openfang.host.visits import Visit

_log = logging.getLogger("openfang.mcp")
_SOCKETS: Final = "egress-*.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How a server is started, and what it is confined by; nothing confines an address."""

    spec: ServerSpec
    chosen: Bubblewrap | Bare | None = None
    network: Network = None

    def layers(self, pid: int) -> tuple[Layer, ...]:
        """Say what holds the child that was started so. Blocks."""
        if self.chosen is None:
            return ()
        return active_layers(self.chosen, self.network, look_at(pid))


@dataclass(slots=True)
class Confiner:
    """Knows what this machine has to confine programs with, and whose home is to be hidden."""

    home: Path
    user: Path
    _found: Available | None = None
    _told: set[str] = field(default_factory=set[str])

    async def prepared(self, spec: ServerSpec, stack: AsyncExitStack) -> Prepared:
        """Say how the server is really started; what it needs meanwhile is held by `stack`."""
        if not isinstance(spec.reached, Stdio):
            return Prepared(spec=spec)
        stdio = await to_thread.run_sync(_found, spec.reached)
        chosen = choose(stdio.sandbox, await self._available())
        if isinstance(chosen, Bare):
            self._tell(spec.name, chosen)
            return Prepared(spec=replace(spec, reached=stdio), chosen=chosen)
        egress = await self._egress(spec, stdio, chosen, stack)
        launch = await to_thread.run_sync(self._launch, stdio, chosen, egress)
        reached = replace(
            stdio,
            argv=launch.argv,
            cwd=launch.cwd,
            environment=launch.environment,
            prepare=launch.prepare,
        )
        network = _network(egress)
        return Prepared(spec=replace(spec, reached=reached), chosen=chosen, network=network)

    async def program(self, start: Start) -> Launch:
        """Say how a code agent is really started: no network, and its workspace to write."""
        chosen = await self._chosen(start)
        try:
            return await to_thread.run_sync(self._program, start, chosen)
        except OSError as error:
            raise LaunchFailed(f"The folders of {start.agent} cannot be made: {error}") from error

    async def _chosen(self, start: Start) -> Bubblewrap | Bare:
        try:
            chosen = choose(start.sandbox, await self._available())
        except SandboxMissing as error:
            raise SourceFailed(
                f"The agent {start.agent} is a program, and is not started: {error.message}",
                way_out='install bubblewrap; or, to run it bare, sandbox = "auto" in its manifest',
            ) from error
        if isinstance(chosen, Bare):
            self._tell(start.agent, chosen)
        return chosen

    async def layers(self, start: Start, pid: int) -> tuple[str, ...]:
        """Name what holds a code agent's process."""
        chosen = choose(start.sandbox, await self._available())
        found = await to_thread.run_sync(lambda: active_layers(chosen, None, look_at(pid)))
        return tuple(layer.name for layer in found if layer.present)

    async def _available(self) -> Available:
        if self._found is None:
            self._found = await to_thread.run_sync(available)
        return self._found

    def _program(self, start: Start, chosen: Bubblewrap | Bare) -> Launch:
        own = self.home / "children" / start.agent
        environment = _of_program(start, own)
        start.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        if isinstance(chosen, Bare):
            # Who is not alone in a namespace is counted together with all that its user runs.
            limits = replace(start.limits, processes=None)
            return Launch(
                argv=start.argv, cwd=start.workspace, environment=environment, limits=limits
            )
        wish = Wish(
            argv=start.argv,
            cwd=start.workspace,
            search=environment["PATH"],
            folder=own,
            workspace=start.workspace,
        )
        household = Household.look(user=self.user, ours=self.home)
        command, shown = confinement(wish, household, None)
        own_mounts = [one for path in start.read for one in _both(path)]
        own_mounts += _both(start.workspace, writable=True)
        # What lies in a folder that is shown as a whole is shown with it.
        others = (one for one in shown.mounts if not _lies_in(one, own_mounts))
        environment["OPENFANG_PROCESSES"] = str(start.limits.processes or 0)
        launch = Launch(
            argv=command,
            cwd=Path("/"),
            environment=environment,
            limits=replace(start.limits, processes=None),
        )
        return confined(launch, replace(shown, mounts=(*others, *own_mounts)), chosen)

    def _tell(self, server: str, bare: Bare) -> None:
        if server not in self._told:
            self._told.add(server)
            _log.warning("%s runs without a sandbox: %s", server, bare.reason)

    async def _egress(
        self, spec: ServerSpec, stdio: Stdio, chosen: Bubblewrap, stack: AsyncExitStack
    ) -> Egress | None:
        if not stdio.network:
            return None

        chatter = Chatter(lambda line: _log.warning("%s %s", spec.name, line))

        def noted(visit: Visit) -> None:
            if isinstance(visit, Refused):
                chatter.feed(f"was kept from {visit.host}: {visit.rule}\n".encode(errors="replace"))

        socket = None
        if not chosen.makes_networks:
            await to_thread.run_sync(sweep, stdio.cwd, _SOCKETS)
            # Somebody else may start the same server meanwhile.
            socket = stdio.cwd / _SOCKETS.replace("*", token_hex(8))
        return await stack.enter_async_context(
            open_egress(_rules(stdio), noted=noted, unix_socket=socket)
        )

    def _launch(self, stdio: Stdio, chosen: Bubblewrap, egress: Egress | None) -> Launch:
        wish = Wish(
            argv=stdio.argv,
            cwd=stdio.cwd,
            search=stdio.environment["PATH"],
            folder=stdio.cwd,
            read=stdio.read,
            write=stdio.write,
        )
        network = _network(egress)
        household = Household.look(user=self.user, ours=self.home)
        command, limits = confinement(wish, household, network)
        proxied = proxy_variables(_rules(stdio)) if egress else dict[str, str]()
        launch = Launch(
            argv=command,
            cwd=Path("/"),
            environment={**stdio.environment, **proxied},
            prepare=egress.prepare if egress and isinstance(network, Handed) else None,
        )
        return confined(launch, limits, chosen)


def _of_program(start: Start, own: Path) -> dict[str, str]:
    """The environment of a code agent: its Python, folders of its own, and little memory lost."""
    home, tmp = own / "home", own / "tmp"
    for folder in (home, tmp):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "PATH": f"{Path(start.argv[0]).parent}{os.pathsep}{DEFAULT_PATH}",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        # Each thread's own heap would reserve what it never uses, and that counts.
        "MALLOC_ARENA_MAX": "2",
        "OPENFANG_CPU": str(start.cpu_seconds),
    }


def _both(path: Path, *, writable: bool = False) -> Iterator[Mount]:
    """Show a path where its name says it is, and where it is."""
    for place in dict.fromkeys((path, real(path))):
        yield Mount(real(path), place, writable=writable)


def _lies_in(mount: Mount, folders: Sequence[Mount]) -> bool:
    return any(within(mount.place, folder.place) for folder in folders)


def _rules(stdio: Stdio) -> EgressRules:
    return EgressRules(allow_private=stdio.allow_private)


def _network(egress: Egress | None) -> Network:
    if egress is None:
        return None
    return Bridged(egress.unix_socket) if egress.unix_socket else Handed()


def _found(stdio: Stdio) -> Stdio:
    """Find the program and make its folders; what is missing is a fault of that server."""
    for name in ("HOME", "TMPDIR"):
        Path(stdio.environment[name]).mkdir(mode=0o700, parents=True, exist_ok=True)
    command, *arguments = stdio.argv
    program = shutil.which(command, path=stdio.environment["PATH"])
    if program is None:
        raise NotFound(f"The program {command} was not found.", way_out="install it")
    return replace(stdio, argv=(program, *arguments))
