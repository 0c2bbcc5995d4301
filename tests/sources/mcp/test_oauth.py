"""Signing in: against a real authorization server, over loopback."""

from __future__ import annotations

import http.client
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import anyio.lowlevel
import jwt
import pytest
from anyio import to_thread
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.auth import Agreeable
from tests.edges.live import live as live_node
from tests.host.alone import check_alone
from tests.sources.mcp import inside_oauth
from tests.sources.mcp.conftest import US, Ear
from tests.sources.mcp.hostility import until
from tests.sources.mcp.peers.authority import Authority, Client, Protected, authority
from tests.sources.mcp.peers.web import serving

from openfang.app.servers.vault import StoredVault
from openfang.core.errors import OpenFangError
from openfang.host.secrets import MasterKey, SecretStore
from openfang.safety.redact import Redactor
from openfang.sources.mcp.oauth.account import read_account
from openfang.sources.mcp.oauth.challenge import Challenge, join_scopes, read_challenge
from openfang.sources.mcp.oauth.key import assertions
from openfang.sources.mcp.oauth.sign_in import SignIns, entry_name
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.spec import Http, OAuth, ServerSpec
from openfang.sources.mcp.transport import AuthNeeded, Lost
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping
    from pathlib import Path

    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.oauth.sign_in import Consent

pytestmark = pytest.mark.requirement("C18.3")
LOGIN = "openfang servers login guarded"
SECRET = "the-secret-of-the-client"


@dataclass(frozen=True, slots=True)
class World:
    """A server, who guards it, and what we keep of both."""

    mind: Authority
    peer: Protected
    url: str
    home: Path
    learned: set[str] = field(default_factory=set[str])

    @property
    def vault(self) -> StoredVault:
        store = SecretStore(self.home, MasterKey.open(self.home))
        return StoredVault(store, lambda values, _: self.learned.update(values))

    @asynccontextmanager
    async def connected(
        self,
        oauth: OAuth | None = None,
        consent: Consent | None = None,
        url: str = "",
        sign_ins: SignIns | None = None,
    ) -> AsyncGenerator[Connection]:
        """Connect; a consent is a person's who says yes."""
        vault = await to_thread.run_sync(lambda: self.vault)
        sign_ins = sign_ins or SignIns(vault=vault, consent=consent)
        reach = Reach(client=US, capabilities={}, complained=print, sign_ins=sign_ins)
        reached = Http(url=url or self.url, allow_private=True, oauth=oauth)
        with anyio.fail_after(60):
            async with reach(ServerSpec(name="guarded", reached=reached), Ear()) as connection:
                yield connection

    async def sign_in(self) -> None:
        async with self.connected(consent=Agreeable()):
            pass

    async def edit(self, **changes: Any) -> None:
        """Change what is kept."""
        vault = await to_thread.run_sync(lambda: self.vault)
        account = read_account(await vault.read(entry_name("guarded")) or "")
        assert account
        await vault.write(entry_name("guarded"), replace(account, **changes).text())

    async def problem(self, oauth: OAuth | None = None, consent: Consent | None = None) -> str:
        """Why no connection can be made."""
        with pytest.raises(Lost) as lost:
            async with self.connected(oauth, consent):
                pass
        return lost.value.reason

    def asked_for(self, path: str) -> Mapping[str, str]:
        """What the authorization server was last asked there."""
        return [form for asked, form in self.mind.asked if asked == path][-1]


@pytest.fixture
def mind() -> Iterator[Authority]:
    with authority() as one:
        yield one


@pytest.fixture
async def world(mind: Authority, tmp_path: Path) -> AsyncGenerator[World]:
    peer = Protected(mind)
    async with serving(peer) as url:
        yield World(mind, peer, url, tmp_path / "home")


async def echo(connection: Connection, tool: str = "echo") -> str:
    result = await connection.call(tool, {"text": "hello"})
    return result["content"][0]["text"]


# A person


async def test_a_person_signs_in_where_the_server_says(world: World) -> None:
    async with world.connected(consent=Agreeable()) as connection:
        assert await echo(connection) == "hello"
    well_known = "/.well-known/oauth-authorization-server"
    assert world.mind.paths == [well_known, "/register", "/authorize", "/token"]
    asked = world.asked_for("/authorize")
    assert (asked["resource"], asked["scope"]) == (world.url, "read")
    assert asked["code_challenge_method"] == "S256"
    assert world.asked_for("/token")["resource"] == world.url
    (client,) = world.mind.clients.values()
    assert client.described["application_type"] == "native"
    assert client.method == "none"


async def test_what_was_signed_in_to_once_needs_no_person_again(world: World) -> None:
    await world.sign_in()
    asked = len(world.mind.asked)
    async with world.connected() as connection:
        assert await echo(connection) == "hello"
    assert len(world.mind.asked) == asked
    assert world.peer.refused == [401]


class Thief(Agreeable):
    """Sees the code on its way, and is faster."""

    status = 0

    async def ask(self, url: str) -> Mapping[str, str]:
        answer = await super().ask(url)
        self.status = await to_thread.run_sync(self.redeem, url, answer["code"])
        return answer

    def redeem(self, url: str, code: str) -> int:
        parts = urlsplit(url)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": asked["client_id"],
            "redirect_uri": asked["redirect_uri"],
            "resource": asked["resource"],
            "code_verifier": "guessed" * 10,
        }
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/token", urlencode(form), headers)
        return connection.getresponse().status


async def test_a_code_that_was_stolen_is_worth_nothing_without_its_verifier(world: World) -> None:
    thief = Thief()
    async with world.connected(consent=thief) as connection:
        assert await echo(connection) == "hello"
    assert thief.status == 400


async def test_a_document_stands_for_a_registration(world: World) -> None:
    document = "https://client.example/openfang.json"
    world.mind.metadata["client_id_metadata_document_supported"] = True
    world.mind.add(Client(document, redirects=(Agreeable.redirect_uri,)))
    async with world.connected(OAuth(client_metadata_url=document), Agreeable()) as connection:
        assert await echo(connection) == "hello"
    assert "/register" not in world.mind.paths
    assert world.asked_for("/authorize")["client_id"] == document


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_client_that_is_registered_already_is_not_registered_again(
    world: World, method: str
) -> None:
    secret = "" if method == "none" else SECRET
    world.mind.add(Client("known", secret, method, (Agreeable.redirect_uri,)))
    world.mind.metadata["token_endpoint_auth_methods_supported"] = [method]
    oauth = OAuth(client_id="known", client_secret=secret)
    async with world.connected(oauth, Agreeable()) as connection:
        assert await echo(connection) == "hello"
    assert "/register" not in world.mind.paths


async def test_the_operator_says_what_is_asked_for(world: World) -> None:
    async with world.connected(OAuth(scopes=("read", "list")), Agreeable()):
        assert world.asked_for("/authorize")["scope"] == "read list"


async def test_without_a_sign_in_the_way_out_is_the_command(world: World) -> None:
    with pytest.raises(AuthNeeded) as needed:
        async with world.connected():
            pass
    assert needed.value.way_out == LOGIN
    assert LOGIN in needed.value.reason
    assert world.mind.asked == []


# The client's own right


def own(mind: Authority, **more: Any) -> OAuth:
    client = Client("robot", SECRET, "client_secret_basic", grants=("client_credentials",))
    mind.add(client)
    return OAuth(grant="client_credentials", client_id="robot", client_secret=SECRET, **more)


async def test_a_client_signs_in_by_its_own_right_and_proves_it_by_a_secret(world: World) -> None:
    async with world.connected(own(world.mind)) as connection:
        assert await echo(connection) == "hello"
        world.mind.end_tokens()
        assert await echo(connection) == "hello"
    assert world.mind.grants == ["client_credentials"] * 2
    assert SECRET in world.learned


@pytest.mark.parametrize("kind", ["RSA", "EC"])
async def test_a_client_signs_in_by_its_own_right_and_proves_it_by_a_key(
    world: World, kind: str, tmp_path: Path
) -> None:
    key = {
        "RSA": lambda: rsa.generate_private_key(65537, 2048),
        "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    }[kind]()
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    client = Client("robot", method="private_key_jwt", grants=("client_credentials",))
    client.key, client.kind = public.decode(), kind
    world.mind.add(client)
    file = tmp_path / "key.pem"
    await to_thread.run_sync(file.write_text, text)
    given = text if kind == "RSA" else str(file)
    oauth = OAuth(grant="client_credentials", client_id="robot", private_key=given)
    async with world.connected(oauth) as connection:
        assert await echo(connection) == "hello"


async def test_an_edwards_key_signs_too() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    sign = await assertions("robot", text.decode())
    claims = jwt.decode(
        await sign("https://issuer.example"),
        key.public_key(),
        algorithms=["EdDSA"],
        audience="https://issuer.example",
    )
    assert (claims["iss"], claims["sub"]) == ("robot", "robot")


async def test_a_key_that_is_none_is_named_with_the_way_out(world: World, tmp_path: Path) -> None:
    for key in (str(tmp_path / "gone.pem"), "-----BEGIN PRIVATE KEY-----\nno\n"):
        oauth = OAuth(grant="client_credentials", client_id="robot", private_key=key)
        assert "private_key of its `oauth`" in await world.problem(oauth)
    assert world.mind.grants == []


async def test_a_wrong_secret_is_told_with_the_authority_s_own_words(world: World) -> None:
    own(world.mind)
    wrong = OAuth(grant="client_credentials", client_id="robot", client_secret="wrong-secret")
    problem = await world.problem(wrong)
    assert "invalid_client" in problem
    assert "client_secret" in problem
    assert "wrong-secret" not in problem


async def test_a_secret_is_sent_to_nobody_but_its_issuer(world: World) -> None:
    with authority() as stranger:
        oauth = own(world.mind, issuer=world.mind.issuer)
        own(stranger)
        world.peer.trusted = stranger
        assert stranger.issuer in await world.problem(oauth)
        assert "/token" not in stranger.paths


async def test_a_secret_that_was_sent_to_one_is_not_sent_to_another(world: World) -> None:
    oauth = own(world.mind)
    async with world.connected(oauth):
        pass
    with authority() as stranger:
        own(stranger)
        world.peer.trusted = stranger
        assert stranger.issuer in await world.problem(oauth)
        assert "/token" not in stranger.paths


async def test_no_secret_is_sent_where_nobody_says_that_tokens_are_given(world: World) -> None:
    world.peer.describes = False
    problem = await world.problem(own(world.mind))
    assert "names no authorization server" in problem
    assert world.mind.asked == []


# Time


async def test_fifty_calls_wait_for_one_renewal(world: World) -> None:
    await world.sign_in()
    answers: list[str] = []
    async with world.connected() as connection:
        world.mind.end_tokens()

        async def call() -> None:
            answers.append(await echo(connection))

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(call)
    assert answers == ["hello"] * 50
    assert world.mind.grants == ["authorization_code", "refresh_token"]


async def test_a_token_that_ends_is_renewed_before_it_is_refused(world: World) -> None:
    await world.sign_in()
    await world.edit(expires_at=time.time())
    refused = len(world.peer.refused)
    async with world.connected() as connection:
        assert await echo(connection) == "hello"
    assert world.mind.grants == ["authorization_code", "refresh_token"]
    assert len(world.peer.refused) == refused


async def test_a_token_that_lives_no_longer_than_its_answer_is_used_all_the_same(
    world: World,
) -> None:
    await world.sign_in()
    world.mind.end_tokens()
    world.mind.lifetime = 0
    async with world.connected() as connection:
        assert await echo(connection) == "hello"
    assert set(world.mind.grants[1:]) == {"refresh_token"}


async def test_a_caller_who_leaves_does_not_lose_the_token_on_its_way(world: World) -> None:
    await world.sign_in()
    async with world.connected() as connection:
        world.mind.end_tokens()
        async with anyio.create_task_group() as group:
            group.start_soon(echo, connection)
            while 401 not in world.peer.refused[1:]:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert await echo(connection) == "hello"
    assert world.mind.grants == ["authorization_code", "refresh_token"]


async def test_two_connections_of_a_server_do_not_spend_one_refresh_token(world: World) -> None:
    await world.sign_in()
    sign_ins = SignIns(vault=await to_thread.run_sync(lambda: world.vault))
    answers: list[str] = []

    async def call(connection: Connection) -> None:
        answers.append(await echo(connection))

    async with (
        world.connected(sign_ins=sign_ins) as one,
        world.connected(sign_ins=sign_ins) as other,
    ):
        world.mind.end_tokens()
        refused = len(world.peer.refused)
        released = world.mind.held["/token"] = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(call, one)
            group.start_soon(call, other)
            await until(lambda: len(world.peer.refused) == refused + 2)
            await until(lambda: "refresh_token" in world.mind.grants)
            released.set()
    assert answers == ["hello"] * 2
    assert world.mind.grants == ["authorization_code", "refresh_token"]


async def test_a_token_on_its_way_does_not_undo_a_sign_out(world: World) -> None:
    await world.sign_in()
    vault = await to_thread.run_sync(lambda: world.vault)
    async with world.connected() as connection:
        world.mind.end_tokens()
        released = world.mind.held["/token"] = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(refused, connection)
            await until(lambda: "refresh_token" in world.mind.grants)
            await vault.remove(entry_name("guarded"))
            released.set()
        assert await vault.read(entry_name("guarded")) is None
        await refused(connection)
    assert await vault.read(entry_name("guarded")) is None
    assert world.mind.grants == ["authorization_code", "refresh_token"]


async def refused(connection: Connection, tool: str = "echo") -> None:
    with pytest.raises(AuthNeeded) as needed:
        await echo(connection, tool)
    assert needed.value.way_out == LOGIN


async def test_after_a_sign_out_no_token_is_renewed(world: World) -> None:
    await world.sign_in()
    vault = await to_thread.run_sync(lambda: world.vault)
    async with world.connected() as connection:
        await vault.remove(entry_name("guarded"))
        world.mind.end_tokens()
        await refused(connection)
    assert world.mind.grants == ["authorization_code"]


async def test_what_is_missing_is_not_noted_after_a_sign_out(world: World) -> None:
    await world.sign_in()
    vault = await to_thread.run_sync(lambda: world.vault)
    async with world.connected() as connection:
        await vault.remove(entry_name("guarded"))
        await refused(connection, "write")
    kept = read_account(await vault.read(entry_name("guarded")) or "")
    assert kept is None or (kept.access, kept.refresh) == ("", "")


async def test_a_sign_in_that_was_revoked_needs_a_person(world: World) -> None:
    await world.sign_in()
    world.mind.revoke()
    problem = await world.problem()
    assert "invalid_grant" in problem
    assert LOGIN in problem
    asked = len(world.mind.asked)
    assert LOGIN in await world.problem()
    assert len(world.mind.asked) == asked, "what was revoked is not asked for again"
    await world.sign_in()
    async with world.connected() as connection:
        assert await echo(connection) == "hello"


async def test_an_authority_that_is_down_ends_no_sign_in(world: World) -> None:
    await world.sign_in()
    world.mind.end_tokens()
    world.mind.status["/token"] = 503
    problem = await world.problem()
    assert "503" in problem
    del world.mind.status["/token"]
    async with world.connected() as connection:
        assert await echo(connection) == "hello"


# More scopes


async def test_a_person_is_asked_for_more_when_a_call_needs_more(world: World) -> None:
    async with world.connected(consent=Agreeable()) as connection:
        assert await echo(connection, "write") == "hello"
        assert world.asked_for("/authorize")["scope"] == "read write"
        assert await echo(connection) == "hello"


async def test_without_a_person_the_call_fails_and_the_next_sign_in_asks_for_more(
    world: World,
) -> None:
    await world.sign_in()
    async with world.connected() as connection:
        with pytest.raises(AuthNeeded) as needed:
            await echo(connection, "write")
        assert "write" in needed.value.reason
        assert needed.value.way_out == LOGIN
        assert await echo(connection) == "hello", "the connection is as good as before"
    world.mind.revoke()
    await world.sign_in()
    assert world.asked_for("/authorize")["scope"] == "read write"
    async with world.connected() as connection:
        assert await echo(connection, "write") == "hello"


async def test_a_client_by_its_own_right_asks_for_more_by_itself(world: World) -> None:
    async with world.connected(own(world.mind)) as connection:
        assert await echo(connection, "write") == "hello"


async def test_a_server_that_is_never_content_is_asked_twice(world: World) -> None:
    world.peer.scope = "read"
    async with world.connected(own(world.mind)) as connection:
        world.peer.trusted.find = lambda access: None  # noqa: ARG005 - it knows no token any more
        before = len(world.peer.refused)
        with pytest.raises(AuthNeeded):
            await echo(connection)
        assert world.peer.refused[before:] == [401, 401]


# Who is who


async def test_metadata_of_another_issuer_are_refused(world: World) -> None:
    world.mind.metadata["issuer"] = "http://127.0.0.1:1/another"
    assert "issuer mismatch" in await world.problem(consent=Agreeable())
    assert "/authorize" not in world.mind.paths


async def test_an_answer_of_another_issuer_is_refused(world: World) -> None:
    world.mind.said_issuer = "http://127.0.0.1:1"
    assert "iss mismatch" in await world.problem(consent=Agreeable())
    assert world.mind.grants == []


async def test_a_token_for_another_server_is_not_asked_for(world: World) -> None:
    world.peer.resource = "http://127.0.0.1:1/mcp"
    assert "does not match" in await world.problem(consent=Agreeable())
    assert world.mind.asked == []


async def test_an_authority_that_knows_no_pkce_is_refused(world: World) -> None:
    world.mind.metadata["code_challenge_methods_supported"] = ["plain"]
    assert "PKCE" in await world.problem(consent=Agreeable())
    assert "/authorize" not in world.mind.paths


async def test_metadata_that_lead_to_another_host_are_refused(world: World) -> None:
    well_known = "/.well-known/oauth-authorization-server"
    world.mind.moved[well_known] = f"http://127.0.0.1:1{well_known}"
    assert "another host" in await world.problem(consent=Agreeable())


async def test_a_person_may_decline(world: World) -> None:
    world.mind.consents = False
    problem = await world.problem(consent=Agreeable())
    assert "declined" in problem
    assert LOGIN in problem


async def test_an_authority_that_registers_nobody_wants_a_client_id(world: World) -> None:
    world.mind.registers = False
    assert "client_id" in await world.problem(consent=Agreeable())
    world.mind.metadata["registration_endpoint"] = None
    assert "client_id" in await world.problem(consent=Agreeable())


async def test_an_authority_that_talks_nonsense_is_told_as_such(world: World) -> None:
    world.mind.metadata["token_endpoint"] = "nowhere"
    assert "names no authorization server" in await world.problem(consent=Agreeable())
    world.mind.metadata["token_endpoint"] = f"{world.mind.issuer}/register"
    assert "gave no token" in await world.problem(consent=Agreeable())


async def test_a_store_that_cannot_be_read_is_that_server_s_matter(world: World) -> None:
    await world.sign_in()
    store = world.home / "secrets.json"
    text = await to_thread.run_sync(store.read_text)
    await to_thread.run_sync(
        store.write_text, text.replace('"oauth:guarded": "', '"oauth:guarded": "AAAA')
    )
    with pytest.raises(OpenFangError, match="was changed"):
        async with world.connected():
            pass


async def test_a_server_without_an_authority_is_told_as_such(world: World) -> None:
    world.peer.describes = False
    assert "names no authorization server" in await world.problem(consent=Agreeable())


# What is kept


def files_with(folder: Path, text: str) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if text.encode() in path.read_bytes()]


async def test_tokens_are_encrypted_where_they_lie(world: World) -> None:
    await world.sign_in()
    (token,) = world.mind.tokens
    for secret in (token.access_token, token.refresh_token):
        assert await to_thread.run_sync(files_with, world.home, secret) == []
        assert secret in world.learned
    assert await to_thread.run_sync(files_with, world.home, "oauth:guarded") == ["secrets.json"]


async def test_of_tokens_that_are_renewed_for_ever_the_last_two_are_redacted(world: World) -> None:
    await world.sign_in()
    store = SecretStore(world.home, await to_thread.run_sync(MasterKey.open, world.home))
    redactor = Redactor(b"k" * 32)
    async with world.connected(
        sign_ins=SignIns(vault=StoredVault(store, redactor.learn))
    ) as connection:
        for _ in range(5):
            world.mind.end_tokens()
            assert await echo(connection) == "hello"
    given = [(one.access_token, one.refresh_token) for one in world.mind.tokens]
    hidden = [[redactor.contains_secret(text) for text in pair] for pair in given]
    assert hidden == [[False] * 2] * (len(given) - 2) + [[True] * 2] * 2


async def test_another_address_gets_no_token_of_the_first(world: World) -> None:
    await world.sign_in()
    other = Protected(world.mind)
    async with serving(other) as url:
        with pytest.raises(AuthNeeded):
            async with world.connected(url=url):
                pass
    assert other.refused == [401]
    assert other.headers == []


async def test_another_client_or_issuer_gets_no_token_of_the_first(world: World) -> None:
    await world.sign_in()
    for oauth in (OAuth(client_id="another"), OAuth(issuer="http://127.0.0.1:1")):
        assert LOGIN in await world.problem(oauth)
    async with world.connected(OAuth(issuer=world.mind.issuer)) as connection:
        assert await echo(connection) == "hello"


async def test_nonsense_in_the_vault_is_nobody_s_sign_in(world: World) -> None:
    for text in ("{", "[]", '{"url": 1}', '{"url": "", "grant": "", "more": 1}'):
        assert read_account(text) is None or not read_account(text)
        vault = await to_thread.run_sync(lambda: world.vault)
        await vault.write(entry_name("guarded"), text)
        assert LOGIN in await world.problem()


def test_names_of_entries_fit_into_the_store_and_are_no_variables() -> None:
    names = [entry_name(name) for name in ("a", "b" * 128, "c" + "b" * 127)]
    assert len(set(names)) == 3
    assert all(len(name) <= 128 and ":" in name for name in names)


# Addresses


@pytest.mark.requirement("C3.9")
@pytest.mark.needs("unshare", "ip")
def test_what_a_server_names_is_checked_like_the_server_itself(tmp_path: Path) -> None:
    check_alone(inside_oauth, tmp_path)


# What servers say


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ((), Challenge()),
        (("Basic", "Bearer"), Challenge()),
        (('Bearer realm="a", scope="r w"',), Challenge(scope="r w")),
        (("bearer SCOPE=read",), Challenge(scope="read")),
        (('Negotiate abc==, Bearer scope="r"',), Challenge(scope="r")),
        (('DPoP scope="no", Bearer scope="r"', 'Bearer scope="s"'), Challenge(scope="r")),
        (
            ("Bearer resource_metadata=https://a.example/x?y=z",),
            Challenge(resource_metadata="https://a.example/x?y=z"),
        ),
        (('Bearer realm="a \\" scope=\\"", scope="r"',), Challenge(scope="r")),
        (
            ('Bearer error="insufficient_scope", scope="r \\"x"',),
            Challenge(error="insufficient_scope", scope="r"),
        ),
        (('Bearer error="invalid_token"',), Challenge()),
    ],
)
def test_a_challenge_is_read_as_it_is_meant(headers: tuple[str, ...], challenge: Challenge) -> None:
    assert read_challenge(401, headers) == challenge


@settings(max_examples=200)
@given(st.lists(st.text(alphabet='Bearer scope="\\,\t=xé', max_size=60), max_size=3))
def test_whatever_a_challenge_says_it_can_be_said_again(headers: list[str]) -> None:
    challenge = read_challenge(401, headers)
    assert read_challenge(401, [challenge.header()]) == challenge


@given(st.lists(st.text(max_size=20)))
def test_scopes_are_joined_without_doubles(scopes: list[str]) -> None:
    joined = join_scopes(*scopes)
    assert join_scopes(joined, joined) == joined
    assert len(set(joined.split())) == len(joined.split())


# The node


def entry(url: str, more: str = "") -> str:
    return f"""
[[mcp_servers]]
name = "guarded"
allow_private = true
trust = "high"
transport = {{ type = "http", url = "{url}"{more} }}
"""


CLIENT = (
    f', oauth = {{ grant = "client_credentials", client_id = "robot", client_secret = "{SECRET}" }}'
)


@pytest.mark.requirement("C2.6")
async def test_a_server_that_wants_a_sign_in_is_unhealthy_with_the_way_out(
    world: World, tmp_path: Path
) -> None:
    async with open_test_app(tmp_path / "node", config=entry(world.url)) as app:
        servers = app.parts.servers
        assert servers
        with anyio.fail_after(60):
            await servers.settled()
        source = servers.find("guarded")
        assert source.health.word == "unhealthy"
        assert LOGIN in source.health.error


@pytest.mark.requirement("C18.4")
async def test_a_caller_s_own_token_never_reaches_a_server(world: World, tmp_path: Path) -> None:
    own(world.mind)
    async with live_node(tmp_path / "node", config=entry(world.url, CLIENT)) as live:
        servers = live.app.parts.servers
        assert servers
        servers.want()
        with anyio.fail_after(60):
            await servers.settled()
            reply = await live.call("mcp_guarded_echo", {"text": "hello"})
    assert reply.status == 200, reply.body
    sent = {headers["authorization"] for _, headers in world.peer.headers}
    assert sent == {f"Bearer {token.access_token}" for token in world.mind.tokens}
    assert live.admin not in str(world.peer.headers)
    assert len(world.mind.tokens) == 1
