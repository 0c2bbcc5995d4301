"""How other people's programs are started: found, given folders, and confined where we can."""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from anyio import CancelScope, to_thread

from openfang.core.errors import NotFound, SourceFailed
from openfang.core.values import dataclass
from openfang.host.backends import (
    Bare,
    Landlocked,
    SandboxMissing,
    active_layers,
    available,
    choose,
    sandboxed,
    uncounted,
)
from openfang.host.cgroups import hierarchy
from openfang.host.chatter import Chatter
from openfang.host.command import Command
from openfang.host.egress import open_egress, proxy_variables
from openfang.host.household import Household, real
from openfang.host.landlock import Version
from openfang.host.process import Launch, LaunchFailed, Limits
from openfang.host.reach import Wish, confinement
from openfang.host.sandbox import Bridged, Bubblewrap, Handed, Local, Mount, within
from openfang.host.sockets import sweep
from openfang.host.users import own_user
from openfang.host.visits import EgressRules, Refused
from openfang.host.witness import look_at
from openfang.safety.environment import DEFAULT_PATH
from openfang.sources.mcp.spec import ServerSpec, Stdio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from openfang.host.backends import Available, Chosen
    from openfang.host.cgroups import Group
    from openfang.host.children.start import Start
    from openfang.host.egress import Egress
    from openfang.host.machine import Layer
    from openfang.host.sandbox import Confinement, Mode, Network
    from openfang.host.visits import Visit

_log = logging.getLogger("openfang.mcp")
OPEN_FILES: Final = 8192
FILE_SIZE: Final = 8 << 30
_SOCKETS: Final = "egress-*.sock"


@cache
def _offered() -> Available:
    """Try what this machine has, once."""
    return available()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How a server is started, and what it is confined by; nothing confines an address."""

    spec: ServerSpec
    chosen: Chosen | None = None
    network: Network = None

    def layers(self, pid: int) -> tuple[Layer, ...]:
        """Say what holds the child that was started so. Blocks."""
        if self.chosen is None:
            return ()
        return active_layers(self.chosen, self.network, look_at(pid))


@dataclass(frozen=True, slots=True)
class _Held:
    launch: Launch
    network: Network


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
        chosen = await self._chosen(spec.name, stdio.sandbox)
        held = await stack.enter_async_context(self._held(_of_server(spec.name, stdio), chosen))
        reached = replace(stdio, launch=held.launch)
        return Prepared(spec=replace(spec, reached=reached), chosen=chosen, network=held.network)

    async def program(self, start: Start, stack: AsyncExitStack) -> Launch:
        """Say how a warm child is really started; what it needs meanwhile is held by `stack`."""
        try:
            chosen = await self._chosen(start.name, start.sandbox)
        except SandboxMissing as error:
            raise SourceFailed(
                f"{start.who} is a program, and is not started: {error.message}",
                way_out='install bubblewrap; or, to run it bare, sandbox = "auto" in its manifest',
            ) from error
        command = _of_program(start, self.home / start.place, chosen)
        return (await stack.enter_async_context(self._held(command, chosen))).launch

    @asynccontextmanager
    async def command(self, command: Command) -> AsyncGenerator[Launch]:
        """Say how a program that runs once is really started, and hold what it needs meanwhile."""
        chosen = await self._chosen(command.name, command.sandbox)
        async with self._held(command, chosen) as held:
            yield held.launch

    async def layers(self, start: Start, pid: int) -> tuple[str, ...]:
        """Name what holds a warm child."""
        chosen = choose(start.sandbox, await self._available())
        network = Handed() if start.network else None
        found = await to_thread.run_sync(lambda: active_layers(chosen, network, look_at(pid)))
        return tuple(layer.name for layer in found if layer.present)

    async def _chosen(self, name: str, mode: Mode) -> Chosen:
        chosen = choose(mode, await self._available())
        if not isinstance(chosen, Bubblewrap):
            self._tell(name, chosen)
        return chosen

    async def _available(self) -> Available:
        return self._found or await to_thread.run_sync(_offered)

    @asynccontextmanager
    async def _held(self, command: Command, chosen: Chosen) -> AsyncGenerator[_Held]:
        """Hold what a command needs as long as it runs: its way out."""
        async with AsyncExitStack() as stack:
            egress = None
            if command.network and _can_be_led(chosen):
                egress = await stack.enter_async_context(await _egress(command, chosen))
            launch = await self._launched(command, chosen, egress)
            group = await to_thread.run_sync(_group, command.limits)
            if group is not None:
                stack.push_async_callback(_removed, group)
                launch = replace(launch, join=group.join)
            yield _Held(launch, _network(egress))

    async def _launched(self, command: Command, chosen: Chosen, egress: Egress | None) -> Launch:
        try:
            return await to_thread.run_sync(self._launch, command, chosen, egress)
        except OSError as error:
            raise LaunchFailed(f"The folders of {command.name} cannot be made: {error}") from error

    def _launch(self, command: Command, chosen: Chosen, egress: Egress | None) -> Launch:
        for folder in (command.home, command.tmp, command.workspace or command.home):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        launch = Launch(
            argv=command.argv,
            cwd=command.cwd,
            environment=command.environment,
            stdin=command.stdin,
            timeout=command.timeout,
            output_limit=command.output_limit,
            limits=command.limits,
        )
        if isinstance(chosen, Bare):
            return uncounted(launch)
        network = _network(egress)
        household = Household.look(user=self.user, ours=self.home)
        argv, shown = confinement(_wish(command), household, network)
        proxied = proxy_variables(_rules(command), egress.port) if egress else dict[str, str]()
        launch = replace(
            launch,
            argv=argv,
            cwd=Path("/"),
            environment={**command.environment, **proxied},
            prepare=egress.prepare if egress and isinstance(network, Handed) else None,
        )
        shown = replace(_with_own(shown, command), user=own_user(command.home))
        return sandboxed(launch, shown, chosen)

    def _tell(self, server: str, chosen: Landlocked | Bare) -> None:
        if server not in self._told:
            self._told.add(server)
            without = "a" if isinstance(chosen, Bare) else "a whole"
            _log.warning("%s runs without %s sandbox: %s", server, without, chosen.reason)


def _of_server(name: str, stdio: Stdio) -> Command:
    """What an operator wrote into the arguments of a server is what it is for."""
    return Command(
        name=name,
        argv=stdio.argv,
        environment=stdio.environment,
        cwd=stdio.cwd,
        home=stdio.cwd / "home",
        tmp=stdio.cwd / "tmp",
        workspace=stdio.workspace,
        own=stdio.own,
        read=stdio.read,
        write=stdio.write,
        trusted=stdio.trusted,
        limits=_of_servers(stdio),
        sandbox=stdio.sandbox,
        network=stdio.network,
        allow_private=stdio.allow_private,
    )


def _of_servers(stdio: Stdio) -> Limits:
    """What a server may take. Its address space is not bounded: Node reserves more than it uses."""
    return Limits(
        # A process that hears of it can answer; one that the group is too small for is killed.
        data=stdio.memory and stdio.memory * 7 // 8,
        group_memory=stdio.memory,
        processes=stdio.processes,
        group_processes=stdio.processes,
        open_files=OPEN_FILES,
        file_size=FILE_SIZE,
    )


def _of_program(start: Start, own: Path, chosen: Chosen) -> Command:
    """A warm child: its runtime, folders of its own, and little memory lost."""
    home, tmp = own / "home", own / "tmp"
    environment = {
        "PATH": f"{Path(start.argv[0]).parent}{os.pathsep}{DEFAULT_PATH}",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        # Each thread's own heap would reserve what it never uses, and that counts.
        "MALLOC_ARENA_MAX": "2",
        "OPENFANG_CPU": str(start.cpu_seconds),
        **start.variables,
    }
    if isinstance(chosen, Bubblewrap):
        # Who is not alone in a namespace is counted together with all that its user runs.
        environment["OPENFANG_PROCESSES"] = str(start.limits.processes or 0)
    return Command(
        name=start.name,
        argv=start.argv,
        environment=environment,
        cwd=start.workspace,
        home=home,
        tmp=tmp,
        workspace=start.workspace,
        own=start.read,
        read=start.fs_read,
        write=start.fs_write,
        network=start.network,
        trusted=True,
        limits=replace(start.limits, processes=None),
    )


def _wish(command: Command) -> Wish:
    return Wish(
        argv=command.argv,
        cwd=command.cwd,
        search=command.environment["PATH"],
        home=command.home,
        tmp=command.tmp,
        trusted=command.trusted,
        read=command.read,
        write=command.write,
        workspace=command.workspace,
    )


def _with_own(shown: Confinement, command: Command) -> Confinement:
    """Show what is the child's own, wherever it lies: our home is hidden from all else."""
    own = [one for path in command.own for one in _both(path)]
    if command.workspace:
        own += _both(command.workspace, writable=True)
    # What lies in a folder that is shown as a whole is shown with it.
    others = (one for one in shown.mounts if not _lies_in(one, own))
    return replace(shown, mounts=(*others, *own))


def _both(path: Path, *, writable: bool = False) -> Iterator[Mount]:
    """Show a path where its name says it is, and where it is."""
    for place in dict.fromkeys((path, real(path))):
        yield Mount(real(path), place, writable=writable)


def _lies_in(mount: Mount, folders: Sequence[Mount]) -> bool:
    return any(within(mount.place, folder.place) for folder in folders)


def _group(limits: Limits) -> Group | None:
    """Make a group for what is bounded together; None where nothing is, or nobody can."""
    found = hierarchy() if limits.group_memory or limits.group_processes else None
    with suppress(OSError):
        return found and found.made(memory=limits.group_memory, processes=limits.group_processes)
    return None


async def _removed(group: Group) -> None:
    with CancelScope(shield=True):
        await to_thread.run_sync(group.remove)


def _can_be_led(chosen: Chosen) -> bool:
    """Whether a child's network can be narrowed to our proxy; if not, a fence leaves it none."""
    match chosen:
        case Bubblewrap():
            return True
        case Landlocked(version=version):
            return Version(version).holds_ports
        case Bare():
            return False


async def _egress(command: Command, chosen: Chosen) -> AbstractAsyncContextManager[Egress]:
    chatter = Chatter(lambda line: _log.warning("%s %s", command.name, line))

    def noted(visit: Visit) -> None:
        if isinstance(visit, Refused):
            chatter.feed(f"was kept from {visit.host}: {visit.rule}\n".encode(errors="replace"))

    if isinstance(chosen, Landlocked):
        return open_egress(_rules(command), noted=noted, local=True)
    socket = None
    if isinstance(chosen, Bubblewrap) and not chosen.makes_networks:
        folder = command.home.parent
        await to_thread.run_sync(sweep, folder, _SOCKETS)
        # Somebody else may start the same meanwhile.
        socket = folder / _SOCKETS.replace("*", token_hex(8))
    return open_egress(_rules(command), noted=noted, unix_socket=socket)


def _rules(command: Command) -> EgressRules:
    return EgressRules(allow_private=command.allow_private, allow_hosts=command.hosts)


def _network(egress: Egress | None) -> Network:
    if egress is None:
        return None
    if egress.port is not None:
        return Local(egress.port)
    return Bridged(egress.unix_socket) if egress.unix_socket else Handed()


def _found(stdio: Stdio) -> Stdio:
    """Find the program and make its folders; what is missing is a fault of that server."""
    for name in ("HOME", "TMPDIR"):
        Path(stdio.environment[name]).mkdir(mode=0o700, parents=True, exist_ok=True)
    if stdio.seal is not None:
        stdio.seal.check()
    command, *arguments = stdio.argv
    program = shutil.which(command, path=stdio.environment["PATH"])
    if program is None:
        raise NotFound(f"The program {command} was not found.", way_out="install it")
    return replace(stdio, argv=(program, *arguments))
