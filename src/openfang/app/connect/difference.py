"""How a text would change, for people: a unified diff that shows no secret."""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from openfang.app.servers.sealing import looks_secret
from openfang.config.show import HIDDEN, without_secrets
from openfang.safety.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING: Final = "/dev/null"
_LONGEST: Final = 300
_AROUND: Final = 60
_MEMBER = re.compile(r"""(["']?)([\w.-]+)\1(\s*[:=]\s*)(["'])((?:\\.|(?!\4)[^\\\n])*)\4""")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token) (?=\S)", re.IGNORECASE)
_STRING = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\n])*)\1""")
_SHAPES: Final = Redactor(bytes(16))


def difference(before: bytes | None, after: bytes | None, name: str) -> list[str]:
    """Give the lines of a diff; a file that is not there is told as such."""
    changed = unified_diff(
        _lines(before),
        _lines(after),
        fromfile=name if before is not None else NOTHING,
        tofile=name if after is not None else NOTHING,
        lineterm="",
    )
    return _shortened(_without_secrets(list(changed)))


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode(errors="replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


def _shortened(lines: list[str]) -> list[str]:
    """Of lines too long to be read show what changed in them."""
    shown: list[str] = []
    for line, other in zip(lines, _partners(lines), strict=True):
        if len(line) <= _LONGEST:
            shown.append(line)
            continue
        start, end = _changed(line[1:], other[1:]) if other else (0, _LONGEST)
        cut = line[1:][max(0, start - _AROUND) : end + _AROUND]
        shown.append(f"{line[0]}... {cut} ...")
    return shown


def _partners(lines: list[str]) -> Iterator[str]:
    """Give to each removed line the added one below it, and the other way round."""
    for number, line in enumerate(lines):
        step = {"-": 1, "+": -1}.get(line[:1], 0)
        other = lines[number + step] if 0 <= number + step < len(lines) else ""
        yield other if step and other[:1] == {"-": "+", "+": "-"}[line[0]] else ""


def _changed(line: str, other: str) -> tuple[int, int]:
    """Find the stretch of a line that is not in the other."""
    most = min(len(line), len(other))
    start = next((at for at in range(most) if line[at] != other[at]), most)
    tail = next((at for at in range(most - start) if line[-1 - at] != other[-1 - at]), most - start)
    return start, len(line) - tail


def _without_secrets(lines: list[str]) -> list[str]:
    """Hide what a name or its form calls secret, in values and in the words of commands."""
    text = _MEMBER.sub(_member, "\n".join(lines))
    shown = iter(without_secrets(found[2] for found in _STRING.finditer(text)))
    text = _STRING.sub(lambda found: _word(found, next(shown)), text)
    return [_SHAPES.text(line).text for line in text.split("\n")] if lines else []


def _member(found: re.Match[str]) -> str:
    quote, name, mark, other, value = found.groups()
    named = without_secrets([f"{name}={value}"])[0].endswith(HIDDEN)
    scheme = _SCHEME.match(value)
    hidden = f"{scheme[0] if scheme else ''}{HIDDEN}" if named or looks_secret(value) else value
    return f"{quote}{name}{quote}{mark}{other}{hidden}{other}"


def _word(found: re.Match[str], shown: str) -> str:
    return f"{found[1]}{HIDDEN if looks_secret(found[2]) else shown}{found[1]}"
