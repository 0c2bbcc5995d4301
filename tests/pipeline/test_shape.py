"""What leaves: capped, kept whole elsewhere, byte for byte where nothing is secret (C7.12)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from openfang.core.errors import SourceFailed
from openfang.core.ids import Kind
from openfang.core.results import Result, text_part
from openfang.core.tools import Risk
from openfang.testing import ManualClock, OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.12")


def answering(result: Result) -> TableSource:
    async def answer(_: Mapping[str, Any]) -> Result:
        return result

    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    return TableSource(Kind.MCP, "demo", {"answer": (facts, answer)})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def app(tmp_path: Path, clock: ManualClock) -> AsyncGenerator[OpenApp]:
    async with open_test_app(tmp_path / "home", clock=clock) as opened:
        yield opened


async def shaped(app: OpenApp, result: Result) -> Result:
    app.add(answering(result))
    return await app.call("mcp:demo:answer")


async def test_all_text_parts_together_have_one_cap(app: OpenApp, clock: ManualClock) -> None:
    parts = (text_part("a" * 30_000), {"type": "image", "data": "aGk="}, text_part("b" * 30_000))
    result = await shaped(app, Result(content=parts))
    assert [len(part.get("text", "")) for part in result.content[:3]] == [30_000, 0, 20_000]
    marker = result.content[-1]["text"]
    assert marker.startswith("[truncated: 50000 of 60000 characters, openfang://results/")
    uri = marker.removesuffix("]").rpartition(" ")[2]
    blob = uri.removeprefix("openfang://results/")
    found = app.parts.blobs.get(blob, app.caller.id, clock.time_ns())
    assert found is not None
    assert orjson.loads(found[0])["content"] == list(parts)


async def test_the_whole_is_for_the_same_caller_and_for_an_hour(
    app: OpenApp, clock: ManualClock
) -> None:
    result = await shaped(app, Result(content=(text_part("a" * 60_000),)))
    blob = result.content[-1]["text"].removesuffix("]").rpartition("/")[2]
    assert app.parts.blobs.get(blob, "key:other", clock.time_ns()) is None
    clock.advance(3599)
    assert app.parts.blobs.get(blob, app.caller.id, clock.time_ns())
    clock.advance(2)
    assert app.parts.blobs.get(blob, app.caller.id, clock.time_ns()) is None


async def test_text_at_the_cap_is_left_alone(app: OpenApp) -> None:
    result = await shaped(app, Result(content=(text_part("a" * 50_000),)))
    assert [part["text"] for part in result.content] == ["a" * 50_000]


async def test_structured_content_over_the_cap_becomes_a_link_and_is_never_cut(
    app: OpenApp,
) -> None:
    result = await shaped(app, Result(content=(), structured={"rows": ["x" * 60_000]}))
    assert set(result.structured) == {"truncated", "characters"}
    assert result.structured["truncated"].startswith("openfang://results/")


async def test_binary_parts_over_their_cap_become_a_link(app: OpenApp) -> None:
    small, large = (
        {"type": "image", "mimeType": "image/png", "data": base64.b64encode(bytes(size)).decode()}
        for size in (1000, 10_000_003)
    )
    result = await shaped(app, Result(content=(small, large)))
    assert result.content[0] == small
    assert result.content[1]["text"].startswith("[truncated: ")


async def test_what_nobody_knows_passes_byte_for_byte(app: OpenApp) -> None:
    parts = (
        {"type": "text", "text": "ünï\u2028code \x00", "annotations": {"x": [1, 2.5, None]}},
        {"type": "future", "blob": {"deep": ["kept"]}},
    )
    result = await shaped(
        app, Result(content=parts, structured={"k": "v"}, is_error=True, meta={"a": 1})
    )
    assert result.content == parts
    assert result.structured == {"k": "v"}
    assert result.is_error
    assert result.meta == {"a": 1}


async def test_redaction_changes_only_the_secret(app: OpenApp) -> None:
    secret = "AKIA" + "ABCDEFGH23456789"[:16]
    before, after = "before \t ", " after\n"
    result = await shaped(
        app,
        Result(content=(text_part(before + secret + after),), structured={"key": secret, "n": 1}),
    )
    text = result.content[0]["text"]
    assert text.startswith(before)
    assert text.endswith(after)
    assert secret not in text
    assert secret not in str(result.structured)
    assert result.structured["n"] == 1


async def test_an_embedded_resource_is_redacted_and_capped_like_any_text(app: OpenApp) -> None:
    secret = "ghp_" + "a1B2" * 9
    short = {"type": "resource", "resource": {"uri": "a:b", "text": f"x {secret} y"}}
    result = await shaped(app, Result(content=(short,)))
    assert secret not in str(result.content)
    assert result.content[0]["resource"]["uri"] == "a:b"
    long = {"type": "resource", "resource": {"uri": "a:b", "text": "z" * 60_000}}
    cut = await shaped(app, Result(content=(long,)))
    assert len(cut.content[0]["resource"]["text"]) == 50_000
    assert "50000 of 60000" in cut.content[1]["text"]
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": "A" * 14_000_000}}
    assert "[truncated:" in (await shaped(app, Result(content=(blob,)))).text


async def test_a_result_that_is_no_json_is_the_tools_failure(app: OpenApp) -> None:
    for result in (Result(structured={"n": 2**70}), Result(content=(text_part("\ud800"),))):
        with pytest.raises(SourceFailed) as caught:
            await shaped(app, result)
        assert caught.value.receipt is not None
