"""What nobody would see on a screen, or what would steer it, is shown: a person decides by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.test_output import on_a_terminal

from openfang.cli.audit import _print_live
from openfang.cli.output import clean, note
from openfang.core.events import AuditEvent

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C12.5")

# Colours by one byte, a direction, an empty mark, a line of its own, letters that are only tags.
UNSEEN = "\x9b31m\u202e\u200b\ufeff\u2028\u061c\U000e0073\U000e007f"


def test_every_character_that_is_not_seen_is_shown() -> None:
    shown = clean(f"send it{UNSEEN}")
    assert shown.startswith("send it\\x9b31m\\x202e\\x200b\\xfeff\\x2028\\x61c\\xe0073")
    assert shown.isprintable()


def test_what_people_write_stays_as_it_is() -> None:
    for text in (
        "na\u00efve",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f469\u200d\U0001f680\ufe0f",
        "a\tb\nc",
    ):
        assert clean(text) == text


def test_a_note_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    note(f"answer it: --task {UNSEEN}\x1b[2J")
    assert "\x1b[2J" not in capsys.readouterr().err


def test_json_on_a_screen_has_nothing_unseen_and_is_the_same_value(fresh: Cli) -> None:
    assert fresh.call("file_write", path="a", content=UNSEEN).code == 0
    piped = fresh.call("file_read", path="a").json["content"]
    arguments = ("tools", "call", "file_read", "--json", "--args", '{"path": "a"}')
    screen = on_a_terminal(fresh, *arguments, columns=200)
    assert screen.replace("\n", "").isprintable()
    assert json.loads(screen)["content"] == piped
    assert UNSEEN in piped[0]["text"]


@pytest.mark.requirement("C13.4")
def test_no_name_makes_a_second_line_in_a_log_that_is_followed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    event = AuditEvent(
        audit_id=7,
        node="node-1",
        call_id="",
        task_id="",
        hash="",
        level="warning",
        event_type="policy_violation",
        payload={"name": "x\n9  01-01  tool_invocation_end  key:admin"},
        context={"caller": "key:one", "tool": "y\n8  01-01  tool_invocation_end  key:admin"},
        created_at="2026-01-01T00:00:00Z",
    )
    _print_live(event, as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 1
