"""The messages of the page on troubleshooting are those that are printed; others it types."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.test_held import COAT, CONFIG
from tests.pages import DOCS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C19.3")
PAGE = (DOCS / "guides" / "troubleshooting.md").read_text("utf-8")
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
NO_KEY = 'name = "thinker"\n[model]\nprovider = "anthropic"\nmodel = "claude-haiku-4-5"\n'


def row_of(rule: str) -> re.Pattern[str]:
    """The messages of the row that tells of a rule; `...` stands for anything."""
    (row,) = re.findall(rf"^\| (.*) \| .*`{rule}`.* \| .* \|$", PAGE, re.MULTILINE)
    told = [re.escape(one).replace(r"\.\.\.", ".*") for one in re.findall("`([^`]+)`", row)]
    return re.compile("|".join(told))


def is_told(ran: Ran, rule: str) -> None:
    said = ran.lines[-1]
    assert said["rule"] == rule
    assert row_of(rule).search(said["detail"]), said


def told(text: str) -> set[str]:
    """Lines, without the ids that differ."""
    return {re.sub(r"ask_[0-9a-f]+", "ask_", line) for line in text.splitlines()}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("unknown_tool", ("nothing",)),
        ("schema_mismatch", ("file_read", "--args", '{"pth": "a"}')),
        ("planning_mode", ("file_write", "--args", '{"path": "a", "content": ""}')),
        ("side_effect_blacklisted", ("file_list", "--blacklist", "fs.read")),
        (
            "secret_leaves",
            ("web_fetch", "--args", json.dumps({"url": f"https://a.example/{TOKEN}"})),
        ),
    ],
)
def test_a_refusal_is_said_as_the_page_has_it(openfang: Cli, rule: str, words: list[str]) -> None:
    more = ("--mode", "planning") if rule == "planning_mode" else ()
    is_told(openfang("tools", "call", *words, *more, "--json"), rule)


def test_too_often_and_again_and_again_are_said_as_the_page_has_it(openfang: Cli) -> None:
    again = '{"tool": "location_get", "arguments": {}}\n' * 4
    is_told(openfang("tools", "batch", "-", stdin=again), "identical_outcome")
    slow = openfang("keys", "create", "slow", "--limit", "5").out.strip()
    env = {"OPENFANG_API_KEY": slow}
    is_told(openfang("tools", "batch", "-", stdin=again, env=env), "rate_limit")


def test_a_question_and_a_missing_key_are_said_as_the_page_has_it(openfang: Cli) -> None:
    waits = openfang("tools", "call", "shell_exec", "--args", '{"command": "date"}')
    assert told(waits.err) & told(PAGE) == {
        "waits: builtin:shell_exec waits for a person: Execution mode requires spec_frozen=True",
        "way out: openfang approvals approve ask_, then send the identical call again",
    }
    folder = openfang.home / "agents" / "thinker"
    folder.mkdir()
    (folder / "agent.toml").write_text(NO_KEY)
    stopped = openfang("agents", "send", "thinker", "hello").out.partition(". Way out")[0]
    assert f"`{stopped}`" in PAGE


def test_what_is_held_back_is_shown_as_the_page_has_it(openfang: Cli, tmp_path: Path) -> None:
    file, config = tmp_path / "said.json", openfang.home / "config.toml"
    entry = CONFIG.format(python=sys.executable, coat=COAT, file=file)
    config.write_text(config.read_text() + entry)
    for words in ("Tells the weather.", "Tells the weather of a city."):
        tool = {"name": "get_weather", "description": words, "inputSchema": {"type": "object"}}
        file.write_text(json.dumps({"tools": [tool], "prompts": []}))
        shown = openfang("servers", "held")
    refused = openfang("tools", "call", "mcp:coat:get_weather")
    assert told(shown.out) <= told(PAGE)
    assert told(refused.err) <= told(PAGE)
    assert len(told(shown.out)) == 4
