"""What leaves: capped, kept whole elsewhere, byte for byte where nothing is secret (C7.12)."""

from __future__ import annotations

import base64
from dataclasses import replace
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, cast

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

    from openfang.core.calls import Admitted
    from openfang.pipeline.shape import Looked, Shaped, Shaper

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
    found = await app.parts.blobs.get(blob, app.caller.id, clock.time_ns())
    assert found is not None
    assert orjson.loads(found[0])["content"] == list(parts)


async def test_the_whole_is_for_the_same_caller_and_for_an_hour(
    app: OpenApp, clock: ManualClock
) -> None:
    result = await shaped(app, Result(content=(text_part("a" * 60_000),)))
    blob = result.content[-1]["text"].removesuffix("]").rpartition("/")[2]
    assert await app.parts.blobs.get(blob, "key:other", clock.time_ns()) is None
    clock.advance(3599)
    assert await app.parts.blobs.get(blob, app.caller.id, clock.time_ns())
    clock.advance(2)
    assert await app.parts.blobs.get(blob, app.caller.id, clock.time_ns()) is None


async def test_text_at_the_cap_is_left_alone(app: OpenApp) -> None:
    result = await shaped(app, Result(content=(text_part("a" * 50_000),)))
    assert [part["text"] for part in result.content] == ["a" * 50_000]


async def test_structured_content_over_the_cap_becomes_a_link_and_is_never_cut(
    app: OpenApp,
) -> None:
    result = await shaped(app, Result(content=(), structured={"rows": ["x" * 60_000]}))
    assert set(result.structured) == {"truncated", "characters"}
    assert result.structured["truncated"].startswith("openfang://results/")


@pytest.mark.parametrize(("parts", "stored"), [(10_000, False), (10_001, True)])
async def test_ten_thousand_parts_are_left_alone_and_one_more_is_not(
    app: OpenApp, parts: int, *, stored: bool
) -> None:
    content = (text_part("abc"),) * parts
    result = await shaped(app, Result(content=content, structured={"text": "s" * 30_000}))
    assert (result.content != content) is bool(kept(app, app.caller.id)) is stored


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


def kept(app: OpenApp, caller: str) -> dict[str, int]:
    """How long each result is that is kept for a caller; their ids sort by time."""
    sql = "SELECT id, LENGTH(body) FROM blobs WHERE caller = ? ORDER BY id"
    return dict(app.file.read_now(sql, (caller,)))


async def test_what_is_kept_for_a_caller_has_a_limit_and_the_oldest_goes_first(
    app: OpenApp,
) -> None:
    pipeline = app.parts.pipeline
    pipeline.shaper = replace(pipeline.shaper, max_kept_bytes=1_000_000)
    app.add(answering(Result(content=(text_part("a" * 60_000),))))
    other = replace(app.caller, id="key:other")
    await app.invoke(app.make("mcp:demo:answer", {}, caller=other))
    made = list[str]()
    for _ in range(40):
        marker = (await app.call("mcp:demo:answer")).content[-1]["text"]
        made.append(marker.removesuffix("]").rpartition("/")[2])
        found = kept(app, app.caller.id)
        assert made[-1] in found
        assert sum(found.values()) <= 1_000_000
    found = kept(app, app.caller.id)
    assert len(found) in {15, 16}
    assert made[0] not in found
    assert len(kept(app, other.id)) == 1


async def test_a_result_over_the_limit_by_itself_is_kept_alone(app: OpenApp) -> None:
    pipeline = app.parts.pipeline
    pipeline.shaper = replace(pipeline.shaper, max_kept_bytes=100_000)
    await shaped(app, Result(content=(text_part("a" * 60_000),)))
    await shaped(app, Result(content=(text_part("a" * 200_000),)))
    assert [size > 200_000 for size in kept(app, app.caller.id).values()] == [True]


class Watched:
    """Shapes as another does, and notes on which thread."""

    def __init__(self, shaper: Shaper) -> None:
        self.redactor = shaper.redactor
        self.on_loop = list[bool]()
        self._shaper = shaper

    def shape(self, admitted: Admitted, result: Result, looked: Looked) -> Shaped:
        self.on_loop.append(current_thread() is main_thread())
        return self._shaper.shape(admitted, result, looked)


@pytest.mark.parametrize(
    ("result", "on_loop"),
    [
        (Result(content=(text_part("a" * 900_000),), structured={"a": 1}), True),
        (Result(content=(text_part("a" * 1_100_000),)), False),
        (Result(content=(), structured={"rows": ["x" * 1_100_000]}), False),
        (Result(content=({"type": "image", "data": "A" * 1_100_000},)), False),
        (Result(content=(text_part("a"),), meta={"m": "x" * 1_100_000}), False),
        (Result(content=({**text_part("a"), "annotations": "x" * 1_100_000},)), False),
    ],
)
@pytest.mark.parametrize("run", ["", "one"])
async def test_a_large_result_holds_up_nobody(
    app: OpenApp, result: Result, run: str, *, on_loop: bool
) -> None:
    watched = Watched(app.parts.pipeline.shaper)
    app.parts.pipeline.shaper = cast("Shaper", watched)
    app.add(answering(result))
    call = app.make("mcp:demo:answer", {})
    answer = await app.invoke(replace(call, run=run or None))
    assert answer.receipt
    assert watched.on_loop == [on_loop]


async def test_a_large_result_that_is_no_json_is_the_tools_failure(app: OpenApp) -> None:
    with pytest.raises(SourceFailed) as caught:
        await shaped(app, Result(content=(text_part("a" * 2_000_000 + "\ud800"),)))
    assert caught.value.receipt is not None
