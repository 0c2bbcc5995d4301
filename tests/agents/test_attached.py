"""What comes with a message, in the words that a model is shown."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from openfang.agents.attached import BLOB, in_words, whole
from openfang.storage.database import at_once

pytestmark = pytest.mark.requirement("C7.5")


def file(content: bytes, kind: str = "text/plain", **more: Any) -> dict[str, Any]:
    encoded = b64encode(content).decode()
    return {"type": "file", "name": "a", "mime_type": kind, "data": encoded, **more}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (file("grüße".encode()), "Attached: a (text/plain, 7 bytes):\ngrüße"),
        (
            file(b'{"n": 1}', "application/json"),
            'Attached: a (application/json, 8 bytes):\n{"n": 1}',
        ),
        (file(b"\x89PNG", "image/png"), "Attached: a (image/png, 4 bytes)"),
        (file(b"", data="no base 64!!!"), "Attached: a (text/plain, 9 bytes)"),
        (
            {"type": "file", "uri": "https://a.test/b", "mime_type": "text/plain"},
            "Attached: a file (text/plain) at https://a.test/b",
        ),
        ({"type": "data", "data": {"n": [1]}}, 'Data: {"n": [1]}'),
        ({"type": "data", BLOB: "part_gone"}, "Data, too large to show."),
    ],
)
def test_a_model_reads_texts_and_data_and_is_told_of_the_rest(
    part: dict[str, Any], words: str
) -> None:
    assert in_words("see", [part]) == f"see\n\n{words}"


def test_of_a_long_text_that_is_kept_elsewhere_a_model_reads_the_beginning() -> None:
    long = file(b"0123456789" * 10_000)
    kept = json.dumps(long.pop("data")).encode()

    async def blob(name: str) -> bytes | None:
        return {"part_1": kept}.get(name)

    parts = at_once(whole([{**long, BLOB: "part_1"}], blob))
    head, _, shown = in_words("", parts).partition("\n")
    assert head == "Attached: a (text/plain, 100000 bytes, of which this is the beginning):"
    assert (shown[:12], 19_000 < len(shown) <= 20_000) == ("012345678901", True)
