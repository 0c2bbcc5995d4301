from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from joserfc.jwk import OKPKey
from tests.a2a_spec.speaking import Speaker
from tests.peers.a2a.house import key

if TYPE_CHECKING:
    from tests.faults.daemon import Answered
    from tests.peers.a2a.house import House

pytestmark = pytest.mark.requirement("C5.1", "C5.4", "C12.1")

WELL_KNOWN = "/.well-known/agent-card.json"
REQUIRED = {
    "name",
    "description",
    "supportedInterfaces",
    "version",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
}


def fetch(node: House, path: str = WELL_KNOWN, **headers: str) -> Answered:
    """Fetch a card as anybody can."""
    speaker = Speaker(node, "HTTP+JSON", version=None, key=None, more=headers)
    return speaker.raw("GET", path, None)


@pytest.fixture
def card(node: House) -> dict[str, Any]:
    return fetch(node).json


@pytest.mark.a2a("8.1-MUST-1", "8.3-MUST-1", "14.3-MUST-1", "5.7-MUST-1", "5.7-MUST-2")
def test_a_card_is_there_for_everybody(node: House, card: dict[str, Any]) -> None:
    assert fetch(node).headers["content-type"].startswith("application/json")
    assert set(card) >= REQUIRED
    assert card["name"] == "worker"
    assert card["defaultInputModes"]
    assert card["defaultOutputModes"]
    assert all({"id", "name", "description", "tags"} <= set(skill) for skill in card["skills"])
    own = fetch(node, f"/a2a/agents/worker{WELL_KNOWN}")
    assert own.json["name"] == "worker"


@pytest.mark.a2a("8.3.1-MUST-1", "8.3.1-SHOULD-1", "5.2-MUST-1", "3.6-SHOULD-1", "14.2.1-MUST-1")
def test_every_interface_is_where_the_card_says(node: House, card: dict[str, Any]) -> None:
    declared = [
        (one["protocolBinding"], one["protocolVersion"]) for one in card["supportedInterfaces"]
    ]
    assert declared[:2] == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]
    assert set(declared) <= {(b, v) for b in ("JSONRPC", "HTTP+JSON") for v in ("1.0", "0.3")}
    for one in card["supportedInterfaces"]:
        caller = Speaker(node, one["protocolBinding"], version=one["protocolVersion"])
        assert one["url"].startswith(node.url + caller.path)
        if one["protocolVersion"] == "1.0":
            assert caller.say("say hi")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.a2a("4.6.3-SHOULD-1")
@pytest.mark.requirement("C8.1")
def test_an_extension_that_is_declared_can_be_used(node: House, card: dict[str, Any]) -> None:
    [declared] = card["capabilities"]["extensions"]
    assert declared["uri"].rpartition(":")[2].isdecimal()
    assert not declared.get("required")
    user = Speaker(node, "HTTP+JSON", more={"A2A-Extensions": declared["uri"]})
    answer = user.raw(*user.request("list", {}))
    assert (answer.status, answer.headers["a2a-extensions"]) == (200, declared["uri"])


@pytest.mark.a2a("8.6-SHOULD-1", "8.6.1-SHOULD-1", "8.6.1-SHOULD-2", "8.6.2-SHOULD-2")
def test_a_card_can_be_kept(node: House) -> None:
    first = fetch(node)
    assert "max-age=" in first.headers["cache-control"]
    again = fetch(node, **{"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    changed = fetch(node, **{"If-None-Match": '"another"'})
    assert (changed.status, changed.body) == (200, first.body)


@pytest.mark.a2a(
    "8.4.1-MUST-1",
    "8.4.1-MUST-2",
    "8.4.1-MUST-3",
    "8.4.1-MUST-4",
    "8.4.1-MUST-5",
    "8.4.1-MUST-6",
    "8.4.1-MUST-7",
    "8.4.1-MUST-8",
    "8.4.2-MUST-1",
    "8.4.2-SHOULD-1",
)
def test_a_card_is_signed_so_that_the_official_library_agrees(
    node: House, card: dict[str, Any]
) -> None:
    keys = {one["kid"]: one for one in fetch(node, "/.well-known/jwks.json").json["keys"]}
    for signature in card["signatures"]:
        header = json.loads(base64.urlsafe_b64decode(f"{signature['protected']}==="))
        assert (header["typ"], header["alg"]) == ("JOSE", "EdDSA")
        assert header["kid"] in keys
        assert header["jku"] == f"{node.url}/.well-known/jwks.json"

    def known(kid: str | None, _: str | None) -> bytes:
        return OKPKey.import_key(keys[str(kid)]).as_pem(private=False)

    verify = create_signature_verifier(known, ["EdDSA"])
    verify(parse_agent_card(json.loads(json.dumps(card))))
    with pytest.raises(InvalidSignaturesError):
        verify(parse_agent_card({**json.loads(json.dumps(card)), "name": "another"}))


@pytest.mark.a2a("14.3-SHOULD-1", "13.3-SHOULD-3")
def test_no_secret_is_in_a_card(node: House, card: dict[str, Any]) -> None:
    extended = Speaker(node, "HTTP+JSON").ask("extended")
    for one in (card, extended):
        text = json.dumps(one)
        assert node.key not in text
        assert str(node.daemon.home.path) not in text


@pytest.mark.a2a("3.1.11-MUST-1", "13.3-MUST-1", "13.3-MUST-2", "14.3-MUST-2", "13.3-SHOULD-5")
def test_the_extended_card_is_for_who_has_a_key(caller: Speaker, card: dict[str, Any]) -> None:
    assert card["capabilities"]["extendedAgentCard"] is True
    extended = caller.ask("extended")
    assert (extended["name"], extended["version"]) == (card["name"], card["version"])
    assert caller.of(key=None).answer("extended").status == 401
    schemes = card["securitySchemes"]
    named = {name for one in card["securityRequirements"] for name in one["schemes"]}
    assert named <= set(schemes)
    assert any(
        one.get("httpAuthSecurityScheme", {}).get("scheme", "").lower() == "bearer"
        for one in schemes.values()
    )


@pytest.mark.a2a("13.3-MUST-3")
def test_the_extended_card_is_not_for_who_may_not_talk_to_the_agent(
    caller: Speaker, node: House
) -> None:
    stranger = caller.of(key=key(node.daemon, tools=["builtin:system_time"]))
    hidden = stranger.answer("extended")
    missing = stranger.of(agent="nobody").answer("extended")
    assert hidden.status == missing.status == 404
    assert hidden.body.replace(b"worker", b"nobody") == missing.body
