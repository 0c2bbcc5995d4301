"""What a server may ask of us, as functions: what is declared follows from what is offered.

A form that was accepted is filled up with the defaults of its fields.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from openfang.protocols.mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

Answerer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def _ignore(method: str, params: Mapping[str, Any]) -> None:
    del method, params


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """A peer made of functions. Each takes the params of a request and gives its whole result.

    `elicit` answers forms, not addresses; `sample` is offered no tools.
    """

    sample: Answerer | None = None
    elicit: Answerer | None = None
    roots: Answerer | None = None
    heard: Callable[[str, Mapping[str, Any]], None] = _ignore

    @property
    def capabilities(self) -> dict[str, Any]:
        """What to declare, so that no server asks in vain."""
        offered: dict[str, tuple[Answerer | None, dict[str, Any]]] = {
            "sampling": (self.sample, {}),
            "elicitation": (self.elicit, {"form": {}}),
            "roots": (self.roots, {}),
        }
        return {name: declared for name, (answer, declared) in offered.items() if answer}

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer, or refuse what was not declared."""
        match method:
            case "sampling/createMessage" if self.sample:
                _refuse_tools(params)
                return await self.sample(params)
            case "elicitation/create" if self.elicit:
                _refuse_addresses(params)
                return with_defaults(params, await self.elicit(params))
            case "roots/list" if self.roots:
                return await self.roots(params)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not offered")

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what belongs to no call."""
        self.heard(method, params)


def with_defaults(params: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill up an accepted form: a field that was left out has its default, if it has one."""
    if answer.get("action") != "accept":
        return answer
    fields = _mapping(_mapping(params.get("requestedSchema")).get("properties"))
    defaults = {name: _mapping(field).get("default") for name, field in fields.items()}
    known = {name: value for name, value in defaults.items() if value is not None}
    return {**answer, "content": {**known, **_mapping(answer.get("content"))}}


def _refuse_tools(params: Mapping[str, Any]) -> None:
    if "tools" in params or "toolChoice" in params:
        raise RpcError(INVALID_PARAMS, "Sampling with tools is not offered")


def _refuse_addresses(params: Mapping[str, Any]) -> None:
    mode = params.get("mode", "form")
    if mode != "form":
        raise RpcError(INVALID_PARAMS, f"Elicitation by {str(mode)[:100]!r} is not offered")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
