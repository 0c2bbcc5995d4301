"""Cards: what they claim, that the official library reads and verifies them, and what they cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from a2a.utils.signing import (
    InvalidSignaturesError,
    create_agent_card_signer,
    create_signature_verifier,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt import PyJWK

from openfang.app.a2a.signing import Signer, canonical
from openfang.app.clock import SystemClock
from openfang.core.calls import Caller
from openfang.edges.a2a.cards import current_card, merged_card, seed_card
from openfang.edges.a2a.ports import Described, Settings, Skill
from openfang.edges.a2a.publishing import Publishing
from openfang.protocols.a2a.extensions import CHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.tasks import Tasks
    from openfang.core.trace import Chain

pytestmark = pytest.mark.requirement("C5.1", "C5.4")

SEEDS = Path(__file__).parents[2] / "data/seeds"
BASE = "http://127.0.0.1:50051"
SETTINGS = Settings(base=BASE, path="/a2a", merged=True, primary="code-reviewer")
FILE_READ = Skill(
    id="file_read",
    name="file read",
    description="Can use the file_read tool",
    tags=("tool",),
)
REVIEWER = Described(
    name="code-reviewer",
    title="Code reviewer",
    description="Reviews code for bugs, security issues, and style",
    version="1.2.0",
    skills=(FILE_READ,),
)
ODD = Described(name="ä b/c", title="", description="", version="")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SIGNER = Signer(KEY, SystemClock(), lambda: BASE)


@dataclass
class Home:
    """A house with agents and a key, and nothing that could be done in it."""

    shown: list[Described]
    served: Settings | None = SETTINGS
    signed: list[Mapping[str, Any]] = field(default_factory=list[Any])

    def settings(self) -> Settings | None:
        return self.served

    async def agents(self, caller: Caller | None) -> Sequence[Described]:
        del caller
        return self.shown

    async def agent(self, name: str, caller: Caller | None) -> Described | None:
        del caller
        return next((one for one in self.shown if one.name == name), None)

    async def knows(self, name: str, caller: Caller) -> bool:
        return await self.agent(name, caller) is not None

    def tasks(self, caller: Caller, chain: Chain) -> Tasks:
        raise NotImplementedError

    def sign(self, card: Mapping[str, Any]) -> Mapping[str, Any]:
        self.signed.append(card)
        return SIGNER.sign(card)

    def keys(self) -> Mapping[str, Any]:
        return SIGNER.keys()


def key_of(kid: str | None, jku: str | None) -> PyJWK:
    """Find the key as a peer does: by its name, in the set at the address that is signed."""
    assert jku == f"{BASE}/.well-known/jwks.json"
    return PyJWK(next(key for key in SIGNER.keys()["keys"] if key["kid"] == kid))


VERIFY = create_signature_verifier(key_of, ["EdDSA"])


def served(agent: Described | None, settings: Settings = SETTINGS) -> dict[str, Any]:
    shown = [] if agent is None else [agent]
    return json.loads(Publishing(Home(shown)).current(agent, settings).body)


@pytest.mark.parametrize("file", ["000-17-document.json", "001-09-document.json"])
def test_the_seeds_own_card_is_what_is_written(file: str) -> None:
    seed = json.loads((SEEDS / file).read_text("utf-8"))
    card = seed_card(REVIEWER, SETTINGS)
    assert card == seed
    assert list(card) == list(seed)


def test_an_agent_that_is_not_the_primary_one_has_an_address_of_its_own() -> None:
    other = replace(SETTINGS, primary="somebody")
    assert seed_card(REVIEWER, other)["url"] == f"{BASE}/a2a/agents/code-reviewer/seed"
    assert seed_card(ODD, other)["url"] == f"{BASE}/a2a/agents/%C3%A4%20b%2Fc/seed"


@pytest.mark.requirement("C8.1")
def test_a_card_says_that_chains_are_told_and_whether_they_must_be() -> None:
    def declared(**settings: bool) -> list[dict[str, Any]]:
        card = served(REVIEWER, replace(SETTINGS, **settings))
        assert parse_agent_card(card).capabilities.extensions[0].uri == CHAIN
        return card["capabilities"]["extensions"]

    [said] = declared(merged=False)
    assert said.keys() == {"uri", "description"}
    assert declared(merged=True) == [{**said, "required": False}]
    for merged in (True, False):
        assert declared(merged=merged, require_chain=True) == [{**said, "required": True}]


def test_without_an_agent_the_card_claims_nothing() -> None:
    seed = seed_card(None, SETTINGS)
    assert (seed["name"], seed["skills"]) == ("openfang", [])
    assert set(seed["capabilities"].values()) == {False}
    current = served(None)
    assert current["name"] == "openfang"
    assert current["skills"] == []
    assert set(current["capabilities"].values()) == {False}
    assert {one["url"] for one in current["supportedInterfaces"]} == {f"{BASE}/a2a"}
    assert "supportsAuthenticatedExtendedCard" not in current


@pytest.mark.parametrize("agent", [REVIEWER, ODD, None])
def test_a_current_card_is_the_librarys_own_and_loses_nothing_on_the_way(
    agent: Described | None,
) -> None:
    card = current_card(agent, SETTINGS)
    assert MessageToDict(ParseDict(card, AgentCard())) == card


@pytest.mark.parametrize("agent", [REVIEWER, ODD, None])
def test_a_merged_card_has_what_the_library_adds_for_readers_of_0_3(
    agent: Described | None,
) -> None:
    card = current_card(agent, SETTINGS)
    assert merged_card(card) == agent_card_to_dict(ParseDict(card, AgentCard()))


def test_every_interface_is_where_the_agent_is() -> None:
    address = f"{BASE}/a2a/agents/code-reviewer"
    assert [tuple(one.values()) for one in served(REVIEWER)["supportedInterfaces"]] == [
        (address, "JSONRPC", "1.0"),
        (f"{address}/rest", "HTTP+JSON", "1.0"),
        (address, "JSONRPC", "0.3"),
        (f"{address}/rest", "HTTP+JSON", "0.3"),
    ]
    elsewhere = served(ODD, replace(SETTINGS, base="https://x.example", path="/deep/er"))
    url = "https://x.example/deep/er/agents/%C3%A4%20b%2Fc"
    assert (elsewhere["url"], elsewhere["skills"][0]["id"]) == (url, "ä b/c")


def test_a_strict_card_has_nothing_for_older_readers() -> None:
    strict = served(REVIEWER, replace(SETTINGS, merged=False))
    older = {"url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"}
    assert not older & set(strict)
    assert older <= set(served(REVIEWER))
    assert len(strict["signatures"]) == 1


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("agent", [REVIEWER, ODD, None])
def test_the_library_verifies_the_signature_of_every_card(
    agent: Described | None, *, merged: bool
) -> None:
    card = parse_agent_card(served(agent, replace(SETTINGS, merged=merged)))
    VERIFY(card)
    card.description += "!"
    with pytest.raises(InvalidSignaturesError):
        VERIFY(card)


def test_the_second_signature_of_a_merged_card_is_over_all_that_is_served() -> None:
    card = served(REVIEWER)
    first, second = card.pop("signatures")
    assert second == SIGNER.sign(card)
    assert first == SIGNER.sign(MessageToDict(parse_agent_card(card))) != second


def test_the_signature_is_the_one_that_the_library_makes() -> None:
    ours = ParseDict(current_card(REVIEWER, SETTINGS), AgentCard())
    jku = f"{BASE}/.well-known/jwks.json"
    header: Any = {"kid": SIGNER.kid, "alg": "EdDSA", "jku": jku, "typ": "JOSE"}
    theirs = create_agent_card_signer(KEY, header)(ours)  # pyright: ignore[reportArgumentType] - it takes keys of cryptography as well
    VERIFY(theirs)
    payload = canonical(current_card(REVIEWER, SETTINGS))
    assert payload == canonical({**MessageToDict(theirs)})


async def test_a_card_is_made_and_signed_once_until_something_changes() -> None:
    home = Home([REVIEWER])
    publishing = Publishing(home)
    first = publishing.current(REVIEWER, SETTINGS)
    again = publishing.current(replace(REVIEWER, skills=(FILE_READ,)), replace(SETTINGS))
    assert again is first
    assert len(home.signed) == 2
    for agent, settings in (
        (replace(REVIEWER, description="Other words"), SETTINGS),
        (replace(REVIEWER, skills=()), SETTINGS),
        (REVIEWER, replace(SETTINGS, base="https://x.example")),
        (REVIEWER, replace(SETTINGS, merged=False)),
    ):
        other = publishing.current(agent, settings)
        assert other.tag != first.tag
    assert publishing.current(REVIEWER, SETTINGS) is first


async def test_five_hundred_cards_are_written_once() -> None:
    home = Home([replace(REVIEWER, name=f"agent-{number}") for number in range(500)])
    publishing = Publishing(home)
    whole = await publishing.listed(home.shown, SETTINGS, current=True)
    body = json.loads(whole.body)
    assert (body["total"], len(body["agents"])) == (500, 500)
    assert len(home.signed) == 1000
    assert await publishing.listed(list(home.shown), SETTINGS, current=True) == whole
    assert len(home.signed) == 1000


async def test_the_card_for_a_caller_is_of_the_librarys_own_type() -> None:
    home = Home([REVIEWER])
    publishing, caller = Publishing(home), Caller(id="key:a")
    card = await publishing.agent_card("code-reviewer", caller)
    assert isinstance(card, AgentCard)
    VERIFY(card)
    assert [skill.id for skill in card.skills] == ["file_read"]
    assert await publishing.agent_card("nobody", caller) is None
    home.served = None
    assert await publishing.agent_card("code-reviewer", caller) is None
