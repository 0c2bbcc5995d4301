"""Redaction: every kind of secret goes, nothing else changes. No example is a real one."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from openfang.safety.personal import is_personal
from openfang.safety.redact import Finding, Redacted, Redactor

pytestmark = pytest.mark.requirement("C7.12", "C13.4")

KEY = b"k" * 32
PLAIN = Redactor(KEY)
HEX = "0123456789abcdef" * 8
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kM9nP2rS5uX8" * 2
PEM_BODY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2] * 4)
SECRETS = [
    ("aws_key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("aws_key", "ASIA" + "IOSFODNN7EXAMPLE"),
    ("github_token", "ghp_" + MIXED[:36]),
    ("github_token", "gho_" + MIXED[:40]),
    ("github_token", "github_pat_" + MIXED[:22] + "_" + MIXED[:59]),
    ("gitlab_token", "glpat-" + MIXED[:20]),
    ("slack_token", "xoxb-" + "123456789012-" + MIXED[:24]),
    ("slack_token", "xapp-" + "1-A012-" + HEX[:64]),
    ("anthropic_key", "sk-ant-" + "api03-" + MIXED[:80]),
    ("openai_key", "sk-" + MIXED[:48]),
    ("openai_key", "sk-proj-" + MIXED[:30] + "_" + MIXED[:20]),
    ("google_key", "AIza" + MIXED[:35]),
    ("google_token", "ya29." + MIXED[:60]),
    ("google_secret", "GOCSPX-" + MIXED[:28]),
    ("stripe_key", "sk_live_" + MIXED[:24]),
    ("stripe_key", "rk_test_" + MIXED[:24]),
    ("stripe_secret", "whsec_" + MIXED[:32]),
    ("huggingface_token", "hf_" + MIXED[:34]),
    ("npm_token", "npm_" + MIXED[:36]),
    ("pypi_token", "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:60]),
    ("sendgrid_key", "SG." + MIXED[:22] + "." + MIXED[:43]),
    ("digitalocean_token", "dop_v1_" + HEX[:64]),
    ("telegram_token", "123456789" + ":AA" + MIXED[:33]),
    ("age_key", "AGE-SECRET-KEY-1" + "Q2W3E4R5T6" * 5 + "ABCDEFGH"),
    ("openfang_key", "of_" + MIXED[:43]),
    ("openfang_key", "oft_" + MIXED[:43]),
    ("jwt", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + MIXED[:43]),
    ("private_key", f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n-----END PRIVATE KEY-----"),
    ("private_key", f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----"),
    ("private_key", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM_BODY}"),
]
INSIDE = [
    ("url_password", "postgres://app:", "s3cr3t!pw", "@db.internal/x"),
    ("url_password", "https://:", "hunter2", "@example.com/"),
    ("bearer_token", "header is Bearer ", MIXED[:40], ", next"),
    ("authorization", "Authorization: Bearer ", "tiny", "\r\nAccept: */*"),
    ("authorization", "authorization: Basic ", "dXNlcjpwYXNz", "\n"),
    ("aws_secret", "aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "\n"),
    ("slack_webhook", "https://hooks.slack.com/services/", "T00000000/B00000000/" + MIXED[:24], ""),
    ("azure_key", "AccountName=x;AccountKey=", MIXED[:86] + "==", ";EndpointSuffix=core"),
]


def mark(kind: str, secret: str) -> str:
    found = PLAIN.text(secret).found
    assert [finding.kind for finding in found] == [kind]
    return found[0].mark


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_only_the_secret_is_replaced(kind: str, secret: str) -> None:
    for before, after in (
        ("", ""),
        ("a ", " z"),
        ('{"x": "', '"}'),
        ("Ä\t=", "\nß"),
        ("k=", "&b=1"),
    ):
        redacted = PLAIN.text(before + secret + after)
        assert redacted.text == before + mark(kind, secret) + after
    assert PLAIN.contains_secret(f"x {secret}")


@pytest.mark.parametrize(
    "text",
    [
        *(secret for _, secret in SECRETS),
        *("".join(parts) for _, *parts in INSIDE),
        "write to ada@example.org",
        "DE89 3704 0044 0532 0130 00",
        "4111 1111 1111 1111",
        "+49 30 901820",
        "the words of the store",
        r"\u0041KIA",
    ],
)
def test_nothing_that_must_be_looked_at_seems_plain(text: str) -> None:
    redactor = Redactor(KEY, ["of the store"])
    assert not redactor.is_plain(text.encode())
    assert not redactor.is_plain(f"x\n{text}\ny".encode())
    assert redactor.is_plain(b"nothing of the kind")


@given(st.text(max_size=60), st.sampled_from([secret for _, secret in SECRETS]), st.text())
@settings(max_examples=100)
def test_what_seems_plain_is_plain(before: str, secret: str, after: str) -> None:
    for text in (before, before + secret[: len(after)], before + secret + after):
        if PLAIN.is_plain(text.encode("utf-8", "surrogatepass")):
            assert not PLAIN.contains_secret(text)
            assert not is_personal(text)


@pytest.mark.parametrize(("kind", "before", "secret", "after"), INSIDE)
def test_what_stands_around_a_secret_stays(kind: str, before: str, secret: str, after: str) -> None:
    redacted = PLAIN.text(before + secret + after)
    assert [finding.kind for finding in redacted.found] == [kind]
    assert redacted.text == before + redacted.found[0].mark + after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The bearer responsibilities of a token-based system",
        "a risk-averse task-oriented desk-bound person",
        "sk-fading-circle sk-cube-grid-and-something-longer",
        "of_the_people_by_the_people_for_the_people",
        "https://example.com:8080/path?x=1&next_page_token=abc#f",
        "http://[::1]:8080/ and mailto:user@example.com and a://b",
        "postgres://app:${DB_PASSWORD}@db/x and https://user:***@host/",
        "postgres://app:{password}@db/x and mysql://app:%s@db/x",
        '{"token": "next-page-2", "password": "x", "max_tokens": 100}',
        "eyJ is how these begin; eyJhbGciOiJIUzI1NiJ9 alone is a header",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000 1734567890123456789",
        "日本語のテキスト 🎉 \ud800 lone",
    ],
)
def test_ordinary_text_is_handed_back_as_the_same_object(text: str) -> None:
    redacted = PLAIN.text(text)
    assert redacted.text is text
    assert redacted.found == ()
    assert not PLAIN.contains_secret(text)


def test_a_token_as_the_user_of_a_url_is_found_beside_its_password() -> None:
    token = "ghp_" + MIXED[:36]
    redacted = PLAIN.text(f"https://{token}:x-oauth-basic@github.com/a/b")
    assert [finding.kind for finding in redacted.found] == ["github_token", "url_password"]
    assert token not in redacted.text
    assert "x-oauth-basic" not in redacted.text


def test_equal_secrets_have_equal_digests_and_another_key_another_digest() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    first, second = PLAIN.text(f"{secret} and {secret}").found
    assert first == second
    assert len(first.digest) == 12
    assert Redactor(b"x" * 32).text(secret).found[0].digest != first.digest


@pytest.mark.parametrize("length", [0, 15, 65])
def test_a_key_that_would_not_protect_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="16 to 64 bytes"):
        Redactor(b"k" * length)


def test_known_values_go_in_every_spelling() -> None:
    value = 'pä"ss\\wörd\n/1'
    redactor = Redactor(KEY, [value])
    spelled = [
        f"<{value}>",
        json.dumps({"x": value}),
        json.dumps({"x": value}, ensure_ascii=False),
        "https://h/?q=p%C3%A4%22ss%5Cw%C3%B6rd%0A%2F1",
    ]
    digests = set[Finding]()
    for text in spelled:
        redacted = redactor.text(text)
        digests.update(redacted.found)
        assert "ss" not in redacted.text.replace("https", "")
    assert [finding.kind for finding in digests] == ["known_value"]


def test_known_values_that_overlap_all_go() -> None:
    redactor = Redactor(KEY, ["abcdefgh", "efghijkl", "abcdefghij"])
    assert redactor.text("-abcdefghijkl-").text.startswith("-[redacted:known_value:")
    assert redactor.text("-abcdefghijkl-").text.endswith("]-")
    assert len(redactor.text("-abcdefghijkl-").found) == 1


def test_known_values_that_are_too_short_to_be_secret_are_ignored() -> None:
    text = "a yes is a yes"
    assert Redactor(KEY, ["yes", ""]).text(text).text is text


def test_a_thousand_known_values_are_found_too() -> None:
    redactor = Redactor(KEY, [f"value-{number:06}-x" for number in range(1_000)])
    assert redactor.text("see value-000999-x").found[0].kind == "known_value"
    assert redactor.text("see value-001000-x").found == ()


def test_of_what_an_owner_tells_the_last_two_times_count() -> None:
    redactor = Redactor(KEY, ["lasting-value"])
    redactor.learn(["of-another-owner"], "other")
    for number in range(5):
        redactor.learn([f"token-{number}", "kept-all-along"], "owner")
    known = [
        f"token-{number}" for number in range(5) if redactor.contains_secret(f"token-{number}")
    ]
    assert known == ["token-3", "token-4"]
    for value in ("lasting-value", "of-another-owner", "kept-all-along"):
        assert redactor.contains_secret(value)


def test_telling_the_same_again_forgets_nothing() -> None:
    redactor = Redactor(KEY)
    redactor.learn(["token-1"], "owner")
    for _ in range(3):
        redactor.learn(["token-2"], "owner")
        redactor.learn([], "owner")
    assert redactor.contains_secret("token-1")
    redactor.learn(["token-1"], "owner")
    assert redactor.contains_secret("token-2")
    redactor.learn(["token-3"], "owner")
    assert not redactor.contains_secret("token-2")


def test_a_call_pays_nothing_for_renewals_of_long_ago() -> None:
    redactor, fresh = Redactor(KEY), Redactor(KEY)
    for number in range(30):
        redactor.learn([f"token-{number:06}"], "owner")
    fresh.learn(["token-000028", "token-000029"])
    assert redactor._book.plain == fresh._book.plain


NAMES = [
    "password",
    "DB_PASSWORD",
    "passwd",
    "token",
    "accessToken",
    "refresh_token",
    "secret",
    "client_secret",
    "clientSecret",
    "api_key",
    "apiKey",
    "API-KEY",
    "x-api-key",
    "Authorization",
    "private_key",
    "access_key",
    "aws_secret_access_key",
    "Set-Cookie",
    "credentials",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value", ["x", "hunter2", 'with "quotes" and \\', "ünïcode\n", 123456, -1.5e3]
)
def test_in_json_a_name_is_enough_and_json_stays_json(name: str, value: object) -> None:
    source: dict[str, Any] = {"before": [1, "a"], name: value, "after": None}
    for text in (json.dumps(source), json.dumps(source, indent=2, ensure_ascii=False)):
        redacted = PLAIN.json_text(text)
        read = json.loads(redacted.text)
        assert read.pop(name) == redacted.found[0].mark
        assert read == {"before": [1, "a"], "after": None}
        assert len(redacted.found) == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"max_tokens": 100, "tokens": "many", "password": "", "secret": null, "token": true}',
        '{"user": "password", "note": "the token is gone", "secretary": "Ada"}',
        '{"keyboard": "x", "tokenizer": "bpe", "monkey": "y"}',
    ],
)
def test_other_names_and_empty_values_stay(text: str) -> None:
    assert PLAIN.json_text(text).text is text


def test_json_inside_json_is_looked_into() -> None:
    inner = json.dumps({"user": "ada", "password": "hunter2\\x", "n": 1})
    text = json.dumps({"body": inner})
    redacted = PLAIN.json_text(text)
    read = json.loads(json.loads(redacted.text)["body"])
    assert read == {"user": "ada", "password": redacted.found[0].mark, "n": 1}


def test_a_number_in_a_cut_off_json_text_becomes_a_string() -> None:
    redacted = PLAIN.json_text('{"password": 123456789, "cut')
    (found,) = redacted.found
    assert redacted.text == f'{{"password": "{found.mark}", "cut'
    assert found.kind == "named_number"


def test_a_cut_off_json_text_is_redacted_to_its_end() -> None:
    assert "hunter" not in PLAIN.json_text('{"a": 1, "password": "hunter').text


def test_json_text_finds_shapes_and_url_parameters_too() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    redacted = PLAIN.json_text(json.dumps({"t": secret, "u": "https://h/?token=abc&page=2"}))
    assert [finding.kind for finding in redacted.found] == ["aws_key", "named_secret"]
    assert json.loads(redacted.text)["u"].endswith("&page=2")


@pytest.mark.parametrize("secret", [secret for _, secret in SECRETS])
def test_redacting_twice_is_redacting_once(secret: str) -> None:
    text = json.dumps(
        {"password": secret, "u": f"https://a:{'b' * 9}@h/", "t": secret, "api_key": 7}
    )
    for redact in (PLAIN.text, PLAIN.json_text):
        once = redact(text).text
        assert redact(once) == Redacted(once)


@settings(max_examples=150, deadline=None)
@given(
    before=st.text(),
    after=st.text(),
    secret=st.sampled_from([secret for _, secret in SECRETS]),
)
def test_whatever_stands_around_it_a_secret_goes_and_the_rest_stays(
    before: str, after: str, secret: str
) -> None:
    assume(not PLAIN.contains_secret(before + " ") and not PLAIN.contains_secret(" " + after))
    # Without a sign in between, base64 behind a key that was cut would belong to the key.
    redacted = PLAIN.text(f"{before} {secret} ~ {after}")
    assert secret not in redacted.text
    assert redacted.text.startswith(before)
    assert redacted.text.endswith(after)


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_text_without_a_secret_comes_back_untouched(text: str) -> None:
    assume(not PLAIN.contains_secret(text))
    assert PLAIN.text(text).text is text


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----" * 20_000,
        "://:" * 200_000,
        "bearer " * 100_000,
        '"password' * 80_000,
        "eyJ" + "a" * 800_000,
        "A" * 1_000_000,
        '"password": "' + "\\" * 500_000,
    ],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    PLAIN.text(text)
    PLAIN.json_text(text)
    assert time.process_time() - began < 5


ESCAPES = [r"\n", r"\t", r"\r", r"\b", r"\f", r"\u000a", r"\u001B", r"\"", r"\\", r"\/", r"a\u002c"]


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_a_secret_behind_an_escape_goes_and_the_escape_stays(
    kind: str, secret: str, escape: str
) -> None:
    text = f'{{"x": ["ä{escape}{json.dumps(secret)[1:-1]}\\n"], "n": 1}}'
    before = json.loads(f'"ä{escape}"')
    expected = {"x": [f"{before}{mark(kind, secret)}\n"], "n": 1}
    assert json.loads(PLAIN.text(text).text) == expected
    assert json.loads(PLAIN.json_text(text).text) == expected
    assert PLAIN.contains_secret(text)
    assert PLAIN.tree(json.loads(text)) == expected


@pytest.mark.parametrize("escape", [r"\n", r"\t", r"\r", r"\b", r"\f", r"\u001b"])
@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_a_secret_behind_an_escape_is_seen_in_text_that_is_only_partly_json(
    kind: str, secret: str, escape: str
) -> None:
    inner = json.dumps(secret)[1:-1]
    redacted = PLAIN.text(f'see\n{{"x": "a{escape}{inner}"}}')
    assert [finding.kind for finding in redacted.found] == [kind]
    assert redacted.text == f'see\n{{"x": "a{escape}{redacted.found[0].mark}"}}'


@pytest.mark.parametrize("space", [r"\n", r"\t", r"\r\n ", " "])
def test_a_bearer_token_behind_an_escaped_space_goes(space: str) -> None:
    redacted = PLAIN.json_text(f'{{"h": "Bearer{space}{MIXED[:40]}"}}')
    assert redacted.text == f'{{"h": "Bearer{space}{redacted.found[0].mark}"}}'


@pytest.mark.parametrize("letters", ["pm_" + MIXED[:36], "pm_" + MIXED[:40]])
def test_the_letter_of_an_escape_is_no_part_of_a_secret(letters: str) -> None:
    text = rf'{{"x": "\n{letters}"}}'
    assert PLAIN.text(text).text is text
    known = Redactor(KEY, ["nabcdef"])
    assert known.json_text(r'["\nabcdef"]').text == r'["\nabcdef"]'


def test_a_secret_spelled_with_needless_escapes_is_found() -> None:
    text = r'{"x": "\u0067hp_' + MIXED[:36] + r'", "u": "https:\/\/a:hunter2@h\/", "p\u0077d": "x"}'
    redacted = PLAIN.json_text(text)
    kinds = [finding.kind for finding in redacted.found]
    assert kinds == ["github_token", "url_password", "named_secret"]
    assert json.loads(redacted.text)["x"] == redacted.found[0].mark


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 20261116, "b": [1, 2]}',
        '{"a":[20261116,-20261116.5,1202611160]}',
        "20261116",
        ' { "token" : 20261116 } ',
        '{"20261116": "is 20261116"}',
    ],
)
def test_a_known_number_becomes_a_string(text: str) -> None:
    redacted = Redactor(KEY, ["20261116"]).json_text(text)
    json.loads(redacted.text)
    assert "20261116" not in redacted.text
    assert redacted.found


def test_what_stands_beside_a_known_number_stays_byte_for_byte() -> None:
    text = '{"a": 1.50, "b" :20261116,\n"c": 123456789012345678901234567890, "d": "\\u00e4\\/"}'
    redactor = Redactor(KEY, ["20261116"])
    for redacted in (redactor.text(text), redactor.json_text(text)):
        assert redacted.text == text.replace("20261116", f'"{redacted.found[0].mark}"')
    assert redactor.text("PIN 20261116.").text == f"PIN {redactor.text('20261116').text}."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"type": "account", "id": 7}', '{"a": {"type":"account","id":7}, "b": 1}'),
        ('{"type": "account", "id": 7}', '{"a": {"type": "account", "id": 7}, "b": 1}'),
        ('"hunter"', '{"a": "hunter", "b": 1}'),
        ("[1,2,3]", '{"a": [1,2,3], "b": 1}'),
        ("2,3],[4", '{"a": [[1,2,3],[4]], "b": 1}'),
    ],
)
def test_a_known_value_that_is_json_goes_with_the_smallest_value_around_it(
    value: str, text: str
) -> None:
    redacted = Redactor(KEY, [value]).json_text(text)
    assert json.loads(redacted.text) == {"a": redacted.found[0].mark, "b": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [('":true,"', '{"a":true,"b":1}'), ("\n123456", "\n123456"), (": null", '{"a": null}')],
)
def test_a_known_value_that_is_part_of_a_whole_takes_it_all(value: str, text: str) -> None:
    redacted = Redactor(KEY, [value]).json_text(text)
    assert json.loads(redacted.text) == redacted.found[0].mark


def test_without_names_a_member_called_token_stays() -> None:
    text = '{"token": "next-page", "pin": 20261116, "api_key": 7}'
    redactor = Redactor(KEY, ["20261116"])
    clean = redactor.json_text(text, names=False)
    assert json.loads(clean.text) == {
        "token": "next-page",
        "pin": clean.found[0].mark,
        "api_key": 7,
    }


def test_a_tree_without_a_secret_is_the_same_object() -> None:
    tree = {"token": "next", "list": [1, None, True, "a\n\u001b"]}
    redactor = Redactor(KEY, ["20261116"])
    assert redactor.tree(tree) is tree
    pin = redactor.json_text("20261116").found[0].mark
    assert redactor.tree([20261116, tree]) == [pin, tree]
    assert redactor.tree(20261116) == pin


@pytest.mark.parametrize(
    "text",
    [r"{\n", "[1, 2", '"a', '{"password": ', r'"\u12', "[" * 100_000, '["a"] and 20261116', ""],
)
def test_what_is_not_json_is_redacted_as_text(text: str) -> None:
    redactor = Redactor(KEY, ["20261116"])
    assert "20261116" not in redactor.json_text(text + " 20261116 ghp_" + MIXED[:36]).text


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
VALUES = st.sampled_from(
    [
        "20261116",
        'a"b\\c\nd',
        '{"k":[1,2]}',
        "hunter2",
        "-1.25e7",
        "[1, 2]",
        "ünïcode\x1b",
        "null,1",
    ]
)


def _leaves(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        members = cast("dict[str, Any]", tree)
        return [leaf for key, value in members.items() for leaf in (key, *_leaves(value))]
    if isinstance(tree, list):
        items = cast("list[Any]", tree)
        return [leaf for item in items for leaf in _leaves(item)]
    return [tree if isinstance(tree, str) else json.dumps(tree)]


@settings(max_examples=250, deadline=None)
@given(
    tree=st.recursive(
        LEAVES | VALUES | VALUES.map(lambda v: f"\n{v}é") | st.just(20261116),
        lambda inner: (
            st.lists(inner | st.just([1, 2]), max_size=4)
            | st.dictionaries(st.text() | VALUES, inner, max_size=4)
        ),
        max_leaves=12,
    ),
    values=st.lists(VALUES, min_size=1, max_size=4),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    names=st.booleans(),
)
def test_json_stays_json_and_no_known_value_is_left(
    *, tree: Any, values: list[str], indent: int | None, ascii_only: bool, names: bool
) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    redacted = Redactor(KEY, values).json_text(text, names=names)
    read = json.loads(redacted.text)
    assert not any(value in leaf for leaf in _leaves(read) for value in values)
    assert redacted.found or redacted.text is text


@settings(max_examples=150, deadline=None)
@given(tree=TREES, indent=st.sampled_from([None, 2]))
def test_json_without_a_secret_comes_back_untouched(tree: Any, indent: int | None) -> None:
    text = json.dumps({"pässword": tree}, indent=indent)
    assume(not PLAIN.json_text(text).found)
    assert PLAIN.json_text(text).text is text


@pytest.mark.parametrize("escape", ["\\n", "\\t", "\\u001b"])
def test_personal_data_behind_an_escape_is_seen(escape: str) -> None:
    for found in ("DE89370400440532013000", "4111 1111 1111 1111", "+49 30 1234567", "ada@h.org"):
        assert is_personal(f'{{"x": "{escape}{found}"}}')
    assert not is_personal(f'{{"x": "{escape}noreply@h.org"}}')
