"""How a server's program is started: found, given folders of its own, and confined where we can."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from openfang.core.errors import NotFound
from openfang.host.egress import PROXY_VARIABLES, open_egress
from openfang.host.household import Household
from openfang.host.process import Launch
from openfang.host.reach import Wish, confinement
from openfang.host.sandbox import Bare, Bridged, Bubblewrap, Handed, available, choose, confined
from openfang.host.visits import EgressRules, Refused
from openfang.sources.mcp.spec import ServerSpec, Stdio

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from openfang.host.egress import Egress
    from openfang.host.sandbox import Available, Network
    from openfang.host.visits import Visit

_log = logging.getLogger("openfang.mcp")
_SOCKET = "egress.sock"


@dataclass(slots=True)
class Confiner:
    """Knows what this machine has to confine programs with, and whose home is to be hidden."""

    home: Path
    user: Path
    _found: Available | None = None
    _told: set[str] = field(default_factory=set[str])

    async def prepared(self, spec: ServerSpec, stack: AsyncExitStack) -> ServerSpec:
        """Say how the server is really started; what it needs meanwhile is held by `stack`."""
        if not isinstance(spec.reached, Stdio):
            return spec
        stdio = await to_thread.run_sync(_found, spec.reached)
        if self._found is None:
            self._found = await to_thread.run_sync(available)
        chosen = choose(stdio.sandbox, self._found)
        if isinstance(chosen, Bare):
            self._tell(spec.name, chosen)
            return replace(spec, reached=stdio)
        egress = await self._egress(spec, stdio, chosen, stack)
        launch = await to_thread.run_sync(self._launch, stdio, chosen, egress)
        reached = replace(
            stdio,
            argv=launch.argv,
            cwd=launch.cwd,
            environment=launch.environment,
            prepare=launch.prepare,
        )
        return replace(spec, reached=reached)

    def _tell(self, server: str, bare: Bare) -> None:
        if server not in self._told:
            self._told.add(server)
            _log.warning("%s runs without a sandbox: %s", server, bare.reason)

    async def _egress(
        self, spec: ServerSpec, stdio: Stdio, chosen: Bubblewrap, stack: AsyncExitStack
    ) -> Egress | None:
        if not stdio.network:
            return None

        def noted(visit: Visit) -> None:
            if isinstance(visit, Refused):
                _log.warning("%s was kept from %s: %s", spec.name, visit.host, visit.rule)

        rules = EgressRules(allow_private=stdio.allow_private)
        socket = None if chosen.makes_networks else stdio.cwd / _SOCKET
        return await stack.enter_async_context(open_egress(rules, noted=noted, unix_socket=socket))

    def _launch(self, stdio: Stdio, chosen: Bubblewrap, egress: Egress | None) -> Launch:
        wish = Wish(
            argv=stdio.argv,
            cwd=stdio.cwd,
            search=stdio.environment["PATH"],
            folder=stdio.cwd,
            read=stdio.read,
            write=stdio.write,
        )
        network: Network = None
        if egress is not None:
            network = Bridged(egress.unix_socket) if egress.unix_socket else Handed()
        household = Household.look(user=self.user, ours=self.home)
        command, limits = confinement(wish, household, network)
        launch = Launch(
            argv=command,
            cwd=Path("/"),
            environment={**stdio.environment, **(PROXY_VARIABLES if egress else {})},
            prepare=egress.prepare if egress and isinstance(network, Handed) else None,
        )
        return confined(launch, limits, chosen)


def _found(stdio: Stdio) -> Stdio:
    """Find the program and make its folders; what is missing is a fault of that server."""
    for name in ("HOME", "TMPDIR"):
        Path(stdio.environment[name]).mkdir(mode=0o700, parents=True, exist_ok=True)
    command, *arguments = stdio.argv
    program = shutil.which(command, path=stdio.environment["PATH"])
    if program is None:
        raise NotFound(f"The program {command} was not found.", way_out="install it")
    return replace(stdio, argv=(program, *arguments))
