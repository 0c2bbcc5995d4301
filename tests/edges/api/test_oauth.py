"""Access tokens of a configured issuer open the HTTP edges, and no other token does (C18.2)."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from joserfc.jwk import RSAKey
from tests.edges.issuer import AUDIENCE, JWKS, METADATA, OPENID, Issuer, issuer, new_key
from tests.edges.live import live
from tests.edges.sse import listening
from tests.sources.mcp.peers.web import Modern, serving

from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

    from openfang.core.ports import Clock

pytestmark = pytest.mark.requirement("C18.2")

TOOLS = "/api/tools"
DOCUMENT = "/.well-known/oauth-protected-resource"
INVALID = (401, "invalid_token")
DOWN = (503, "issuer_unavailable")
DEMO = "mcp:demo:echo"
AGAIN, FRESH, STALE = 10, 600, 3600
NOTHING: dict[str, Any] = {}


@pytest.fixture
def mint() -> Generator[Issuer]:
    with issuer() as one:
        yield one


def section(mint: Issuer, grants: Mapping[str, Any], keys: Mapping[str, Any]) -> str:
    """The part of the configuration that trusts this issuer; None takes a key out."""
    said = {"url": mint.url, "audience": AUDIENCE, "allow_private": True, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in said.items() if value is not None]
    opened = [f"{json.dumps(scope)} = {json.dumps(globs)}" for scope, globs in grants.items()]
    table = ["[auth.issuer.grants]", *opened] if grants else []
    return "\n".join(["[auth.issuer]", *lines, *table, ""])


@asynccontextmanager
async def guarded(
    folder: Path,
    mint: Issuer,
    *,
    more: str = "",
    clock: Clock | None = None,
    demo: Demo | None = None,
    grants: Mapping[str, Any] = NOTHING,
    **keys: Any,
) -> AsyncGenerator[Live]:
    """A node that trusts this issuer."""
    sources = [demo.source] if demo else []
    config = more + section(mint, grants, keys)
    async with live(folder / "home", config=config, clock=clock, sources=sources) as node:
        yield node


def told_of(reply: Reply) -> dict[str, str]:
    """What the challenge of an answer says."""
    scheme, _, words = reply.headers["WWW-Authenticate"].partition(" ")
    assert scheme == "Bearer"
    pairs = (word.partition("=") for word in words.split(", "))
    return {name: value.strip('"') for name, _, value in pairs}


def forged(mint: Issuer, secret: bytes, **header: Any) -> str:
    """A token that is right in all but its signature: one by a shared secret, or none."""
    head = encoded(json.dumps({"typ": "at+jwt", **header}).encode())
    text = f"{head}.{mint.sign().split('.')[1]}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), 'sha256')) if secret else ''}"


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


# --- who comes in -----------------------------------------------------------------------------


async def test_a_token_of_the_issuer_opens_the_api_for_a_user_of_its_own(
    tmp_path: Path, mint: Issuer, demo: Demo
) -> None:
    async with guarded(tmp_path, mint, demo=demo) as node:
        token = await mint.token(node.web)
        status = (await node.get("/api/status", key=token)).json
        assert (status["caller"], status["role"]) == ("oauth:robot", "user")
        named = {tool["id"] for tool in (await node.get(TOOLS, key=token)).json["tools"]}
        assert {DEMO, "builtin:system_time"} <= named
        reply = await node.call(DEMO, {"text": "hello"}, key=token)
        assert (reply.status, reply.json["content"][0]["text"]) == (200, "hello")
        records = (await node.get("/api/audit?caller=oauth:robot")).json["records"]
        assert "tool_invocation_end" in {record["event_type"] for record in records}
        assert (await node.get("/api/keys", key=token)).told == (403, "admin_only")
        assert token not in json.dumps((await node.get("/api/audit?limit=1000")).json)


async def test_our_own_keys_go_on_beside_it(tmp_path: Path, mint: Issuer) -> None:
    config = 'api_key = "a-key.of-my.own"\n'
    async with guarded(tmp_path, mint, more=config) as node:
        user = await node.key("user")
        for key in ("", user, "a-key.of-my.own"):
            assert (await node.get(TOOLS, key=key)).status == 200
        unknown = await node.get(TOOLS, key="of_unknown")
        assert unknown.told == (401, "unauthenticated")
        assert told_of(unknown)["error"] == "invalid_token"
        assert mint.asked == []


async def test_who_has_none_is_told_where_to_get_one(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint, required_scopes=["fang"], grants={"files": ["*"]}) as node:
        reply = await node.get(TOOLS, key=None)
        assert reply.told == (401, "unauthenticated")
        assert told_of(reply) == {
            "scope": "fang files",
            "resource_metadata": f"{node.url}{DOCUMENT}/api",
        }
        assert (await node.get("/nothing", key=None)).headers["WWW-Authenticate"] == (
            f'Bearer scope="fang files", resource_metadata="{node.url}{DOCUMENT}"'
        )
        assert mint.asked == []


async def test_without_an_issuer_nothing_is_a_token(node: Live, mint: Issuer) -> None:
    for key in (None, mint.sign()):
        reply = await node.get(TOOLS, key=key)
        assert reply.told == (401, "unauthenticated")
        assert reply.headers["WWW-Authenticate"] == 'Bearer realm="openfang"'
    assert (await node.get(DOCUMENT, key=None)).told == (404, "not_found")
    assert mint.asked == []


# --- what is refused --------------------------------------------------------------------------


HOUR = 3600
CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "another audience": ({"aud": "https://other.example"}, "another audience"),
    "other audiences": ({"aud": ["https://other.example", "x"]}, "another audience"),
    "the audience with a slash": ({"aud": f"{AUDIENCE}/"}, "another audience"),
    "no audience": ({"aud": None}, "aud"),
    "another issuer": ({"iss": "https://other.example"}, "another issuer"),
    "no issuer": ({"iss": None}, "iss"),
    "no end": ({"exp": None}, "exp"),
    "an end in words": ({"exp": "never"}, "expired"),
    "nobody": ({"sub": None}, "sub"),
    "an empty subject": ({"sub": ""}, "nobody"),
    "a subject that is a number": ({"sub": 7}, "nobody"),
    "bound to its holder": ({"cnf": {"jkt": "x"}}, "holder"),
}


@pytest.mark.parametrize(("claims", "why"), CLAIMS.values(), ids=CLAIMS)
async def test_a_token_that_says_something_else_is_refused(
    tmp_path: Path, mint: Issuer, claims: dict[str, Any], why: str
) -> None:
    async with guarded(tmp_path, mint) as node:
        await refused(node, mint.sign(**claims), why)


async def refused(node: Live, token: str, why: str) -> None:
    """It opens nothing, the client hears why, and so does the log."""
    for reply in (await node.get(TOOLS, key=token), await node.call("system_time", key=token)):
        assert reply.told == INVALID, reply.body
        assert why in reply.problem["detail"]
        said = told_of(reply)
        assert said["error"] == "invalid_token"
        assert why in said["error_description"]
        assert said["resource_metadata"] == f"{node.url}{DOCUMENT}/api"
    found = (await node.get("/api/audit?event=policy_violation")).json["records"]
    assert [record["payload"]["rule"] for record in found] == ["invalid_token"] * 2
    assert why in found[0]["payload"]["reason"]


async def test_a_token_that_nobody_signed_is_refused(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint) as node:
        await refused(node, forged(mint, b"", alg="none", kid="one"), "algorithm")


async def test_a_token_that_is_signed_with_the_public_key_is_refused(
    tmp_path: Path, mint: Issuer
) -> None:
    rsa = RSAKey.generate_key(2048, {"kid": "rsa"})
    mint.published.append(rsa)
    token = forged(mint, rsa.as_pem(), alg="HS256", kid="rsa")
    async with guarded(tmp_path, mint) as node:
        assert (await node.get(TOOLS, key=mint.sign(rsa, {"alg": "RS256"}))).status == 200
        await refused(node, token, "algorithm")


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "a key that comes along": ({"jwk": new_key("x").as_dict(), "kid": "x"}, "no key"),
    "a token of another type": ({"typ": "logout+jwt"}, "another type"),
    "what must be understood": ({"crit": ["b64"], "b64": True}, "extension"),
    "a long header": ({"cty": "y" * 2000}, "too long"),
}


@pytest.mark.parametrize(("header", "why"), HEADERS.values(), ids=HEADERS)
async def test_a_token_with_another_header_is_refused(
    tmp_path: Path, mint: Issuer, header: dict[str, Any], why: str
) -> None:
    async with guarded(tmp_path, mint) as node:
        await refused(node, mint.sign(None, header), why)


async def test_a_token_that_another_signed_is_refused(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint) as node:
        await refused(node, mint.sign(new_key("one")), "signature")


async def test_garbage_and_what_is_too_long_are_refused(tmp_path: Path, mint: Issuer) -> None:
    good = mint.sign()
    head, body, signature = good.split(".")
    changed = "A" if signature[0] != "A" else "B"
    garbage = {
        "eyJ.x.y": "malformed",
        f"{head}.{body}.": "signature",
        f"{head}.{body}.{changed}{signature[1:]}": "signature",
        f"{head}.{body[:-4]}AAAA.{signature}": "signature",
        "e30.e30.e30": "algorithm",
        mint.sign(pad="x" * 20_000): "16384 characters",
    }
    async with guarded(tmp_path, mint) as node:
        for token, why in garbage.items():
            reply = await node.get(TOOLS, key=token)
            assert (reply.told, why in reply.problem["detail"]) == (INVALID, True), reply.body
        assert (await node.get(TOOLS, key=good)).status == 200
        assert (await node.get(TOOLS, key=f"{good}.x")).told == (401, "unauthenticated")


async def test_a_token_is_good_from_its_beginning_to_its_end(tmp_path: Path, mint: Issuer) -> None:
    clock = ManualClock()
    now = clock.time_ns() // 1_000_000_000
    token = mint.sign(nbf=now + 100, iat=now, exp=now + 200)
    async with guarded(tmp_path, mint, clock=clock) as node:
        for later, why in ((69, "not valid yet"), (1, ""), (159, ""), (1, "expired")):
            clock.advance(later)
            reply = await node.get(TOOLS, key=token)
            assert (later, reply.status) == (later, 401 if why else 200)
            assert why in (reply.problem["detail"] if why else "")
        issued = mint.sign(iat=now + HOUR, exp=now + 2 * HOUR)
        reply = await node.get(TOOLS, key=issued)
        assert (reply.told, "future" in reply.problem["detail"]) == (INVALID, True)


async def test_too_many_bad_tokens_lock_out_no_good_one(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint, clock=ManualClock()) as node:
        bad, good = mint.sign(aud="x"), mint.sign()
        told = [(await node.get(TOOLS, key=bad)).status for _ in range(21)]
        assert told == [401] * 20 + [429]
        assert (await node.get(TOOLS, key=good)).status == 200


# --- scopes -----------------------------------------------------------------------------------


async def test_a_token_must_have_every_scope_that_is_required(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint, required_scopes=["fang", "read"]) as node:
        for scope in ("", "fang", "fang:read readfang"):
            reply = await node.get(TOOLS, key=await mint.token(node.web, scope))
            assert reply.told == (403, "insufficient_scope")
            said = told_of(reply)
            assert (said["error"], said["scope"]) == ("insufficient_scope", "fang read")
            assert said["resource_metadata"] == f"{node.url}{DOCUMENT}/api"
        for token in (
            await mint.token(node.web, "read other fang"),
            mint.sign(scp=["fang", "read"]),
        ):
            assert (await node.get(TOOLS, key=token)).status == 200
        found = (await node.get("/api/audit?event=policy_violation&caller=oauth:robot")).json
        assert {one["payload"]["rule"] for one in found["records"]} == {"insufficient_scope"}


async def test_a_scope_opens_the_tools_that_are_granted_to_it(
    tmp_path: Path, mint: Issuer, demo: Demo
) -> None:
    grants = {"clock": ["system_time"], "demo": ["mcp:demo:*"], "rain": ["mcp:demo:rain"]}
    async with guarded(tmp_path, mint, demo=demo, grants=grants) as node:

        async def seen(scope: str) -> set[str]:
            token = await mint.token(node.web, scope)
            return {tool["id"] for tool in (await node.get(TOOLS, key=token)).json["tools"]}

        assert await seen("clock") == {"builtin:system_time"}
        assert await seen("rain clock") == {"builtin:system_time", "mcp:demo:rain"}
        assert DEMO in await seen("demo")
        token = await mint.token(node.web, "clock other")
        assert (await node.call("system_time", key=token)).status == 200
        hidden, unknown = await node.call(DEMO, key=token), await node.call("mcp:x:y", key=token)
        assert hidden.told == unknown.told == (404, "unknown_tool")
        reply = await node.get(TOOLS, key=await mint.token(node.web, "other"))
        assert reply.told == (403, "insufficient_scope")
        assert told_of(reply)["scope"] == "clock demo rain"


async def test_any_of_several_audiences_will_do(tmp_path: Path, mint: Issuer) -> None:
    several = [AUDIENCE, f"{AUDIENCE}/dev"]
    async with guarded(tmp_path, mint, audience=several) as node:
        for audience in several:
            token = await mint.token(node.web, resource=audience)
            assert (await node.get(TOOLS, key=token)).status == 200
        token = await mint.token(node.web, resource=f"{AUDIENCE}/ops")
        assert (await node.get(TOOLS, key=token)).told == INVALID


# --- the issuer -------------------------------------------------------------------------------


async def test_the_issuer_is_asked_once_for_many_calls(
    tmp_path: Path, mint: Issuer, demo: Demo
) -> None:
    clock = ManualClock()
    async with guarded(tmp_path, mint, clock=clock, demo=demo) as node:
        tokens = [mint.sign(sub=f"user-{number}") for number in range(10)]
        async with anyio.create_task_group() as group:
            for token in tokens * 5:
                group.start_soon(expect, node, token)
        for token in tokens:
            clock.advance(2)
            await expect(node, token)
        assert mint.asked == [METADATA, JWKS]


async def expect(node: Live, token: str, status: int = 200) -> None:
    assert (await node.call(DEMO, key=token)).status == status


async def test_a_new_key_is_asked_for_but_not_all_the_time(tmp_path: Path, mint: Issuer) -> None:
    clock = ManualClock()
    async with guarded(tmp_path, mint, clock=clock) as node:
        old = mint.sign()
        assert (await node.get(TOOLS, key=old)).status == 200
        mint.rotate("two")
        token = mint.sign()
        # A moment ago the issuer did not have this key.
        assert (await node.get(TOOLS, key=token)).told == INVALID
        assert mint.asked.count(JWKS) == 1
        clock.advance(AGAIN)
        assert (await node.get(TOOLS, key=token)).status == 200
        assert mint.asked.count(JWKS) == 2
        # What is signed with a key that is gone is good no longer, though it was found good before.
        assert (await node.get(TOOLS, key=old)).told == INVALID
        for number in range(10):
            assert (await node.get(TOOLS, key=mint.sign(new_key(f"{number}")))).told == INVALID
        assert mint.asked.count(JWKS) == 2


async def test_keys_are_renewed_while_nobody_waits(tmp_path: Path, mint: Issuer) -> None:
    clock = ManualClock()
    now = clock.time_ns() // 1_000_000_000
    token = mint.sign(exp=now + 2 * STALE)
    async with guarded(tmp_path, mint, clock=clock) as node:
        assert (await node.get(TOOLS, key=token)).status == 200
        mint.rotate("two")
        clock.advance(FRESH)
        # The next one is served by the keys at hand, and has them renewed for those that follow.
        assert (await node.get(TOOLS, key=token)).status == 200
        with anyio.fail_after(20):
            while (await node.get(TOOLS, key=token)).status == 200:
                clock.advance(1)
        assert mint.asked.count(JWKS) == 2


async def test_an_issuer_that_is_down_is_no_fault_of_the_token(
    tmp_path: Path, mint: Issuer
) -> None:
    clock = ManualClock()
    now = clock.time_ns() // 1_000_000_000
    token = mint.sign(exp=now + 2 * STALE)
    async with guarded(tmp_path, mint, clock=clock) as node:
        mint.down = True
        for _ in range(30):
            reply = await node.get(TOOLS, key=token)
            assert (reply.told, reply.headers["Retry-After"]) == (DOWN, "5")
            assert "WWW-Authenticate" not in reply.headers
        assert mint.asked == [METADATA, OPENID]
        assert (await node.get(TOOLS)).status == 200
        mint.down = False
        clock.advance(AGAIN)
        assert (await node.get(TOOLS, key=token)).status == 200
        # What it said before is believed for a time; a key that it could have is not judged.
        mint.down = True
        clock.advance(STALE - 1)
        assert (await node.get(TOOLS, key=token)).status == 200
        assert (await node.get(TOOLS, key=mint.sign(new_key("three")))).told == DOWN
        clock.advance(1)
        assert (await node.get(TOOLS, key=token)).told == DOWN


async def test_an_issuer_that_describes_itself_otherwise_is_found(tmp_path: Path) -> None:
    for place in (f"{METADATA}/realms/a", f"{OPENID}/realms/a", f"/realms/a{OPENID}"):
        with issuer("/realms/a") as mint:
            mint.described_at = place
            async with guarded(tmp_path / place[-3:], mint) as node:
                assert (await node.get(TOOLS, key=mint.sign())).status == 200
                assert mint.asked[-2:] == [place, f"/realms/a{JWKS}"]


async def test_the_operator_can_say_where_the_keys_are(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint, jwks_url=f"{mint.url}{JWKS}") as node:
        assert (await node.get(TOOLS, key=mint.sign())).status == 200
        assert mint.asked == [JWKS]


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://other.example"},
        {"jwks_uri": None},
        {"jwks_uri": "http://127.0.0.1:1/keys"},
        {"jwks_uri": "http://169.254.169.254/keys"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
async def test_metadata_that_lead_astray_are_not_believed(
    tmp_path: Path, mint: Issuer, said: dict[str, Any]
) -> None:
    mint.metadata = said
    async with guarded(tmp_path, mint) as node:
        assert (await node.get(TOOLS, key=mint.sign())).told == DOWN
        assert JWKS not in mint.asked


async def test_a_private_address_is_an_issuer_only_if_it_is_said(
    tmp_path: Path, mint: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    secure = mint.url.replace("http://", "https://")
    async with guarded(tmp_path, mint, url=secure, allow_private=None) as node:
        assert (await node.get(TOOLS, key=mint.sign())).told == DOWN
    assert mint.asked == []
    assert "127.0.0.1" in caplog.text


async def test_a_reload_changes_whom_the_node_trusts(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint) as node:
        token, before = mint.sign(), await to_thread.run_sync(node.config_file.read_text)

        async def reloaded(text: str) -> Reply:
            await to_thread.run_sync(node.config_file.write_text, text)
            assert (await node.post("/api/config/reload")).status == 200
            return await node.get(TOOLS, key=token)

        assert (await node.get(TOOLS, key=token)).status == 200
        narrower = before.replace(AUDIENCE, "https://other.example")
        assert (await reloaded(narrower)).told == INVALID
        assert (await reloaded(before)).status == 200
        assert (await reloaded("")).told == (401, "unauthenticated")


async def test_a_stream_ends_with_its_token(tmp_path: Path, mint: Issuer) -> None:
    clock = ManualClock()
    now = clock.time_ns() // 1_000_000_000
    token = mint.sign(exp=now + 100)
    async with guarded(tmp_path, mint, clock=clock) as node:
        assert (await node.get(TOOLS, key=token)).status == 200
        async with listening(node, key=token) as stream:
            clock.advance(131)
            await node.call("system_time")
            with anyio.fail_after(20):
                assert await stream.rest() == []


# --- metadata ---------------------------------------------------------------------------------


PLACES = ("", "/api", "/mcp", "/mcp/dev", "/mcp/agents/ada")


async def test_each_resource_is_described_to_everybody(tmp_path: Path, mint: Issuer) -> None:
    async with guarded(tmp_path, mint, required_scopes=["fang"], grants={"files": ["*"]}) as node:
        for path in PLACES:
            reply = await node.get(f"{DOCUMENT}{path}", key=None)
            assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
            assert reply.json == {
                "resource": f"{node.url}{path}",
                "authorization_servers": [mint.url],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["fang", "files"],
            }
        odd = await node.get(f'{DOCUMENT}/mcp/a%2F"b', key=None)
        assert odd.json["resource"] == f"{node.url}/mcp/a%2F%22b"
        assert (await node.get(f"{DOCUMENT}/other", key=None)).status == 401


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://fang.example", "https://fang.example"),
        ("https://fang.example:8443/", "https://fang.example:8443"),
        ("https://me:hush@fang.example/of/mine/", "https://fang.example/of/mine"),
    ],
)
async def test_a_resource_is_known_by_its_public_address(
    tmp_path: Path, mint: Issuer, url: str, base: str
) -> None:
    async with guarded(tmp_path, mint, more=f'public_url = "{url}"\n') as node:
        for path in PLACES:
            said = (await node.get(f"{DOCUMENT}{path}", key=None)).json
            assert (said["resource"], "scopes_supported" in said) == (f"{base}{path}", False)
        for path, place in (
            ("/mcp", "/mcp"),
            ("/mcp/dev", "/mcp/dev"),
            ("/mcp/agents/ada", "/mcp/agents/ada"),
            ('/mcp/"x"', "/mcp"),
            ("/mcpx", ""),
            ("/api/tools/x/call", "/api"),
        ):
            reply = await node.post(path, key=None)
            assert told_of(reply) == {"resource_metadata": f"{base}{DOCUMENT}{place}"}


# --- nothing is passed on ---------------------------------------------------------------------


@pytest.mark.requirement("C18.4")
async def test_a_server_never_sees_the_token_of_the_caller(tmp_path: Path, mint: Issuer) -> None:
    peer = Modern()
    async with serving(peer) as url:
        transport = f'{{ type = "http", url = "{url}" }}'
        entry = f'[[mcp_servers]]\nname = "up"\nallow_private = true\ntransport = {transport}\n'
        async with guarded(tmp_path, mint, more=entry) as node:
            servers = node.app.parts.servers
            assert servers
            await servers.settled()
            token = await mint.token(node.web)
            for headers in ({}, {"X-Api-Key": token, "Cookie": f"t={token}"}):
                key = None if headers else token
                reply = await node.call("mcp:up:echo", {"text": "hi"}, key=key, headers=headers)
                assert (reply.status, reply.json["content"][0]["text"]) == (200, "hi")
    assert peer.methods.count("tools/call") == 2
    for _, sent in peer.headers:
        assert "authorization" not in sent
        assert "x-api-key" not in sent
    assert token not in json.dumps([peer.headers, peer.seen])
