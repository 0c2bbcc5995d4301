"""A token's holder is a caller like the holder of a key (C18.1, C18.2), and no wrong token is."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import RSAKey
from tests.edges.api.test_oauth import DEMO, encoded, forged, guarded
from tests.edges.issuer import AUDIENCE, Issuer, issuer, new_key

from openfang.guard.rate import Quota

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from tests.edges.demo import Demo

pytestmark = pytest.mark.requirement("C18.2", "C18.1")

HOUR = 3600
TOOLSETS = '[toolsets.small]\ntools = ["builtin:system_time"]\n'
CLAIMS = '[auth.issuer.claims]\nenv = "prod"\n'
EDGES = {
    "/api/tools": "GET",
    "/mcp": "POST",
    "/mcp/small": "POST",
    "/a2a": "POST",
    "/v1/models": "GET",
    "/metrics": "GET",
}


@pytest.fixture
def mint() -> Generator[Issuer]:
    with issuer() as one:
        yield one


def holders(scopes: Mapping[str, Mapping[str, Any]]) -> str:
    tables = list[str]()
    for scope, keys in scopes.items():
        tables.append(f"[auth.issuer.holders.{json.dumps(scope)}]")
        tables += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([*tables, ""])


async def test_a_scope_makes_an_auditor_of_its_holder(tmp_path: Path, mint: Issuer) -> None:
    terms = holders({"audit": {"role": "auditor"}, "manage": {"role": "admin"}})
    async with guarded(tmp_path, mint, more=terms) as node:
        statuses = {
            scope: [
                (await node.get(path, key=mint.sign(scope=scope))).status
                for path in ("/api/tools", "/api/audit", "/api/keys")
            ]
            for scope in ("", "audit", "manage", "manage audit", "other")
        }
    assert statuses == {
        "": [200, 403, 403],
        "audit": [200, 200, 403],
        "manage": [200, 200, 200],
        "manage audit": [200, 200, 200],
        "other": [200, 403, 403],
    }


async def test_a_scope_says_where_its_holder_may_come_in(tmp_path: Path, mint: Issuer) -> None:
    terms = holders({"tools": {"edges": ["mcp"]}, "rest": {"edges": ["api"]}})
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with guarded(tmp_path, mint, more=terms) as node:
        for scope, api, mcp in (("tools", 403, 200), ("rest", 200, 403), ("tools rest", 200, 200)):
            token = mint.sign(scope=scope)
            assert (scope, (await node.get("/api/tools", key=token)).status) == (scope, api)
            assert (scope, (await node.post("/mcp", ping, key=token)).status) == (scope, mcp)


async def test_a_scope_binds_its_holder_to_toolsets_and_agents(
    tmp_path: Path, mint: Issuer, demo: Demo
) -> None:
    terms = holders({"small": {"toolsets": ["small"]}, "desk": {"agents": ["helper"]}})
    async with guarded(tmp_path, mint, more=TOOLSETS + terms, demo=demo) as node:

        async def seen(scope: str) -> set[str]:
            reply = await node.get("/api/tools", key=mint.sign(scope=scope))
            return {tool["id"] for tool in reply.json["tools"]}

        assert await seen("small") == {"builtin:system_time"}
        assert await seen("desk") == set()
        assert await seen("small desk") == {"builtin:system_time"}
        assert DEMO in await seen("")
        refused = await node.call(DEMO, {"text": "hi"}, key=mint.sign(scope="small"))
        assert refused.status == 404


async def test_a_scope_says_in_which_project_and_mode_its_holder_works(
    tmp_path: Path, mint: Issuer
) -> None:
    terms = holders({"plan": {"mode": "planning", "projects": ["apollo"]}, "act": {}})
    writes = ("file_write", {"path": "a", "content": "b"})
    async with guarded(tmp_path, mint, more=terms) as node:
        planned = await node.call(*writes, key=mint.sign(scope="plan"))
        assert planned.problem["rule"] == "planning_mode"
        await node.call(*writes, key=mint.sign(scope="plan act"))
        records = (await node.get("/api/audit?event=policy_decision")).json["records"]
        assert [record["context"]["mode"] for record in records] == ["planning", "execution"]
        assert records[0]["context"]["project"] == "apollo"


async def test_a_scope_gives_its_holder_a_rate_of_its_own(tmp_path: Path, mint: Issuer) -> None:
    terms = holders({"slow": {"cells_per_minute": 10}, "fast": {"cells_per_minute": 100_000}})
    async with guarded(tmp_path, mint, more=terms) as node:
        slow, fast = mint.sign(scope="slow"), mint.sign(scope="slow fast", sub="eve")
        replies = [await node.call("system_time", key=slow) for _ in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 429, 429]
        replies = [await node.call("system_time", key=fast) for _ in range(4)]
        assert {reply.status for reply in replies} == {200}


async def test_scopes_are_read_where_the_issuer_writes_them(tmp_path: Path, mint: Issuer) -> None:
    terms = holders({"audit": {"role": "auditor"}})
    claims = ["realm_access.roles", "groups"]
    async with guarded(tmp_path, mint, more=terms, scope_claims=claims) as node:
        for said, status in (
            ({"realm_access": {"roles": ["audit", 7]}}, 200),
            ({"groups": "x audit"}, 200),
            ({"scope": "audit"}, 403),
            ({"realm_access": ["audit"]}, 403),
            ({"realm_access": {"roles": {"audit": True}}}, 403),
        ):
            reply = await node.get("/api/audit", key=mint.sign(None, None, **said))
            assert (said, reply.status) == (said, status)


async def test_the_holder_has_the_name_that_the_operator_looks_for(
    tmp_path: Path, mint: Issuer
) -> None:
    async with guarded(tmp_path, mint, name_claim="email") as node:
        token = mint.sign(email="ada@example.com")
        status = (await node.get("/api/status", key=token)).json
        assert status["caller"] == "oauth:ada@example.com"
        for email in (None, "", 7, ["ada"]):
            assert (await node.get("/api/status", key=mint.sign(email=email))).status == 401


def wrong_tokens(mint: Issuer, elsewhere: Issuer, rsa: RSAKey) -> dict[str, str]:
    """Tokens of which each is wrong in one way; without that they would be taken."""
    now, ours = int(time.time()), {"env": "prod"}
    good = mint.sign(None, None, **ours)
    head, body, signature = good.split(".")

    def said(**claims: Any) -> str:
        return mint.sign(None, None, **{**ours, **claims})

    def headed(key: Any = None, **header: Any) -> str:
        return mint.sign(key, header, **ours)

    public = rsa.as_pem(private=False)
    return {
        "another audience": said(aud="https://other.example/mcp"),
        "an audience that only begins like ours": said(aud=f"{AUDIENCE}.evil.example"),
        "no audience": said(aud=None),
        "another issuer": said(iss="https://other.example"),
        "an issuer with a slash more": said(iss=f"{mint.url}/"),
        "no issuer": said(iss=None),
        "expired": said(exp=now - HOUR),
        "no end": said(exp=None),
        "an end that is no number": said(exp="never"),
        "not valid yet": said(nbf=now + HOUR),
        "issued in the future": said(iat=now + HOUR, exp=now + 2 * HOUR),
        "nobody": said(sub=None),
        "bound to a key of its holder": said(cnf={"jkt": "x"}),
        "of another environment": said(env="dev"),
        "of no environment": said(env=None),
        "of an environment among others": said(env=["prod", "dev"]),
        "alg none": forged(mint, b"", alg="none", kid="one"),
        "alg None in another case": forged(mint, b"", alg="nOnE", kid="one"),
        "HS256 with the public key": forged(mint, public, alg="HS256", kid="rsa"),
        "HS256 with the public key of another kid": forged(
            mint, public.strip(), alg="HS256", kid="one"
        ),
        "another algorithm than its key's": forged(mint, b"x", alg="RS256", kid="one"),
        "a key that nobody published": headed(new_key("two")),
        "our kid over another key": headed(new_key("one")),
        "a kid that is a path": headed(kid="../../etc/passwd"),
        "a key that comes along": headed(jwk=new_key("x").as_dict(private=False), kid="x"),
        "an address of keys": headed(new_key("one"), jku=f"{elsewhere.url}/keys"),
        "an identity token's type": headed(typ="id+jwt"),
        "a logout token's type": headed(typ="logout+jwt"),
        "what must be understood": headed(crit=["b64"], b64=True),
        "of the issuer of another gateway": elsewhere.sign(None, None, **ours),
        "another gateway's key under our names": elsewhere.sign(None, None, iss=mint.url, **ours),
        "no signature": f"{head}.{body}.",
        "a signature of another token": f"{head}.{body}.{said(sub='eve').split('.')[2]}",
        "claims of another token": f"{head}.{said(sub='eve').split('.')[1]}.{signature}",
        "not even claims": f"{head}.{encoded(b'[]')}.{signature}",
    }


async def test_no_wrong_token_of_thirty_opens_any_edge(tmp_path: Path, mint: Issuer) -> None:
    rsa = RSAKey.generate_key(2048, {"kid": "rsa"})
    mint.published.append(rsa)
    more = f"{TOOLSETS}[limits]\ncells_per_minute = 1000000\nburst = 1000000\n{CLAIMS}"
    with issuer() as elsewhere:
        wrong = wrong_tokens(mint, elsewhere, rsa)
        assert len(wrong) >= 24
        async with guarded(tmp_path, mint, more=more) as node:
            good = mint.sign(env="prod")
            assert (await node.get("/api/tools", key=good)).status == 200
            node.doors.failing = Quota(cells_per_minute=1_000_000, burst=1_000_000)
            for name, token in wrong.items():
                for path, method in EDGES.items():
                    reply = await node.ask(method, path, key=token)
                    assert (name, path, reply.status) == (name, path, 401)
            assert (await node.get("/api/tools", key=good)).status == 200
            log = (await node.get("/api/audit?limit=10000")).body
        assert elsewhere.asked == []
    for token in (good, *wrong.values()):
        assert token.encode() not in log
