"""What a server may ask of the client whose call it serves, and the call that a question is."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.calls import Caller, Grants
from openfang.core.clients import ELICITATION, QUESTIONS, SAMPLING
from openfang.core.ids import Kind, new_id, tool_id
from openfang.protocols.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.meta import PROGRESS_TOKEN, meta_of
from openfang.sources.mcp.answers import with_defaults, wrong_in
from openfang.sources.mcp.greeting import Declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Admitted, Call
    from openfang.core.clients import Client
    from openfang.core.results import Result
    from openfang.sources.mcp.spec import ServerSpec

_ALWAYS: Final[Mapping[str, Any]] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
_ROOTS: Final[Mapping[str, Any]] = {"roots": {"listChanged": False}}
_MODES: Final = frozenset({"form", "url"})


class Unanswered(RpcError):  # noqa: N818 - it reads as what it is
    """A question was not answered: by the client's own word, or because it was never put."""


def relayed(spec: ServerSpec) -> Declared:
    """Say what can be asked before it is known who will be: a handshake is for all to come.

    With roots a server may serve other folders than the operator gave it: only where they say so.
    """
    return Declared({}, {**_ALWAYS, **_ROOTS} if spec.roots else _ALWAYS)


def offered_by(client: Client, spec: ServerSpec) -> dict[str, Any]:
    """Say what this client can be asked by this server."""
    names = (*_ALWAYS, *_ROOTS) if spec.roots else (*_ALWAYS,)
    can = client.capabilities
    return {name: can[name] for name in names if isinstance(can.get(name), dict)}


def check_offered(method: str, params: Mapping[str, Any], offered: Mapping[str, Any]) -> None:
    """Refuse what the client has not said that it can answer."""
    name = method.partition("/")[0]
    if method not in QUESTIONS or name not in offered:
        raise Unanswered(METHOD_NOT_FOUND, f"The client of this call offers no {method[:100]}")
    if method == ELICITATION:
        _check_mode(params.get("mode", "form"), offered[name])
    if method == SAMPLING and "tools" not in offered[name]:
        _check_plain(params)


def _check_mode(mode: object, offered: Mapping[str, Any]) -> None:
    """Compare with the modes that were named; who named none means forms."""
    if not isinstance(mode, str) or mode not in (_MODES & offered.keys() or {"form"}):
        text = f"The client of this call offers no elicitation by {str(mode)[:100]!r}"
        raise Unanswered(INVALID_PARAMS, text)


def _check_plain(params: Mapping[str, Any]) -> None:
    if "tools" in params or "toolChoice" in params:
        raise Unanswered(INVALID_PARAMS, "The client of this call offers no sampling with tools")


def prepared(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Write the question so that clients of both eras understand it.

    Progress of an answer is not passed on. An address is known by an id up to 2025-11-25.
    """
    plain = dict(params)
    if "_meta" in plain:
        meta = {name: value for name, value in meta_of(plain).items() if name != PROGRESS_TOKEN}
        plain["_meta"] = meta
    if method == ELICITATION and plain.get("mode") == "url":
        plain.setdefault("elicitationId", new_id("elicitation"))
    return plain


def question_call(
    asker: str, admitted: Admitted, client: Client, method: str, params: Mapping[str, Any]
) -> Call:
    """Make the call that puts a question: the server's own, and allowed to do nothing else.

    Its run is the call that it belongs to: the same question in another call is no loop.
    """
    call, key = admitted.call, client.key
    caller = Caller(
        id=asker,
        grants=Grants(tools=(f"{Kind.CLIENT.value}:{escape(key)}:*",)),
        mode=call.caller.mode,
        projects=call.caller.projects,
    )
    return replace(
        call.child(tool_id(Kind.CLIENT, key, method), params, ancestor=asker),
        caller=caller,
        labels=admitted.labels | admitted.tool.labels,
        client=client,
        run=call.id,
    )


def answer_of(method: str, params: Mapping[str, Any], result: Result) -> Mapping[str, Any]:
    """Take the client's answer; a form that was accepted is filled up with its defaults."""
    fault = result.fault
    if fault is not None:
        code: object = fault.get("code")
        text = str(fault.get("message", "")) or "The client gave no reason"
        raise Unanswered(code if type(code) is int else INTERNAL_ERROR, text, fault.get("data"))
    given: object = result.structured
    if result.is_error or not isinstance(given, dict):
        raise Unanswered(INTERNAL_ERROR, result.text or "The client did not answer")
    answer = cast("dict[str, Any]", given)
    if answer.keys() >= {"truncated", "characters"}:
        raise Unanswered(INTERNAL_ERROR, "The client's answer is larger than results.max_chars")
    wrong = wrong_in(method, params, answer)
    if wrong:
        raise Unanswered(INTERNAL_ERROR, f"The client answered {method} wrongly: {wrong}")
    return with_defaults(params, answer) if method == ELICITATION else answer
