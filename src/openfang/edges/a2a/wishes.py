"""What a message chooses of what is bound to its caller, and whose call it goes on with (C7.7, C8).

Both stand in its metadata, as they stand in the headers of a plain call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Mode
from openfang.core.errors import Rejected
from openfang.core.session import Options
from openfang.core.trace import joined, read_chain
from openfang.edges.api.wishes import wrong_with
from openfang.protocols.hops.words import CHAIN, STARRY, TRACE, read_told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.trace import Chain
    from openfang.edges.api.exchange import Headers

CONTEXT_KEY: Final = "openfang"
_TOKEN: Final = b"x-admin-token"


def options_of(
    metadata: Mapping[str, Any], chain: Chain, headers: Headers | None = None
) -> Options:
    """Read them; whether the caller may is decided further in. `headers` may hold its token."""
    token = (headers or {}).get(_TOKEN)
    return Options(
        **_chosen(metadata.get(CONTEXT_KEY, {})),
        admin_token=token.decode("latin-1") if token else None,
        chain=_continued(chain, metadata),
    )


def _chosen(context: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    if context == {}:
        return {}
    if why := wrong_with(context):
        raise Rejected(
            f"metadata.{CONTEXT_KEY} is not as documented: {why}",
            status=422,
            rule="invalid_message",
            way_out="its members are mode, project_id, spec_hash, task_id, run and blacklist",
        )
    return {
        "project": context.get("project_id"),
        "spec": context.get("spec_hash"),
        "task": context.get("task_id"),
        "run": context.get("run"),
        "mode": Mode(context["mode"]) if "mode" in context else None,
        "blacklist": frozenset(context.get("blacklist", ())),
    }


def _continued(chain: Chain, metadata: Mapping[str, Any]) -> Chain:
    """Go on with the chain that is told of; what the headers told stands, depth only grows."""
    told = read_chain(
        traceparent=_text(metadata, TRACE),
        starry_id=_text(metadata, STARRY),
        told=read_told(metadata.get(CHAIN)),
    )
    return joined(chain, told)


def _text(metadata: Mapping[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) else None
