"""Effects of other people's tools leave a proof of what they were told and what they answered."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.ids import Kind
from openfang.core.tools import Risk, Trust
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C11.4")


async def _echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments["text"])


@pytest.mark.parametrize(
    ("trust", "tags", "proved"),
    [
        (Trust.MEDIUM, {"fs.write"}, True),
        (Trust.MEDIUM, {"fs.read"}, False),
        (Trust.HIGH, {"fs.write"}, False),
    ],
)
async def test_an_effect_of_a_tool_that_is_not_highly_trusted_leaves_its_digests(
    tmp_path: Path, trust: Trust, tags: set[str], *, proved: bool
) -> None:
    facts = {"risk": Risk.LOW, "tags": frozenset(tags), "trust": trust}
    source = TableSource(Kind.MCP, "files", {"put": (facts, _echo)})
    async with open_test_app(tmp_path, sources=[source]) as app:
        await app.call("mcp:files:put", text="a")
        end = (await app.events())[-1]

    evidence = end.payload.get("evidence")
    assert (evidence is not None) is proved
    if evidence:
        assert evidence["arguments_sha256"] == sha256(b'{"text":"a"}').hexdigest()
        body = b'[[{"type":"text","text":"a"}],null,false]'
        assert evidence["result_sha256"] == sha256(body).hexdigest()
        assert evidence["result_bytes"] == len(body)
        assert evidence["trust"] == "medium"
