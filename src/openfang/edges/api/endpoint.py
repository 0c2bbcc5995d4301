"""An endpoint as data: what it requires, takes and answers. Checks and documentation read this."""

from __future__ import annotations

import re
from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from openfang.core.calls import Role
from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.edges.api.exchange import USUAL_BODY
from openfang.safety.schemas import Validator, compile_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.edges.api.exchange import Answer, Asked, Stream

Schema = dict[str, Any]
_INTEGER = re.compile(r"\A-?[0-9]{1,18}\Z")
_TRUTH = {"true": True, "false": False}
_MOST_PARAMETERS = 50
BY_PIPELINE = ""  # the guards of the pipeline charge for a call, whoever makes it


class Access(Enum):
    """Who may ask. An administrator may ask everything; but a token is not to be had by a role."""

    PUBLIC = "public"
    TOKEN = "token"  # noqa: S105 - a kind of access
    KEY = "key"
    AUDITOR = "auditor"
    APPROVER = "approver"
    ADMIN = "admin"


KEYLESS = frozenset({Access.PUBLIC, Access.TOKEN})


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is no JSON; of a stream of events `schema` is the shape of one."""

    content_type: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of one path.

    Who asks for what is `awaited`, and hangs up, has called it off. A change is made whole all the
    same: half of one would be in force, or only on the disk.
    """

    method: str
    path: str
    name: str
    summary: str
    handle: Callable[[Asked], Awaitable[Answer | Stream]]
    access: Access = Access.KEY
    work: str = "health"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, Schema] = field(default_factory=dict[str, Schema])
    body: Schema | None = None
    answers: Mapping[int, Schema | Text | str]
    streams: Text | None = None
    problems: tuple[int, ...] = ()
    largest: int = USUAL_BODY
    awaited: bool = False

    @cached_property
    def roles(self) -> tuple[Role, ...] | None:
        """The roles that are needed beside an administrator's, if any is."""
        if self.access in {*KEYLESS, Access.KEY}:
            return None
        return () if self.access is Access.ADMIN else (Role(self.access.value),)

    @cached_property
    def called_off(self) -> bool:
        """Whether it ends when the client hangs up."""
        return self.awaited or self.method == "GET"

    @cached_property
    def _body_check(self) -> Validator:
        return compile_schema(self.body or {})

    @cached_property
    def _query_check(self) -> Validator:
        return compile_schema(
            {"type": "object", "properties": self.query, "additionalProperties": False}
        )

    def read_query(self, text: bytes) -> dict[str, Any]:
        """Read the query strictly: known names, once each, of the right type."""
        if not text:
            return {}
        pairs = _pairs(text)
        found = {name: self._value(name, value) for name, value in pairs}
        if len(found) != len(pairs):
            raise _bad_query("A parameter of the query is there more than once.")
        _check(self._query_check, found, "query")
        return found

    def _value(self, name: str, text: str) -> object:
        kind = self.query.get(name, {}).get("type")
        if kind == "integer" and _INTEGER.match(text):
            return int(text)
        return _TRUTH.get(text, text) if kind == "boolean" else text

    def check_body(self, body: object) -> None:
        """Refuse a body of another shape than the documented one."""
        if self.body is not None:
            _check(self._body_check, body, "body")


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError:
        raise _bad_query("The query is not readable.") from None


def _bad_query(message: str) -> Rejected:
    return Rejected(message, status=400, rule="query", way_out="see GET /api/openapi.json")


def _check(check: Validator, value: object, where: str) -> None:
    if check.compiled is not None and not check.compiled.is_valid(value):
        raise Rejected(
            f"The {where} is not as documented: {check.first_error(value)}.",
            status=400 if where == "query" else 422,
            rule=where,
            way_out="see GET /api/openapi.json",
        )
