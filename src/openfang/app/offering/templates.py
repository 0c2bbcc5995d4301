"""Whether an address may have come of a template (RFC 6570). Pure, and linear in both."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from openfang.safety.patterns import compile_pattern, contained, escape

if TYPE_CHECKING:
    from openfang.safety.patterns import Pattern

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_LONGEST: Final = 2000
# What each operator expands to. An expression without any is simple: nothing that is reserved.
_EXPANDED: Final = {
    "": r"[^/?#]*",
    "+": r"(?s:.*)",
    "#": r"(?s:#.*)?",
    ".": r"(?:\.[^/?#]*)?",
    "/": r"(?:/[^?#]*)?",
    ";": r"(?:;[^/?#]*)?",
    "?": r"(?:\?[^#]*)?",
    "&": r"(?:&[^#]*)?",
}


def could_be(template: str, address: str) -> bool:
    """Whether the template expands to this address, with some values."""
    pattern = _pattern(template)
    return pattern is not None and contained(pattern, address.encode(errors="replace"))


@lru_cache(maxsize=2048)
def _pattern(template: str) -> Pattern | None:
    if len(template) > _LONGEST:
        return None
    written: list[str] = []
    end = 0
    for found in _EXPRESSION.finditer(template):
        written += (_literal(template[end : found.start()]), _EXPANDED[found[1]])
        end = found.end()
    written.append(_literal(template[end:]))
    return compile_pattern(rf"\A{''.join(written)}\z", groups=False)


def _literal(text: str) -> str:
    return escape(text.encode(errors="replace"))


def quoted(template: str) -> str:
    """Quote all of a template but its expressions."""
    parts = _EXPRESSION.split(template)
    kept = _EXPRESSION.findall(template)
    literals = [quote(part, safe="") for part in parts[:: _EXPRESSION.groups + 1]]
    marks = [f"{{{operator}{names}}}" for operator, names in kept]
    return "".join(a + b for a, b in zip(literals, [*marks, ""], strict=True))
