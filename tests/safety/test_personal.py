"""What is taken for personal data, and what only looks like it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.safety.personal import is_personal

pytestmark = pytest.mark.requirement("C9.1")
PERSONAL = [
    "write to ada.lovelace@example.co.uk, please",
    "IBAN DE89 3704 0044 0532 0130 00 BIC X",
    "GB82WEST12345698765432",
    "AT61 1904 3002 3457 3201 WITH THANKS",
    "card 4111 1111 1111 1111 12/29",
    "5500-0000-0000-0004",
    "378282246310005",
    "2223 0031 2200 3222",
    "30569309025904",
    "3530111333300000",
    "4222222222222",
    "6011 1111 1111 1117",
    "6304 0000 0000 0000 00",
    "call +49 30 901820-00",
    "tel:+14155552671",
    "+1 234 5678",
    "+123 456 789 012 345",
    "+1234567890",
    "+44 (20) 7946 0958",
]
ORDINARY = [
    "",
    "order 4111 1111 1111 1112",
    "1734567890123 and 1734567890123456789",
    "DE89 3704 0044 0532 0130 01",
    "a diff:\n+20240101\n-20240102",
    "git@github.com:org/repo.git noreply@example.com",
    "lodash@4.17.21 and user@localhost",
    "0000 0000 0000 0000",
    "+1 234 567",
    "+123 456 789 012 3456",
    "+123456789",
    "2223003122003",
    "5500 0000 0000 4",
    "timezone +0200, 2 + 2 = 4, C++11",
    "550e8400-e29b-41d4-a716-446655440000",
    "192.168.0.1:8080 v1.2.3",
    "日本語 \ud800",
]


@pytest.mark.parametrize("text", PERSONAL)
def test_personal_data_is_known(text: str) -> None:
    assert is_personal(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_and_names_are_not(text: str) -> None:
    assert not is_personal(text)


def test_a_long_text_is_read_in_bounded_time() -> None:
    began = time.process_time()
    for text in ("4111 1111 1111 1112 " * 50_000, "a.b@" * 250_000, "DE89 3704 " * 100_000):
        assert not is_personal(text)
    assert time.process_time() - began < 5


def luhn(digits: str) -> str:
    """Add the check digit, computed the schoolbook way."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return digits + str(-total % 10)


@settings(max_examples=100, deadline=None)
@given(body=st.text("0123456789", min_size=14, max_size=14), wrong=st.integers(1, 9))
def test_a_card_is_known_by_its_check_digit(body: str, wrong: int) -> None:
    card = luhn("4" + body)
    assert is_personal(f"pay {card} now")
    bad = card[:-1] + str((int(card[-1]) + wrong) % 10)
    assert not is_personal(f"pay {bad} now")
