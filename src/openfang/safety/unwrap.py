"""What is written in percent, base64 or hexadecimal, read: a secret may leave in any of them.

Pure and linear: each text is read a bounded number of times, whatever stands in it.
"""

from __future__ import annotations

from binascii import a2b_base64, a2b_hex
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from openfang.safety.patterns import Pattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS: Final = 3
_BASE64: Final = compile_pattern(r"[A-Za-z0-9+/_\-]{20,}")
_HEX: Final = compile_pattern(r"[0-9A-Fa-f]{24,}")
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


def unwrapped(source: bytes) -> Iterator[bytes]:
    """Read what may be encoded in a text: percent up to three times, in each base64 and hex."""
    yield from _inside(source)
    for _ in range(_ROUNDS):
        if b"%" not in source:
            return
        read = unquote_to_bytes(source)
        if read == source:
            return
        source = read
        yield source
        yield from _inside(source)


def _inside(source: bytes) -> Iterator[bytes]:
    """Read base64 and hexadecimal, from wherever they may begin: a letter may stand before them."""
    runs = _runs(_BASE64, source)
    if runs:
        digits = _runs(_HEX, source)
        yield b"\n".join(
            (
                *(_from_base64(run[shift:]) for run in runs for shift in range(4)),
                *(_from_hex(run[shift:]) for run in digits for shift in range(2)),
            )
        )


def _runs(pattern: Pattern, source: bytes) -> list[bytes]:
    return [source[slice(*match.span())] for match in pattern.finditer(source)]


def _from_base64(run: bytes) -> bytes:
    if len(run) % 4 == 1:
        run = run[:-1]
    return a2b_base64(run.translate(_STANDARD) + b"=" * (-len(run) % 4))


def _from_hex(run: bytes) -> bytes:
    return a2b_hex(run[: len(run) // 2 * 2])
