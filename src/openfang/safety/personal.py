"""Personal data in text, by shape and checksum; conservative, so that ordinary numbers stay so.

Names, postal addresses and numbers in national form are not found. Of each kind, the first ten
thousand candidates are looked at.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from openfang.safety.patterns import ESCAPE, WORD_START, compile_pattern, contained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.safety.patterns import Pattern

_NOBODY = frozenset({b"git", b"hg", b"noreply", b"no-reply"})
_CANDIDATES = 10_000
_CARD_LENGTHS = {
    "2": (16,),
    "3": (14, 15, 16),
    "4": (13, 16, 19),
    "5": (16,),
    "6": (16, 17, 18, 19),
}
_ACCOUNTS_BY_COUNTRY = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 "
    "JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 "
    "NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 "
    "TR26 UA29 VA22 VG24 XK20"
)
_ACCOUNT_LENGTHS = {row[:2]: int(row[2:]) for row in _ACCOUNTS_BY_COUNTRY.split()}
_PHONE_DIGITS = range(8, 16)
_UNBROKEN_PHONE_DIGITS = range(10, 16)

_ADDRESS = (
    rf"(?:{ESCAPE})?([A-Za-z0-9._%+\-]+)"
    r"@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,24}\b"
)
_ACCOUNT = rf"{WORD_START}([A-Z]{{2}}[0-9]{{2}}(?: ?[A-Z0-9]{{4}}){{2,7}}(?: ?[A-Z0-9]{{1,4}})?)\b"
_CARD = WORD_START + (
    r"([2-6][0-9]{3}(?:[ \-]?[0-9]{4}){3}|3[0-9]{3}[ \-]?[0-9]{6}[ \-]?[0-9]{4,5}"
    r"|[2-6][0-9]{12,18})\b"
)
_PHONE = (
    rf"(?:^|[\s(\"':,;>]|{ESCAPE})"
    r"(\+[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{1,4}\)?){2,6})\b"
)
PERSONAL = f"{_ADDRESS}|{_ACCOUNT}|{_CARD}|{_PHONE}"
"""Whatever may be personal data matches; `is_personal` looks again."""
_ANY = compile_pattern(PERSONAL, groups=False)
_ADDRESSES, _ACCOUNTS, _CARDS, _PHONES = map(compile_pattern, (_ADDRESS, _ACCOUNT, _CARD, _PHONE))


def is_personal(text: str) -> bool:
    """Whether an e-mail address, IBAN, payment card or international phone number stands in it."""
    source = text.encode("utf-8", "surrogatepass")
    return contained(_ANY, source) and any(_personal(source))


def _personal(source: bytes) -> Iterator[bool]:
    """Look again at what has the shape: most long numbers are neither cards nor accounts."""
    yield from (address.lower() not in _NOBODY for address in _found(_ADDRESSES, source))
    yield from (_is_card(_digits(card)) for card in _found(_CARDS, source))
    yield from (_is_account(iban) for iban in _found(_ACCOUNTS, source))
    yield from (_is_phone(number) for number in _found(_PHONES, source))


def _found(pattern: Pattern, source: bytes) -> Iterator[bytes]:
    for match in islice(pattern.finditer(source), _CANDIDATES):
        yield source[slice(*match.span(1))]


def _digits(text: bytes) -> str:
    return text.translate(None, b" +-./()").decode("ascii")


def _is_card(digits: str) -> bool:
    """Luhn, for the lengths that issuers with this first digit use."""
    if len(digits) not in _CARD_LENGTHS[digits[0]]:
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[::-2]))) % 10 == 0


def _is_account(found: bytes) -> bool:
    """ISO 7064: country and check digits moved behind, letters as numbers, remainder 1 by 97."""
    iban = found.replace(b" ", b"").decode("ascii")
    length = _ACCOUNT_LENGTHS.get(iban[:2])
    if length is None or len(iban) < length:
        return False
    moved = iban[4:length] + iban[:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


def _is_phone(found: bytes) -> bool:
    digits = _digits(found)
    unbroken = len(digits) + 1 == len(found)
    return len(digits) in (_UNBROKEN_PHONE_DIGITS if unbroken else _PHONE_DIGITS)
