"""What can be said in a condition: its variables and functions in words, for the page of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# The four risks, LOW to CRITICAL, are constants beside these.
VARIABLES_IN_WORDS: Final[Mapping[str, str]] = {
    "args": "the arguments of the call, as they were sent",
    "caller.id": "who calls, such as `key:ci`",
    "caller.role": "the role of who calls",
    "tool.id": "the canonical id of the tool",
    "tool.name": "its own name",
    "tool.source": "who offers it: a server, an agent, or `builtin`",
    "tool.kind": "where it comes from, as `kinds` has it",
    "tool.trust": "how far who offers it is trusted: `low`, `medium` or `high`",
    "tool.effect": "what it does to the world",
    "tool.risk": "to compare with `LOW`, `MEDIUM`, `HIGH`, `CRITICAL`",
    "tool.tags": "its side-effect tags",
    "labels": "what the call carries",
    "call.ancestors": "the calls that it is within",
    "call.edge": "where the call, or the one that led to it, came in",
    "call.mode": "`planning` or `execution`",
    "call.project": "the project, or empty",
    "call.task": "the task that it is part of, or empty",
    "call.root": "who began its chain",
    "call.depth": "1 for a call that is within no other",
    "now": "when it is made",
}


class Function(NamedTuple):
    """What it is for, and an expression with it that is true, or can be."""

    what: str
    example: str


FUNCTIONS: Final[Mapping[str, Function]] = {
    "has": Function("whether an argument is there", "has(args.path)"),
    "size": Function("the length of a text, a list or a map", "'abc'.size() == 3"),
    "in": Function("whether a list or a map has it", "'fs.write' in tool.tags"),
    "startsWith, endsWith, contains": Function("pieces of a text", "tool.id.startsWith('mcp:')"),
    "matches": Function("a pattern, in linear time", "'a-1'.matches('^[a-z]-[0-9]$')"),
    "lowerAscii, upperAscii, trim": Function(
        "a text, brought into a form", "'A'.lowerAscii() == 'a'"
    ),
    "split, join, replace, substring": Function("parts of a text", "'a,b'.split(',')[1] == 'b'"),
    "indexOf, lastIndexOf, charAt, reverse": Function(
        "places in a text", "'abc'.indexOf('c') == 2"
    ),
    "exists, exists_one, all": Function(
        "of the entries of a list", "labels.exists(one, one == 'secret')"
    ),
    "filter, map": Function(
        "another list, made of one", "tool.tags.filter(one, one.startsWith('fs.')).size() > 0"
    ),
    "int, double, string, bool": Function("a value of another type", "int('3') == 3"),
    "timestamp, duration": Function("moments and spans", "now > timestamp('2026-01-01T00:00:00Z')"),
    "getHours, getDayOfWeek, getFullYear": Function(
        "parts of a moment, in a time zone; the week begins with Sunday, 0",
        "now.getHours('Europe/Berlin') < 24",
    ),
    "? :": Function("one or the other", "(tool.risk >= HIGH ? call.depth == 1 : true)"),
}
