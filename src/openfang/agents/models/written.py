"""Calls that a model wrote as text, in the ways in which models do it. Pure.

A call is one where its tool was offered. Tags count at the beginning of a line and outside of code
blocks; JSON, in a block or not, counts where it is the whole answer. All else stays text.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.agents.models.wishes import MOST, Heard
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    Found = tuple[int, list[Heard]]

LONGEST: Final = 200_000
"""Characters: what is longer is no call, and nobody waits for it."""
MARKS: Final = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_NAMES: Final = ("name", "tool", "tool_name")
_LANGUAGES: Final = frozenset({"", "json", "tool_call", "tool_code", "xml"})
_BLOCK = re.compile(r"```([\w-]*)[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*```")
_NAME_IN = re.compile(r"""["']?(?:name|tool)["']?\s*[:=]\s*["']([\w.:-]{1,128})["']""")
_FUNCTION = re.compile(r"<function=([\w.:-]{1,128})>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter=([\w.:-]{1,128})>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_MISTRAL = re.compile(r"([\w.:-]{1,128})(?:\[CALL_ID\][\w-]*)?\[ARGS\]\s*")
_JSON = json.JSONDecoder()


def calls_in(text: str, offered: Collection[str]) -> tuple[str, list[Heard]]:
    """Part an answer into the words and the calls in it; without calls, all of it is words."""
    if len(text) > LONGEST:
        return text, []
    if (whole := _whole(text.strip(), offered)) is not None:
        return "", whole
    words: list[str] = []
    calls: list[Heard] = []
    at = 0
    for start in islice(_marks(text), MOST):
        if start < at:
            continue
        found = _tagged(text, start, offered)
        if found is not None:
            words.append(text[at:start])
            at = found[0]
            calls += found[1]
    return ("".join((*words, text[at:])), calls) if calls else (text, [])


def _marks(text: str) -> Iterator[int]:
    """Say where tags begin that count."""
    at, fenced = 0, False
    for line in _LINES.findall(text):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.lstrip().startswith(MARKS):
            yield at + len(line) - len(line.lstrip())
        at += len(line)


def _whole(text: str, offered: Collection[str]) -> list[Heard] | None:
    """Read an answer that is nothing but calls as JSON, in a block or not."""
    block = _BLOCK.fullmatch(text)
    if block is not None:
        if block[1] not in _LANGUAGES:
            return None
        inner = block[2].strip()
        rest, calls = calls_in(inner, offered) if inner.startswith(MARKS) else (inner, [])
        if calls and not rest.strip():
            return calls
        text = inner
    return _listed(_parsed(text), offered) if text.startswith(("{", "[")) else None


def _parsed(text: str) -> object:
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def _listed(value: object, offered: Collection[str]) -> list[Heard] | None:
    """Read one call or a list of them; None unless each is a call of what was offered."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    calls = [_call(one, offered) for one in values]
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def _call(value: object, offered: Collection[str]) -> Heard | None:
    if not isinstance(value, dict):
        return None
    body = cast("dict[str, Any]", value)
    if isinstance(body.get("function"), dict):
        body = cast("dict[str, Any]", body["function"])
    named = (body.get(key) for key in _NAMES)
    name = next((one for one in named if isinstance(one, str) and one in offered), None)
    if name is None:
        return None
    arguments = next((body[key] for key in _ARGUMENTS if key in body), None)
    return Heard(tool=name, arguments=arguments)


def _tagged(text: str, start: int, offered: Collection[str]) -> Found | None:
    """Read what begins with a tag: where it ends, and the calls; None if there are none."""
    mark = next(one for one in MARKS if text.startswith(one, start))
    after = start + len(mark)
    match mark:
        case "<tool_call>":
            return _tool_call(text, after, offered)
        case "<function=":
            return _functions(text, start, offered)
        case "[TOOL_CALLS]":
            return _mistral(text, after, offered)
        case _:
            return _sequence(text, after, offered)


def _tool_call(text: str, start: int, offered: Collection[str]) -> Found | None:
    end = text.find("</tool_call>", start)
    inner = text[start : end if end >= 0 else len(text)].strip()
    after = end + len("</tool_call>") if end >= 0 else len(text)
    if inner.startswith("<function="):
        found = _functions(inner, 0, offered)
        return (after, found[1]) if found else None
    calls = _listed(_parsed(inner), offered) or _unread(inner, offered)
    return (after, calls) if calls else None


def _unread(inner: str, offered: Collection[str]) -> list[Heard]:
    """Tell of a call that is no JSON, if it is plain whose: the model may write it again."""
    name = _NAME_IN.search(inner)
    return [Heard(tool=name[1], arguments=inner)] if name and name[1] in offered else []


def _functions(text: str, start: int, offered: Collection[str]) -> Found | None:
    found = _FUNCTION.match(text, start)
    if found is None or found[1] not in offered:
        return None
    inner = found[2].strip()
    parameters = {key: _plain(value) for key, value in _PARAMETER.findall(inner)}
    arguments: object = parameters if inner.startswith("<parameter=") else inner or None
    return found.end(), [Heard(tool=found[1], arguments=arguments)]


def _plain(value: str) -> object:
    """Read a value that is written without quotes: as JSON if it is some, else as text."""
    text = value.strip("\n")
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return text


def _mistral(text: str, start: int, offered: Collection[str]) -> Found | None:
    """Read a list of calls, or `name[ARGS]{...}`, one behind the other."""
    calls: list[Heard] = []
    at = start
    while named := _MISTRAL.match(text, at):
        value, end = _decoded(text, named.end())
        if value is None or named[1] not in offered:
            break
        calls.append(Heard(tool=named[1], arguments=value))
        at = end + len("[TOOL_CALLS]") if text.startswith("[TOOL_CALLS]", end) else end
    return (at, calls) if calls else _sequence(text, start, offered)


def _sequence(text: str, start: int, offered: Collection[str]) -> Found | None:
    """Read JSON, and more of it behind a semicolon."""
    calls: list[Heard] = []
    at = start
    for _ in range(MOST):
        value, end = _decoded(text, at)
        more = _listed(value, offered) if value is not None else None
        if not more:
            return (at, calls) if calls else None
        calls += more
        rest = text[end:].lstrip()
        at = end
        if not rest.startswith(";"):
            return at, calls
        at = len(text) - len(rest) + 1
    return at, calls


def _decoded(text: str, at: int) -> tuple[object, int]:
    while at < len(text) and text[at].isspace():
        at += 1
    try:
        return _JSON.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


@dataclass(slots=True)
class Holding:
    """Lets words pass as they come, and holds what may be a call until the answer is whole."""

    _held: str = ""
    _line: str = ""
    _fenced: bool = False
    _said: bool = False
    _holds: bool = False

    def feed(self, piece: str) -> str:
        """Take a piece, and give what can be said now."""
        self._held += piece
        if len(self._held) > LONGEST:
            self._said, self._holds, self._fenced = True, False, True
            return self.rest()
        if self._holds or (not self._said and _may_be_whole(self._held)):
            return ""
        return self._passed()

    def rest(self) -> str:
        """Give what is held at the end."""
        held, self._held = self._held, ""
        return held

    def _passed(self) -> str:
        """Let whole lines pass, and the begun one if no tag can come of it."""
        passed = ""
        while self._held:
            line, end, _ = self._held.partition("\n")
            whole = self._line + line
            if not self._fenced and _may_be_tag(whole, ended=bool(end)):
                self._holds = whole.lstrip().startswith(MARKS)
                break
            taken = line + end
            passed += taken
            self._held = self._held[len(taken) :]
            self._line = "" if end else whole
            if end and _FENCE.match(whole):
                self._fenced = not self._fenced
        self._said = self._said or bool(passed)
        return passed


def _may_be_tag(line: str, *, ended: bool) -> bool:
    begun = line.lstrip()
    if begun.startswith(MARKS):
        return True
    return not ended and bool(begun) and any(mark.startswith(begun) for mark in MARKS)


_BEGINNING = re.compile(
    r"""
    \s* (?:
        \{ \s* (?: ["}] | \Z )        # an object
      | \[ \s* (?: \{ | \Z )         # a list of objects
      | `{1,2} \Z | ``` [\w-]* \Z    # a block, of which no more is there yet
      | ``` (?P<language>[\w-]*) [ \t]* (?: \n \s* (?: [{\[<] | \Z ) | \Z )
    )
    """,
    re.VERBOSE,
)


def _may_be_whole(text: str) -> bool:
    """Whether an answer that begins so may be nothing but calls as JSON."""
    if not text.strip():
        return True
    found = _BEGINNING.match(text)
    return found is not None and (found["language"] or "") in _LANGUAGES
