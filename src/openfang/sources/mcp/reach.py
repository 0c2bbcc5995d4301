"""From what is known of a server to a connection; what was found out before is remembered."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from openfang.host.process import Launch, Limits
from openfang.sources.mcp.connection import Connection, open_connection
from openfang.sources.mcp.questions import relayed
from openfang.sources.mcp.spec import Http, Stdio
from openfang.sources.mcp.stdio import open_stdio
from openfang.sources.mcp.transport import ProbeFatal, owned_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup

    from openfang.host.http import HttpClient
    from openfang.protocols.mcp.meta import ClientInfo
    from openfang.sources.mcp.greeting import Declared, Era
    from openfang.sources.mcp.oauth.sign_in import SignIns
    from openfang.sources.mcp.spec import ServerSpec
    from openfang.sources.mcp.transport import Peer
    from openfang.sources.mcp.wire import Asks

_CONNECTIONS: Final = 64


class Reach:
    """Makes connections. `complained` hears what servers write for people: name and line.

    Without `capabilities` of our own, what is declared is that our clients can be asked.
    """

    def __init__(
        self,
        *,
        client: ClientInfo,
        capabilities: Mapping[str, Any] | None = None,
        complained: Callable[[str, str], None],
        limits: Limits | None = None,
        sign_ins: SignIns | None = None,
    ) -> None:
        self._client = client
        self._capabilities = capabilities
        self._complained = complained
        self._limits = limits or Limits()
        self._sign_ins = sign_ins
        self._known: dict[str, tuple[object, str, Era]] = {}

    def __call__(self, spec: ServerSpec, peer: Peer) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection to this server."""
        match spec.reached:
            case Stdio():
                return self._stdio(spec, spec.reached, peer)
            case Http():
                return self._http(spec, spec.reached, peer)

    def _declared(self, spec: ServerSpec) -> Declared | Mapping[str, Any]:
        """Say what can be asked: of us ourselves, or else of the clients that we stand between."""
        return relayed(spec) if self._capabilities is None else self._capabilities

    @asynccontextmanager
    async def _stdio(
        self, spec: ServerSpec, reached: Stdio, peer: Peer
    ) -> AsyncGenerator[Connection]:
        async with AsyncExitStack() as stack:
            try:
                connection = await self._start(stack, spec, reached, peer)
            except ProbeFatal:
                # It cannot bear the question which revisions it speaks: it is not asked again.
                await stack.aclose()
                self._known[spec.name] = (reached, "stdio", "handshake")
                connection = await self._start(stack, spec, reached, peer)
            self._remember(spec.name, reached, connection)
            yield connection

    async def _start(
        self, stack: AsyncExitStack, spec: ServerSpec, reached: Stdio, peer: Peer
    ) -> Connection:
        launch = reached.launch or Launch(
            argv=reached.argv,
            cwd=reached.cwd,
            environment=reached.environment,
            limits=self._limits,
        )

        def complained(line: str) -> None:
            self._complained(spec.name, line)

        transport = await stack.enter_async_context(open_stdio(launch, peer, complained=complained))
        known = self._found(spec.name, reached)
        return await open_connection(
            transport,
            peer,
            client=self._client,
            capabilities=self._declared(spec),
            known=known[1] if known else None,
        )

    @asynccontextmanager
    async def _http(
        self, spec: ServerSpec, reached: Http, peer: Peer
    ) -> AsyncGenerator[Connection]:
        from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s
        from openfang.sources.mcp.find import find_http  # noqa: PLC0415 - as above

        # A pool for each: no server waits for another's, and all of it ends with the connection.
        async with (
            HttpClient(connections=_CONNECTIONS) as http,
            owned_tasks() as tasks,
            find_http(
                self._signed(spec.name, reached, http, tasks),
                reached,
                peer,
                client=self._client,
                capabilities=self._declared(spec),
                known=self._found(spec.name, reached),
            ) as connection,
        ):
            self._remember(spec.name, reached, connection)
            yield connection

    def _signed(self, name: str, reached: Http, http: HttpClient, tasks: TaskGroup) -> Asks:
        """Let the client send what the server knows us by, if there is anything."""
        from openfang.sources.mcp.oauth.signed import Signed  # noqa: PLC0415 - as above

        credentials = self._sign_ins and self._sign_ins(name, reached, http, tasks)
        return Signed(http, credentials) if credentials else http

    def _found(self, name: str, reached: object) -> tuple[str, Era] | None:
        """What was found out about this server; it has to prove true to be kept."""
        known = self._known.pop(name, None)
        return known[1:] if known is not None and known[0] == reached else None

    def _remember(self, name: str, reached: object, connection: Connection) -> None:
        self._known[name] = (reached, connection.transport.kind, connection.era)
