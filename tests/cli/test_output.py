"""How things are printed: whole to a pipe, and harmless to a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forked import at_terminal

from openfang.cli.errors import Usage
from openfang.cli.options import seconds
from openfang.cli.output import clean, first_sentence, one_line, table
from openfang.cli.times import span
from openfang.cli.tools import show
from openfang.testing import foreign_tool

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

PEER = Path(__file__).parents[1] / "sources/mcp/peers/echo.py"
pytestmark = pytest.mark.requirement("C12.5")


@given(st.text())
def test_nothing_that_is_cleaned_steers_a_terminal(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", clean(text))
    assert "\n" not in one_line(text)


def test_a_table_to_a_pipe_is_whole_and_plain(capsys: pytest.CaptureFixture[str]) -> None:
    table(("name", "what"), [("a", "x" * 500), ("b", "one\ntwo \x1b[31mred")])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "NAME  WHAT"
    assert second == "a     " + "x" * 500
    assert third == "b     one two \\x1b[31mred"


def test_a_description_is_cut_after_its_first_sentence() -> None:
    assert first_sentence("Do it. Then\nmore.") == "Do it."
    assert first_sentence("Version 1.2 does it") == "Version 1.2 does it"


@pytest.mark.parametrize(
    ("text", "length"), [("90s", 90), ("15m", 900), ("1h", 3600), ("7d", 604_800)]
)
def test_durations_are_read(text: str, length: float) -> None:
    assert seconds(text) == length


@given(st.text(max_size=6).filter(lambda text: not re.fullmatch(r"[0-9]+[smhd]", text)))
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Usage):
        seconds(text)


def test_spans_have_two_units_at_most() -> None:
    second = 1_000_000_000
    assert span(59 * 60 * second + 53 * second) == "59m 53s"
    assert span(8 * 86_400 * second + 5) == "8d"
    assert span(0) == "over"
    assert span(2**62) == "never"


@pytest.mark.requirement("C11.3")
def test_a_tool_that_is_held_back_is_shown_with_what_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tool = foreign_tool(
        "mail", "send", description="Send it.\x1b[2J", hold="its definition changed"
    )
    words = {"path": "description", "before": "Send it.", "after": "Send it to me."}
    change = {**words, "hidden": list[str]()}
    show(tool, {"changes": [change], "findings": []})
    captured = capsys.readouterr()
    assert "Send it.\\x1b[2J" in captured.out
    assert "+Send it to me." in captured.out
    assert f"openfang tools accept {tool.id}" in captured.err


def on_a_terminal(openfang: Cli, *arguments: str, columns: int, code: int = 0, **env: str) -> str:
    environment = openfang.environment({"COLUMNS": str(columns), "TERM": "xterm-256color", **env})
    output = bytearray()
    with at_terminal(arguments, environment) as (running, screen):
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(screen, 65_536):
                output += chunk
        assert running.wait(timeout=20) == code
    return output.decode().replace("\r\n", "\n")


def plain(output: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def test_a_terminal_gets_a_table_of_its_width_in_colour(openfang: Cli) -> None:
    for columns in (80, 120):
        output = on_a_terminal(openfang, "tools", "list", columns=columns)
        assert "\x1b[31mHIGH" in output
        assert max(map(len, plain(output).splitlines())) <= columns
        assert "memory_recall" in plain(output)


def test_names_stay_whole_and_values_break_between_words(fresh: Cli) -> None:
    names = [f"a_tool_whose_name_is_long_{number}" for number in range(2)]
    fresh.configure(
        '[[mcp_servers]]\nname = "files"\n[mcp_servers.transport]\ntype = "stdio"\n'
        f'command = "{sys.executable}"\nargs = ["{PEER}", "tools={",".join(names)}", '
        '"say=this is what it says for people, in more words than fit into one line of 80"]\n'
    )
    tools, listed, shown = (
        plain(on_a_terminal(fresh, "servers", *words, columns=80))
        for words in (("tools", "files"), ("list",), ("show", "files"))
    )
    for output in (tools, listed):
        assert max(map(len, output.splitlines())) <= 80
    assert all(f"mcp_files_{name} " in tools for name in names)
    assert "[MCP:" not in tools
    assert re.search(r"files +connected +healthy +2 +python", listed)
    assert "/peers/echo.py" not in listed.replace("\u2026/peers/echo.py", "")
    assert re.search(r"^server +echo 1$", shown, re.MULTILINE)
    said = re.search(r"^last words  this is .* one\n {12}line of 80$", shown, re.MULTILINE)
    assert said, shown


def test_no_colour_is_sent_where_none_is_wanted(openfang: Cli) -> None:
    output = on_a_terminal(openfang, "tools", "list", columns=80, NO_COLOR="1")
    assert "\x1b[31m" not in output
    assert "shell_exec" in output


def test_what_is_too_wide_for_a_terminal_is_stacked_and_not_cut(openfang: Cli) -> None:
    openfang.call("system_time")
    query = "SELECT * FROM task_audits LIMIT 1"
    output = on_a_terminal(openfang, "audit", "sql", query, columns=60, NO_COLOR="1")
    assert re.search(r"^created_at +\d{4}-", output, re.MULTILINE)


def test_a_tools_words_do_not_steer_the_terminal(openfang: Cli) -> None:
    openfang.call("memory_store", key="trap", value="\x1b]0;gotcha\x07")
    shown = on_a_terminal(
        openfang, "tools", "call", "memory_recall", "--args", '{"key": "trap"}', columns=80
    )
    assert "\\x1b]0;gotcha\\x07" in shown
    piped = openfang("tools", "call", "memory_recall", "--args", '{"key": "trap"}')
    assert piped.out == "\x1b]0;gotcha\x07\n"


def test_an_error_breaks_between_words_and_its_ways_out_between_commands(openfang: Cli) -> None:
    words = ("tools", "call", "system_time", "--args", "x")
    shown = plain(on_a_terminal(openfang, *words, columns=60, code=2)).splitlines()
    assert shown[:3] == [
        "error: --args is not valid JSON: unexpected character,",
        "       expected a JSON value (line 1, column 1).",
        """way out: an object such as '{"path": "notes.txt"}'""",
    ]
    denied = {"OPENFANG_API_KEY": "of_nobody"}
    shown = plain(on_a_terminal(openfang, "tools", "list", columns=80, code=3, **denied))
    assert "\n         openfang keys create NAME makes another\n" in shown


def test_where_a_shell_does_not_find_the_program_an_error_says_how_it_does(
    openfang: Cli, tmp_path: Path
) -> None:
    words = ("tools", "call", "no_such_tool")
    nowhere = on_a_terminal(openfang, *words, columns=80, code=3, PATH=str(tmp_path))
    folder = Path(sys.executable).parent
    assert nowhere.endswith(
        "way out: openfang tools list\n"
        f"first: export PATH={folder}:$PATH\n       export OPENFANG_HOME={openfang.home}\n"
    )
    assert "first:" not in on_a_terminal(openfang, *words, columns=80, code=3, PATH=str(folder))
    assert "first:" not in openfang(*words, env={"PATH": str(tmp_path)}).err


def test_a_person_who_starts_the_mcp_server_is_told_what_it_is_for(openfang: Cli) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        openfang.command("mcp"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=openfang.environment(),
    ) as running:
        os.close(theirs)
        assert running.stderr
        assert b"openfang connect" in running.stderr.readline()
        os.close(ours)
        assert running.stdout
        assert running.stdout.read() == b""
    assert openfang("mcp").err == ""
