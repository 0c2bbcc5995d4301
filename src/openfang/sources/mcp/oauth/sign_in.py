"""Signing in to a server over HTTP: which token is sent, when another is asked for, where it stays.

The library that knows OAuth takes 1.5 s to import; it is imported, in a thread, when a token has to
be asked for. While there is one that is good, it is only sent.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
from anyio import CancelScope, to_thread

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass
from openfang.sources.mcp.oauth.account import Account, read_account
from openfang.sources.mcp.oauth.challenge import Challenge, join_scopes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from anyio.abc import TaskGroup

    from openfang.host.http import HttpClient
    from openfang.sources.mcp.spec import Http, OAuth

PERSON_SECONDS: Final = 300.0
_SECONDS: Final = 30.0
_FLOW: Final = "openfang.sources.mcp.oauth.flow"
_LONGEST_NAME: Final = 128


class SignInFailed(OpenFangError):  # noqa: N818 - it reads as what it is
    """A server wants a sign-in that could not be made, or not without a person."""

    code = "sign_in_failed"


class Revoked(SignInFailed):
    """The authorization server gives no new token for what is kept."""


class Vault(Protocol):
    """Keeps texts by name, encrypted; what is secret in them is redacted everywhere."""

    async def read(self, name: str) -> str | None:
        """Read a text, if there is one."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Keep a text in the place of the one before."""
        ...

    async def replace(self, name: str, text: str) -> bool:
        """Keep a text in the place of the one before, if that is there; say whether it was."""
        ...

    async def remove(self, name: str) -> None:
        """Delete a text, if there is one."""
        ...

    async def learn(self, name: str, secrets: Iterable[str]) -> None:
        """Know these as secret: they belong to this name, in the place of older ones."""
        ...


class Consent(Protocol):
    """A person with a browser, or what stands for one."""

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent when it is done."""
        ...

    async def ask(self, url: str) -> Mapping[str, str]:
        """Show this address, and give the parameters that the browser came back with."""
        ...


class Credentials(Protocol):
    """What makes a server let us in."""

    async def headers(self) -> Mapping[str, str]:
        """Give what to send now. Raises `SignInFailed`."""
        ...

    async def challenged(self, sent: Mapping[str, str], challenge: Challenge) -> None:
        """Get something better than what was sent, or raise `SignInFailed`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A token is wanted: for which server, as who, and why the one that was sent is no good."""

    name: str
    reached: Http
    oauth: OAuth
    http: HttpClient
    account: Account
    challenge: Challenge
    consent: Consent | None = None
    expired: bool = False


@dataclass(slots=True)
class _Flight:
    """One attempt to get a token, which everybody waits for who needs one."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    failure: SignInFailed | None = None


def entry_name(server: str) -> str:
    """Name the vault's entry of a server: no `${NAME}` can refer to it."""
    name = f"oauth:{server}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"oauth:/{sha256(server.encode()).hexdigest()}"


class SignIn:
    """One server's credentials. `tasks` outlive whoever asks: a token on its way is not lost.

    Whoever holds `turn` may spend what is kept: a refresh token is good for one use.
    """

    def __init__(  # noqa: PLR0913 - what a sign-in needs
        self,
        name: str,
        reached: Http,
        oauth: OAuth,
        *,
        http: HttpClient,
        tasks: TaskGroup,
        vault: Vault,
        consent: Consent | None = None,
        turn: anyio.Lock | None = None,
    ) -> None:
        self._name = name
        self._reached = reached
        self._oauth = oauth
        self._http = http
        self._tasks = tasks
        self._vault = vault
        self._consent = consent
        self._turn = turn or anyio.Lock()
        self._entry = entry_name(name)
        self._account: Account | None = None
        self._kept = False
        self._headers: Mapping[str, str] = {}
        self._stale_at: float | None = None
        self._flight: _Flight | None = None

    @property
    def account(self) -> Account:
        """What is known of the sign-in."""
        return self._account or Account(url=self._reached.url, grant=self._oauth.grant)

    async def headers(self) -> Mapping[str, str]:
        """Give what to send; a token that is about to end is renewed before."""
        if self._account is None:
            stored = await self._stored()
            self._take(stored or self.account, kept=stored is not None)
        if self._stale_at is not None and time.time() >= self._stale_at:
            await self._renewed()
        return self._headers

    async def challenged(self, sent: Mapping[str, str], challenge: Challenge) -> None:
        """Get a better token, together with everybody else who needs one."""
        if sent != self._headers:
            return  # somebody got another one meanwhile
        await self._landed(challenge, expired=not challenge.wants_scope)

    async def sign_in(self, challenge: Challenge) -> Account:
        """Get a token anew, with the person's consent, whatever there is already."""
        stored = await self._stored()
        self._take(replace(stored or self.account, refresh=""), kept=stored is not None)
        await self._landed(challenge, expired=True)
        return self.account

    async def _renewed(self) -> None:
        if not self.account.refresh:
            # Without a token the server says what it wants, which helps to ask for the next one.
            self._headers, self._stale_at = {}, None
            return
        try:
            await self._landed(Challenge(), expired=True)
        except SignInFailed:
            if self.account.expires_at is None or time.time() >= self.account.expires_at:
                raise

    async def _landed(self, challenge: Challenge, *, expired: bool) -> None:
        flight = self._flight
        if flight is None:
            flight = self._flight = _Flight()
            self._tasks.start_soon(self._fly, flight, challenge, expired)
        await flight.ended.wait()
        if flight.failure is not None:
            raise flight.failure

    async def _fly(self, flight: _Flight, challenge: Challenge, expired: bool) -> None:  # noqa: FBT001 - a task's arguments
        seconds = PERSON_SECONDS if self._consent else _SECONDS
        flight.failure = SignInFailed(f"The sign-in to {self._name} was broken off.")
        try:
            # A refresh token is good for one use: an answer that nobody reads signs us out.
            with CancelScope(shield=self._consent is None), anyio.fail_after(seconds):
                async with self._turn:
                    await self._obtain(challenge, expired=expired)
            flight.failure = None
        except SignInFailed as failure:
            flight.failure = failure
        except OpenFangError as error:
            flight.failure = SignInFailed(error.message, way_out=error.way_out)
        except TimeoutError:
            flight.failure = SignInFailed(
                f"Nobody signed in to {self._name} within {seconds:g} s."
                if self._consent
                else f"The sign-in to {self._name} took longer than {seconds:g} s.",
                way_out=f"openfang servers login {self._name}",
            )
        finally:
            self._flight = None
            flight.ended.set()

    async def _obtain(self, challenge: Challenge, *, expired: bool) -> None:
        stored = await self._stored()
        if stored is not None and stored.access not in {"", self.account.access}:
            self._take(stored, kept=True)  # somebody else of this home has been faster
            return
        if stored is None and self._kept:
            self._forget()  # signed out meanwhile
        wish = Wish(
            name=self._name,
            reached=self._reached,
            oauth=self._oauth,
            http=self._http,
            account=self.account,
            challenge=replace(challenge, scope=self._scope(challenge)),
            consent=self._consent,
            expired=expired,
        )
        await self._check_possible(wish)
        flow = cast("Any", await to_thread.run_sync(import_module, _FLOW))
        try:
            account: Account = await flow.obtain(wish)
        except Revoked:
            await self._keep(replace(self.account, access="", refresh="", expires_at=None))
            raise
        await self._keep(account)

    def _scope(self, challenge: Challenge) -> str:
        """What to ask for: what the operator says, else the server; and what was missing before."""
        if challenge.wants_scope:
            return join_scopes(self.account.scope, self.account.wanted, challenge.scope)
        asked = " ".join(self._oauth.scopes) or challenge.scope
        return join_scopes(asked, self.account.wanted)

    async def _check_possible(self, wish: Wish) -> None:
        """Refuse what only a person can do."""
        if self._consent or self._oauth.grant == "client_credentials":
            return
        way_out = f"openfang servers login {self._name}"
        if wish.challenge.wants_scope:
            await self._keep(replace(self.account, wanted=wish.challenge.scope))
            raise SignInFailed(
                f"{self._reached.shown} wants a sign-in for more: {wish.challenge.scope}",
                way_out=way_out,
            )
        if not self.account.refresh:
            again = "the sign-in has ended" if self.account.access else "it wants a sign-in"
            raise SignInFailed(f"{self._reached.shown}: {again}", way_out=way_out)

    async def _stored(self) -> Account | None:
        """Read what is kept; what was made for another address or client is nobody's."""
        text = await self._vault.read(self._entry)
        found = read_account(text) if text else None
        fitting = found if found and found.fits(self._reached) else None
        await self._learn(fitting or self.account)
        return fitting

    async def _keep(self, account: Account) -> None:
        """Write it down; what was there and is gone has been signed out of, and stays so."""
        await self._learn(account)
        self._take(account, kept=self._kept)
        if not self._kept or self._consent:
            await self._vault.write(self._entry, account.text())
            self._kept = True
        elif not await self._vault.replace(self._entry, account.text()):
            self._forget()
            raise SignInFailed(
                f"{self._reached.shown} was signed out of meanwhile",
                way_out=f"openfang servers login {self._name}",
            )

    async def _learn(self, account: Account) -> None:
        given = (self._oauth.client_secret, self._oauth.private_key)
        await self._vault.learn(self._entry, {*account.secrets, *filter(None, given)})

    def _forget(self) -> None:
        self._account, self._kept = None, False
        self._headers, self._stale_at = {}, None

    def _take(self, account: Account, *, kept: bool) -> None:
        self._account, self._kept = account, kept
        self._headers = account.headers
        self._stale_at = account.stale_at if account.access else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIns:
    """Makes the credentials of each server; those of one entry take turns."""

    vault: Vault
    consent: Consent | None = None
    _turns: dict[str, anyio.Lock] = field(default_factory=dict[str, anyio.Lock], repr=False)

    def __call__(
        self, name: str, reached: Http, http: HttpClient, tasks: TaskGroup
    ) -> SignIn | None:
        """Make them; none where the operator gave some."""
        oauth = reached.sign_in
        if oauth is None:
            return None
        return SignIn(
            name,
            reached,
            oauth,
            http=http,
            tasks=tasks,
            vault=self.vault,
            consent=self.consent,
            turn=self._turns.setdefault(entry_name(name), anyio.Lock()),
        )
