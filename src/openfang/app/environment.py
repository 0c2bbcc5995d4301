"""What the environment of a command says: which key it holds, and whose chain it goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.errors import Unauthenticated
from openfang.core.trace import Chain, read_chain
from openfang.protocols.hops.words import read_told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.home.paths import Home


def credential(home: Home, environ: Mapping[str, str]) -> str:
    """Find the key of a local command: `OPENFANG_API_KEY`, else the home's own."""
    secret = environ.get("OPENFANG_API_KEY", "").strip()
    if secret:
        return secret
    try:
        return home.key_file.read_text("utf-8", errors="surrogateescape").strip()
    except OSError:
        raise Unauthenticated(
            f"No key: OPENFANG_API_KEY is not set and {home.key_file} cannot be read.",
            way_out="openfang init, or export OPENFANG_API_KEY",
        ) from None


def incoming_chain(environ: Mapping[str, str]) -> Chain:
    """Continue the chain of whoever started this command, if one of our tools did."""
    return read_chain(
        traceparent=environ.get("TRACEPARENT"),
        starry_id=environ.get("X_OPENSTARRY_TRACE_ID"),
        told=read_told(environ.get("OPENFANG_CHAIN", "")),
    )
