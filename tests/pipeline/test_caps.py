"""The caps one by one, on a shaper with small ones: what is cut, and what is left alone."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from openfang.core.calls import Admitted, Call, Caller
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Part, Result, text_part
from openfang.core.tools import Tool
from openfang.pipeline.shape import Shaper, look
from openfang.safety.redact import Redactor

pytestmark = pytest.mark.requirement("C7.12")
SHAPER = Shaper(
    redactor=Redactor(b"k" * 32),
    now=lambda: 1_000,
    max_chars=100,
    max_binary_bytes=300,
    keep_ns=5,
    max_kept_bytes=16_000,
)
TOOL = Tool(id="mcp:demo:act", kind=Kind.MCP, source="demo", name="act", labels=Labels.PRIVATE)


def admitted(labels: Labels = Labels.NONE, asker: str = "") -> Admitted:
    call = Call(tool=TOOL.id, caller=Caller(id="key:me"), asker=asker)
    return Admitted(call=call, tool=TOOL, stamp=b"", timeout=1.0, labels=labels)


def shaped(*content: Part, **fields: Any) -> Result:
    result = Result(content=content, **fields)
    return SHAPER.shape(admitted(), result, look(result))[0]


def texts(result: Result) -> list[str]:
    return [str(part.get("text", "")).partition("openfang://")[0] for part in result.content]


def test_a_text_behind_the_cap_is_left_out_and_not_left_empty() -> None:
    cut = shaped(text_part("a" * 100), text_part("b"), text_part(""))
    assert texts(cut) == ["a" * 100, "[truncated: 100 of 101 characters, "]


def test_what_was_cut_once_is_handed_on_as_it_is() -> None:
    marked = "a" * 100 + "\n[truncated: 100 of 999 characters, openfang://results/abc]"
    assert shaped(text_part(marked)).content == (text_part(marked),)
    assert len(shaped(text_part("b" + marked)).content) == 2


def test_a_part_that_nobody_knows_is_measured_as_a_whole() -> None:
    at_most = 300 * 4 // 3 + 100
    inside, outside = (
        {
            "type": "odd",
            "rows": "x" * (at_most - len(orjson.dumps({"type": "odd", "rows": ""})) + n),
        }
        for n in (0, 1)
    )
    assert shaped(inside).content == (inside,)
    assert texts(shaped(outside)) == [f"[truncated: {at_most + 1} characters of data, "]


def test_data_is_measured_as_what_it_stands_for() -> None:
    fits, over = ({"type": "image", "data": "A" * length} for length in (400, 404))
    assert shaped(fits).content == (fits,)
    assert texts(shaped(fits, over))[1] == "[truncated: 404 characters of data, "
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": "A" * 404}}
    assert texts(shaped(blob)) == ["[truncated: 404 characters of data, "]


def test_what_comes_beside_the_parts_is_capped_by_itself() -> None:
    long, short = {"a": "x" * 100}, {"a": "x"}
    cut = shaped(text_part("hello"), meta=long, extra=short)
    assert texts(cut) == ["hello"]
    assert set(cut.meta) == {"truncated"}
    assert cut.extra == short
    other = shaped(text_part("hello"), meta=short, extra=long)
    assert (other.meta, set(other.extra)) == (short, {"truncated"})


def test_of_structured_content_that_is_too_much_the_small_fields_stay() -> None:
    structured = {"name": "x", "rows": ["y" * 400], **{f"n{at:02d}": at for at in range(40)}}
    cut = shaped(structured=structured).structured
    assert cut["characters"] == len(orjson.dumps(structured))
    assert "rows" not in cut
    assert [*cut][:3] == ["name", "n00", "n01"]
    assert len(cut) == 32 + 2
    assert set(shaped(structured=["y" * 400]).structured) == {"truncated", "characters"}
    edges = {"in": "y" * 298, "out": "y" * 299}
    assert set(shaped(structured=edges).structured) == {"in", "truncated", "characters"}


def test_ten_thousand_parts_are_enough() -> None:
    parts = [{"type": "odd"}] * 10_001
    assert len(shaped(*parts[1:]).content) == 10_000
    cut = shaped(*parts)
    assert len(cut.content) == 10_001
    assert texts(cut)[-1] == "[truncated: 10000 of 10001 parts, "


def test_the_whole_is_kept_for_who_began_the_chain() -> None:
    result = Result(content=(text_part("a" * 200),), structured={"b": 1}, meta={"c": 2})
    _, stored = SHAPER.shape(admitted(asker="key:first"), result, look(result))
    (_, values) = stored[0]
    assert "key:first" in values
    assert 1_005 in values
    whole = next(orjson.loads(value) for value in values if isinstance(value, bytes))
    assert whole == {
        "content": [{"type": "text", "text": "a" * 200}],
        "structured": {"b": 1},
        "meta": {"c": 2},
        "extra": {},
    }


def test_room_is_made_whenever_a_share_of_it_has_been_filled() -> None:
    made = [bool(SHAPER.room(f"blob{at}", "key:other", 400)) for at in range(6)]
    assert made == [True, False, False, True, False, False]
    exactly = [bool(SHAPER.room(f"blob{at}", "key:third", 500)) for at in range(4)]
    assert exactly == [True, False, False, True]


@pytest.mark.requirement("C9.1")
def test_what_went_in_untrusted_or_secret_comes_out_so_and_nothing_else_does() -> None:
    result = Result(content=(text_part("hello"),), labels=Labels.LOCAL_FILE)
    went_in = Labels.EXTERNAL_NETWORK | Labels.UNTRUSTED_AGENT | Labels.SECRET | Labels.PII
    out, _ = SHAPER.shape(admitted(went_in), result, look(result))
    assert out.labels == (
        Labels.EXTERNAL_NETWORK
        | Labels.UNTRUSTED_AGENT
        | Labels.SECRET
        | Labels.LOCAL_FILE
        | Labels.PRIVATE
    )


@pytest.mark.requirement("C9.1")
def test_personal_data_is_labelled_unless_it_is_public_anyway() -> None:
    part = text_part("write to jane.doe@corp-mail.net")
    assert shaped(part).labels == Labels.PRIVATE | Labels.PII
    public = shaped(part, labels=Labels.EXTERNAL_NETWORK)
    assert public.labels == Labels.PRIVATE | Labels.EXTERNAL_NETWORK


@pytest.mark.parametrize(
    "around",
    [
        {"type": "text", "text": "x", "note": "SECRET"},
        {"type": "resource", "resource": {"uri": "SECRET", "text": "x"}},
        {"type": "resource", "resource": {"uri": "a:b", "text": "SECRET"}},
        {"type": "odd", "deep": [{"er": "SECRET"}]},
    ],
)
def test_a_secret_anywhere_in_a_part_goes_and_the_rest_stays(around: dict[str, Any]) -> None:
    secret = "ghp_" + "aB3" * 12
    part = orjson.loads(orjson.dumps(around).replace(b"SECRET", f"key {secret}".encode()))
    (clean,) = shaped(part).content
    written = orjson.dumps(clean).decode()
    assert secret not in written
    mark = SHAPER.redactor.text(secret).text
    assert orjson.loads(written.replace(f"key {mark}", "SECRET")) == around
