"""Arguments from a request: typed fields from their type alone, free ones from cues and quotes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from openfang.agents.planner.offer import Field, Kind, Offer
from openfang.safety.patterns import Pattern, compile_pattern, contained

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.agents.planner.finds import Finds, Found

_TOKEN = re.compile(r"[^\s,;:!?\"'`()]+")
_LIST_AFTER: Final = r"\b{name}\b:? ((?:[\w-]+)(?:(?:, | and |, and )[\w-]+)*)"
_RUN = re.compile(
    r"\b(?:run|execute|exec|launch|start)\b(?: the)?(?: (?:command|program))?:? +(.+)",
    re.IGNORECASE,
)
_IS = re.compile(
    r"(?:that )?(?:my |our |the )?(?P<key>[\w' -]+?) (?:is|are|=|equals|means) (?P<value>.+)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:about|recall|remember|what(?: is|'s)|forget) (?:my |our |the )?(?P<key>[\w' -]+?)[.?!]*$",
    re.IGNORECASE,
)
_CUES: Final = {
    "subject": ("subject", "about", "titled", "re"),
    "title": ("titled", "title", "called", "named", "issue", "bug"),
    "body": ("saying", "body", "text", "that says", "with the text", "message"),
    "content": ("content", "contents", "text", "write", "save", "with"),
    "key": ("key", "under", "as", "called"),
    "value": ("store", "value", "remember", "save"),
    "query": ("for", "find", "search", "grep", "where is", "where"),
}


@dataclass(slots=True)
class Filling:
    """The arguments of one tool, and what of the request they have used up."""

    finds: Finds
    used: set[int] = field(default_factory=set[int])

    def fill(self, offer: Offer) -> dict[str, Any] | None:
        """Fill what can be filled; None when something is missing that is required."""
        arguments: dict[str, Any] = {}
        free = [one for one in offer.fields if one.kind is Kind.FREE]
        for one in offer.fields:
            value = None if one.kind is Kind.FREE else self.typed(one)
            if value is not None:
                arguments[one.name] = value
        arguments |= self._free(free)
        missing = [one.name for one in offer.fields if one.required and one.name not in arguments]
        return (
            None
            if missing
            else {one.name: arguments[one.name] for one in offer.fields if one.name in arguments}
        )

    def typed(self, one: Field) -> Any:  # noqa: ANN401 - any JSON
        """Fill a field from what has its type."""
        ways: dict[Kind, Callable[[Field], Any]] = {
            Kind.URL: lambda _: self._take(self.finds.urls),
            Kind.EMAIL: lambda _: self._take(self.finds.emails),
            Kind.ZONE: lambda _: self._take(self.finds.zones),
            Kind.SQL: lambda _: self.finds.sql or None,
            Kind.PATH: self._path,
            Kind.NUMBER: self._number,
            Kind.CHOICE: self._choice,
            Kind.PATTERN: self._matching,
            Kind.COMMAND: self._command,
            Kind.LIST: self._list,
        }
        way = ways.get(one.kind)
        return way(one) if way else None

    def _path(self, one: Field) -> str | None:
        found = (*self.finds.paths, *self._paths_in_quotes())
        return self._take(found) or self._folder(one)

    def _take(self, found: tuple[Found, ...]) -> str | None:
        for one in found:
            if one.start not in self.used:
                self.used.add(one.start)
                return one.text
        return None

    def _paths_in_quotes(self) -> tuple[Found, ...]:
        looks = re.compile(r"[\w./~@-]*[./][\w./@-]*")
        return tuple(one for one in self.finds.quoted if looks.fullmatch(one.text))

    def _folder(self, one: Field) -> str | None:
        """A plain word is a folder only where the request says that it is one."""
        if one.required:
            return None
        said = re.search(
            r"\b(?:in|of|folder|directory|ls) (?:the (?:folder|directory) )?([\w.-]+)\s*[?.!]*$",
            self.finds.text,
        )
        return said[1].rstrip(".") if said and said[1].lower() not in _NO_FOLDER else None

    def _number(self, one: Field) -> float | int | None:
        schema, text = one.schema, self._take(self.finds.numbers)
        if text is None:
            return None
        value = float(text.replace(",", ""))
        if schema["type"] == "integer" and not value.is_integer():
            return None
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            return None
        return int(value) if value.is_integer() else value

    def _choice(self, one: Field) -> Any:  # noqa: ANN401 - any JSON
        said = {word.lower() for word in _TOKEN.findall(self.finds.text)}
        return next((word for word in one.schema["enum"] if str(word).lower() in said), None)

    def _matching(self, one: Field) -> str | None:
        pattern = _compiled(one.schema["pattern"])
        for token in _TOKEN.finditer(self.finds.text):
            text = token[0].rstrip(".")
            if token.start() in self.used or pattern is None:
                continue
            if contained(pattern, text.encode()):
                self.used.add(token.start())
                return text
        return None

    def _command(self, one: Field) -> Any:  # noqa: ANN401 - a text, or a list of them
        said = self._take(self.finds.code)
        if said is None:
            found = _RUN.search(self.finds.text)
            said = found[1].strip() if found else None
        if not said:
            return None
        try:
            words = shlex.split(said)
        except ValueError:
            return None
        return words if one.schema.get("type") == "array" else said

    def _list(self, one: Field) -> list[str] | None:
        said = re.search(
            _LIST_AFTER.format(name=re.escape(one.name)), self.finds.text, re.IGNORECASE
        )
        return re.split(r", and |, | and ", said[1]) if said else None

    def _free(self, fields: list[Field]) -> dict[str, str]:
        """Fill free fields: by a cue before a quote, then by order, then by how it is said."""
        filled: dict[str, str] = {}
        for one in fields:
            value = self._cued(one)
            if value is not None:
                filled[one.name] = value
        for one in fields:
            if one.name not in filled and one.required and (value := self._take(self.finds.quoted)):
                filled[one.name] = value
        left = [one for one in fields if one.name not in filled and one.required]
        return filled | self._said(left)

    def _cued(self, one: Field) -> str | None:
        cues = _CUES.get(one.name, (one.name,))
        for found in (*self.finds.quoted, *self.finds.code):
            before = self.finds.text[: found.start].rstrip(" :,-").lower()
            if found.start not in self.used and before.endswith(tuple(cues)):
                self.used.add(found.start)
                return found.text
        return None

    def _said(self, left: list[Field]) -> dict[str, str]:
        names = [one.name for one in left]
        text = self.finds.text.strip()
        if set(names) == {"key", "value"} and (said := _IS.search(_after_verb(text))):
            return {"key": said["key"].strip(), "value": said["value"].rstrip(".!?")}
        if names == ["key"]:
            return _one("key", _ABOUT.search(text) or _UNDER.search(text))
        if len(left) == 1:
            return self._last(left[0], text)
        return {}

    def _last(self, one: Field, text: str) -> dict[str, str]:
        """One free field that is named by a word before it, or is a name after a preposition."""
        after = re.search(rf"\b{re.escape(one.name)} ([\w.-]+)", text, re.IGNORECASE)
        if after:
            return {one.name: after[1].rstrip(".")}
        if one.name == "query":
            sought = re.search(r"\b(?:for|find|grep) ([\w.-]+)", text, re.IGNORECASE)
            return {one.name: sought[1]} if sought else {}
        names = [found.text for found in self.finds.names if found.start not in self.used]
        return {one.name: names[0]} if names and one.name in _NAMED_BY_PLACE else {}


_NO_FOLDER: Final = frozenset({"here", "it", "there", "files", "workspace", "file", "this", "them"})
_NAMED_BY_PLACE: Final = frozenset(
    {"city", "place", "location", "town", "country", "name", "person"}
)
_UNDER = re.compile(r"under (?:the key )?(?P<key>[\w-]+)", re.IGNORECASE)
_VERB = re.compile(
    r"^.*?\b(?:remember|store|note|memori[sz]e|keep|save)\b(?: in mind)? ", re.IGNORECASE
)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Pattern | None:
    """Other people's patterns, in linear time; one that cannot be read is matched by nothing."""
    try:
        return compile_pattern(pattern)
    except Exception:  # noqa: BLE001 - the library raises its own, without a common kind
        return None


def _after_verb(text: str) -> str:
    return _VERB.sub("", text, count=1)


def _one(name: str, said: re.Match[str] | None) -> dict[str, str]:
    return {name: said["key"].strip()} if said and said["key"].strip() else {}
