"""A secret does not leave, however it is written; what is none leaves as it is."""

from __future__ import annotations

import base64
import json
import string
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.safety.redact import Redactor

pytestmark = pytest.mark.requirement("C9.3", "C13.4")

KEY = b"k" * 32
VALUE = "correct-horse/battery+staple?"
SHAPED = "AKIA" + "IOSFODNN7" + "EXAMPLE"
REDACTOR = Redactor(KEY, [VALUE])


def percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def spellings(secret: str) -> dict[str, str]:
    plain = secret.encode()
    return {
        "plain": secret,
        "percent": quote(secret, safe=""),
        "every byte in percent": percent(secret),
        "capital percent": percent(secret).upper(),
        "percent twice": quote(percent(secret), safe=""),
        "hex": plain.hex(),
        "HEX": plain.hex().upper(),
        "base64 in percent": quote(base64.b64encode(plain).decode(), safe=""),
        **{
            f"{name}, {shift} bytes before": encode(b"?" * shift + plain + b"<>" * after).decode()
            for name, encode in (
                ("base64", base64.b64encode),
                ("base64 for URLs", base64.urlsafe_b64encode),
            )
            for shift in range(3)
            for after in range(2)
        },
    }


def leaks(arguments: object) -> bool:
    return REDACTOR.leaks(json.dumps(arguments).encode())


@pytest.mark.parametrize("secret", [VALUE, SHAPED], ids=["a known value", "a known shape"])
@pytest.mark.parametrize("name", spellings(VALUE))
def test_a_secret_is_seen_in_every_spelling(secret: str, name: str) -> None:
    spelled = spellings(secret)[name]
    assert leaks({"url": f"https://a.example/?q={spelled}"})
    assert leaks({"headers": {"X-Note": spelled}, "body": "x"})
    assert leaks({"body": {"deep": [f"before {spelled} after"]}})
    assert leaks({"url": f"https://a.example/{spelled}"})


@given(
    st.text(string.printable, min_size=6, max_size=40), st.binary(max_size=5), st.binary(max_size=5)
)
def test_any_known_value_is_seen_inside_base64_and_hex(
    value: str, before: bytes, after: bytes
) -> None:
    redactor = Redactor(KEY, [value])
    whole = before + value.encode() + after
    for spelled in (base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
        assert redactor.leaks(b'{"q":"%s"}' % spelled)
    assert redactor.leaks(b'{"q":"%s"}' % whole.hex().encode())


@pytest.mark.parametrize(
    "text",
    [
        "an ordinary sentence with 100 % of its words",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "/usr/lib/python3/site-packages/some-package/__init__.py",
        base64.b64encode(bytes(range(256)) * 4).decode(),
        "https://a.example/?q=%7B%22a%22%3A1%7D",
        "%%%%%%%2525252525",
    ],
)
def test_what_is_no_secret_leaves(text: str) -> None:
    assert not leaks({"q": text})


def test_a_known_value_in_base64_is_taken_out_of_text_and_the_rest_stays() -> None:
    spelled = base64.b64encode(b"user:" + VALUE.encode() + b":end").decode()
    clean = REDACTOR.text(f"before {spelled} after").text
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert "[redacted:known_value:" in clean
    assert VALUE.encode()[2:-2] not in base64.b64decode(clean[7:-6].split("[")[0] + "==")
    assert REDACTOR.text("nothing here").text == "nothing here"


def test_a_look_takes_time_in_proportion() -> None:
    def seconds(size: int) -> float:
        text = (b"%41" * 7 + b"QUFB" * 40 + b"6162" * 10 + b" ") * (size // 250)
        began = time.perf_counter()
        REDACTOR.leaks(text)
        return time.perf_counter() - began

    seconds(100_000)
    small = min(seconds(100_000) for _ in range(3))
    large = min(seconds(1_000_000) for _ in range(3))
    assert large < small * 40
