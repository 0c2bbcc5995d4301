"""`openfang servers login`: a person signs in to a server, with a browser, in this process.

The tokens go to the encrypted secret store, where the node finds them.
"""

from __future__ import annotations

from collections import ChainMap
from contextlib import AsyncExitStack
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from anyio import to_thread

from openfang.app.home.new import require_master_key
from openfang.app.home.paths import Home
from openfang.app.servers.sealing import check_references
from openfang.app.servers.translate import http_of
from openfang.app.servers.vault import StoredVault
from openfang.config.home import find_home
from openfang.config.load import load
from openfang.config.servers import HttpTransport
from openfang.core.errors import Conflict, NotFound
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.host.secrets import MasterKey, SecretStore
from openfang.safety.urls import parse_target
from openfang.sources.mcp.oauth.account import Account, read_account
from openfang.sources.mcp.oauth.challenge import Challenge, read_challenge
from openfang.sources.mcp.oauth.sign_in import SignIn, entry_name
from openfang.sources.mcp.transport import owned_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.host.callback import Callback
    from openfang.host.http import HttpClient
    from openfang.sources.mcp.spec import Http, OAuth

_SECOND: Final = 1_000_000_000
_CHALLENGING: Final = (401, 403)
_PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
_ASKED: Final = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


@dataclass(frozen=True, slots=True)
class _Person:
    """Whoever reads what is shown, and opens it in a browser of this machine."""

    callback: Callback
    show: Callable[[str], None]

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent when it is done."""
        return self.callback.redirect_uri

    async def ask(self, url: str) -> Mapping[str, str]:
        """Show an address, and wait for the browser to come back."""
        state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        self.show(url)
        return await self.callback.answer(state)


async def sign_in(
    name: str, environ: Mapping[str, str], *, show: Callable[[str], None]
) -> dict[str, Any]:
    """Sign in to a server of the home; `show` gets the address that a person has to open."""
    from openfang.host.callback import open_callback  # noqa: PLC0415 - as below
    from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s

    reached, store = await to_thread.run_sync(_found, name, environ)
    oauth = _checked(name, reached)
    vault = StoredVault(store)
    former = await vault.read(entry_name(name))
    async with AsyncExitStack() as stack:
        callback = await stack.enter_async_context(open_callback(*_ports(oauth, former)))
        http = await stack.enter_async_context(HttpClient())
        tasks = await stack.enter_async_context(owned_tasks())
        signing = SignIn(
            name,
            reached,
            oauth,
            http=http,
            tasks=tasks,
            vault=vault,
            consent=_Person(callback, show),
        )
        account = await signing.sign_in(await _challenged(http, reached))
    return _body(name, account)


def open_in_browser(url: str) -> None:
    """Open an address, without waiting for the browser."""
    from openfang.host.browser import open_browser  # noqa: PLC0415 - few commands need it

    Thread(target=open_browser, args=(url,), daemon=True).start()


def _found(name: str, environ: Mapping[str, str]) -> tuple[Http, SecretStore]:
    home = Home(find_home(environ))
    config = load(home.path, environ)
    server = next((one for one in config.mcp_servers if one.name == name), None)
    if server is None:
        raise NotFound(f"No MCP server {name} is configured.", way_out="openfang servers list")
    if not isinstance(server.transport, HttpTransport):
        raise Conflict(
            f"{name} is started by a command, which no browser signs in to.",
            way_out="give it what it needs in `env`",
        )
    require_master_key(home, config)
    store = SecretStore(home.path, MasterKey.open(home.path, keyring=config.secrets.keyring))
    kept = {known: store.get(known) for known in store.names()}
    variables = ChainMap(dict(environ), kept)
    check_references(server, variables)
    return http_of(server, server.transport, variables, home.path), store


def _checked(name: str, reached: Http) -> OAuth:
    oauth = reached.sign_in
    if oauth is None:
        raise Conflict(
            f"{name} has a header Authorization in its entry, which is sent as it is.",
            way_out="take it out of `headers` to sign in",
        )
    if oauth.grant == "client_credentials":
        raise Conflict(
            f"{name} is signed in to by the client's own right, without a person.",
            way_out=f"openfang servers test {name}",
        )
    return oauth


def _ports(oauth: OAuth, former: str | None) -> tuple[int, ...]:
    """Come back to where a client was registered for: to another place it may not lead."""
    if oauth.redirect_port:
        return (oauth.redirect_port,)
    account = read_account(former) if former else None
    known = (account.client.get("redirect_uris") or [""])[0] if account else ""
    return (urlsplit(known).port or 0, 0)


async def _challenged(http: HttpClient, reached: Http) -> Challenge:
    """Ask without a token, and read what the server says of tokens."""
    from openfang.host.http import Request  # noqa: PLC0415 - as above

    answer = await http.fetch(
        Request(
            url=reached.url,
            allow_hosts=(parse_target(reached.url).host,),
            method="POST",
            headers={**reached.headers, **_ASKED},
            body=_PING,
            allow_private=reached.allow_private,
        )
    )
    said = [text for name, text in answer.headers if name.lower() == "www-authenticate"]
    # Whatever is missing, it is signed in to from the beginning.
    return read_challenge(401, said if answer.status in _CHALLENGING else ())


def _body(name: str, account: Account) -> dict[str, Any]:
    expires = account.expires_at
    return {
        "server": name,
        "issuer": account.issuer or None,
        "scopes": account.scope.split(),
        "expires_at": None if expires is None else moment(int(expires * _SECOND)),
        "renewed": bool(account.refresh),
    }
