"""The headers of every page: what a browser may load, run and send from it."""

from __future__ import annotations

from typing import Final

HTML: Final = b"text/html; charset=utf-8"
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PROTECTED: Final = (
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
KEPT: Final = (b"cache-control", b"public, max-age=31536000, immutable")
