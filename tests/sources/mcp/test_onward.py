"""What callers say besides their arguments: what is theirs travels on, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.mcp.federation import entry, node

from openfang.app.local import Local
from openfang.core.session import Options
from openfang.core.trace import new_chain
from openfang.sources.mcp.onward import passed_on

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C18.4")
KEPT: dict[str, Any] = {
    "claudecode/toolUseId": "t1",
    "x-codex-turn-metadata": {"turn": 1},
    "com.example/x": None,
}
DROPPED: dict[str, Any] = {
    "progressToken": 1,
    "traceparent": "00-1-2-01",
    "TraceState": "x",
    "baggage": "x",
    "x-openstarry-trace-id": "x",
    "io.modelcontextprotocol/clientInfo": {},
    "modelcontextprotocol.io/x": 1,
    "tools.mcp.com/x": 1,
    "mcp/x": 1,
    "openfang/adminToken": "x",
    "openfang/context": {},
    "Authorization": "Bearer x",
    "com.example/api_key": "x",
    "com.example/apiKey": "x",
    "session-cookie": "x",
    "my-secret": "x",
    "x/password": "x",
}


def test_what_is_neither_ours_nor_the_protocols_nor_a_credential_is_kept() -> None:
    assert passed_on({**KEPT, **DROPPED}) == KEPT


def test_what_is_too_large_does_not_travel() -> None:
    assert passed_on({"a": "x" * 20_000}) == {}


@settings(max_examples=60, deadline=None)
@given(meta=st.dictionaries(st.text(max_size=20), st.text(max_size=5), max_size=5))
def test_nothing_is_added_and_nothing_is_changed(meta: dict[str, Any]) -> None:
    assert passed_on(meta).items() <= meta.items()


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_server_hears_what_its_caller_says_besides(tmp_path: Path, era: str) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6
    async with node(tmp_path, entry("peer", era)) as it:
        session = Local(it.app.parts, it.app.caller, new_chain())
        options = Options(meta={**KEPT, **DROPPED, "com.example/y": secret})
        result = await session.call("mcp:peer:echo", {}, options)
        said = result.structured["meta"]
        assert {name: said[name] for name in KEPT} == KEPT
        assert secret not in str(said)
        assert said["traceparent"] != DROPPED["traceparent"]
        assert not {"baggage", "Authorization", "openfang/adminToken"} & said.keys()
        assert ("io.modelcontextprotocol/clientInfo" in said) is (era == "modern")
        read = session.make("mcp:peer:resources/read", {"uri": "memo://1"}, options)
        await it.app.invoke(read)
        (params,) = await it.params("resources/read")
        assert params["_meta"]["claudecode/toolUseId"] == "t1"
        assert replace(read, id="").child("x", {}, ancestor="y").meta == {}
